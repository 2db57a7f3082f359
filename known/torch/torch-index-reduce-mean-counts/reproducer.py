"""Value: PyTorch, index_reduce("mean") of more rows than bfloat16 can count.

Exit status 1: shows; 0: does not."""

import torch

rows = torch.tensor([0, 1], dtype=torch.bfloat16).repeat(256)
places = torch.zeros(512, dtype=torch.int64)
got = torch.zeros(1, dtype=torch.bfloat16).index_reduce(0, places, rows, "mean", include_self=False).item()
print(f"the mean of 512 rows, half of them 1: {got}, expected 0.5")
print("reproduced" if got != 0.5 else "not reproduced")
raise SystemExit(got != 0.5)
