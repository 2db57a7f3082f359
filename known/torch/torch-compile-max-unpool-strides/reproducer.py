"""TypeMismatch: PyTorch, torch.compile: the strides of max_unpool2d with channels last.

Exit status 1: shows; 0: does not."""

import torch

image = torch.randn(2, 3, 4, 4).contiguous(memory_format=torch.channels_last)
values, places = torch.nn.functional.max_pool2d(image, 2, return_indices=True)


def function(values, places):
    return torch.nn.functional.max_unpool2d(values, places, 2)


expected = function(values, places)
found = torch.compile(function)(values, places)
assert torch.equal(found, expected)
if found.stride() != expected.stride():
    print(f"reproduced: strides {found.stride()}, in eager code {expected.stride()}")
    raise SystemExit(1)
print("not reproduced")
