"""Rejection: PyTorch, torch.compile with AOTAutograd: an input beside a view of it.

Exit status 1: shows; 0: does not."""

import torch


def function(x, view):
    x.fill_(-3)
    return view.detach()


x = torch.ones(2, 3)
try:
    found = torch.compile(function, backend="aot_eager")(x, x.select(0, 0))
except AssertionError as error:
    print(f"reproduced: AssertionError: {error}")
    raise SystemExit(1) from None
assert found.tolist() == [-3.0, -3.0, -3.0]
print("not reproduced")
