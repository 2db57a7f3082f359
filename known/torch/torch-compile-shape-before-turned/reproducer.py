"""ValueMismatch: PyTorch, torch.compile: the shape of a tensor that was turned in place.

Exit status 1: shows; 0: does not."""

import torch


def function(x):
    y = x * 1
    y.t_()
    return y.reshape(y.shape[0], -1)


x = torch.arange(6.0).reshape(2, 3)
found = torch.compile(function, backend="aot_eager", fullgraph=True)(x)
expected = function(x)
if found.shape != expected.shape:
    print(f"reproduced: {found.tolist()} instead of {expected.tolist()}")
    raise SystemExit(1)
assert torch.equal(found, expected)
print("not reproduced")
