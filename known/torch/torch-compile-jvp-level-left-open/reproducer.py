"""Rejection: PyTorch, torch.func.jvp after one that did not compile.

Exit status 1: shows; 0: does not."""

import torch


def pushed(x, index):
    return torch.func.jvp(lambda y: torch.take(y, index), (x,), (x,))[1]


x = torch.ones(2)
try:
    torch.compile(pushed, backend="inductor")(x, torch.tensor(1))
except Exception as error:  # what it says of the scalar index is another matter
    print(f"refused: {type(error).__name__}")
try:
    torch.func.jvp(torch.sin, (x,), (x,))
except RuntimeError as error:
    print(f"reproduced: RuntimeError: {error}")
    raise SystemExit(1) from None
print("not reproduced")
