"""Wrong value: PyTorch, torch.export and run_decompositions: a result is the memory of a buffer.

Exit status 1: shows; 0: does not."""

import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("b", torch.zeros(2))

    def forward(self, x):
        y = self.b + x
        self.b.copy_(y)
        return y


x = torch.ones(2)
run = torch.export.export(Model(), (x,)).run_decompositions().module()
first = run(x)
before = first.clone()
run(torch.full((2,), 5.0))
if not torch.equal(first, before):
    print(f"reproduced: the first result was {before.tolist()}, and is {first.tolist()} after another call")
    raise SystemExit(1)
print("not reproduced")
