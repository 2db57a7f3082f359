"""Wrong value: PyTorch, torch.compile with inductor: as_strided_scatter of an expanded row.

Exit status 1: shows; 0: does not."""

import torch


def function(row, diagonal):
    return torch.as_strided_scatter(row.expand(3, 3), diagonal, (3,), (4,))


row, diagonal = torch.arange(1.0, 4.0), torch.zeros(3)
expected = function(row, diagonal)
assert expected.tolist() == [[0.0, 2.0, 3.0], [1.0, 0.0, 3.0], [1.0, 2.0, 0.0]]
found = torch.compile(function)(row, diagonal)
if not torch.equal(found, expected):
    print(f"reproduced: {found.tolist()}, expected {expected.tolist()}")
    raise SystemExit(1)
print("not reproduced")
