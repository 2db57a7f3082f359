"""ValueMismatch: PyTorch, torch.compile with inductor: an input viewed as narrower numbers, then written to.

Exit status 1: shows; 0: does not."""

import torch


def function(x):
    doubled = x.view(torch.int32) * 2
    doubled.sub_(-4)
    x.add_(1)
    return doubled.view(torch.int64)


x = torch.arange(12).reshape(2, 6)
expected = [(4 << 32) + 2 * n + 4 for n in range(12)]
assert function(x.clone()).flatten().tolist() == expected
found = torch.compile(function, backend="inductor")(x.clone()).flatten().tolist()
if found != expected:
    print(f"reproduced: {found[0]} of what was written later, not {expected[0]}")
    raise SystemExit(1)
print("not reproduced")
