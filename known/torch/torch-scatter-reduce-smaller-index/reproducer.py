"""Value: PyTorch, the gradient of scatter_reduce("prod") by a source larger than the index.

Exit status 1: shows; 0: does not."""

import torch

base, index = torch.full((3, 4), 2.0), torch.tensor([[0, 1, 2, 0]])
source = torch.full((3, 4), 3.0, requires_grad=True)
slopes = torch.autograd.grad(torch.scatter_reduce(base, 0, index, source, "prod").sum(), source)[0]
wrong = bool(slopes[1:].any())
print("slopes of the rows that no index reaches, expected 0:", slopes[1:].tolist())
print("reproduced" if wrong else "not reproduced")
raise SystemExit(wrong)
