"""Rejection: TVM (Relax), torch.chunk of whole programs of torch.export.

Exit status 1: shows; 0: does not."""

import sys

import numpy as np
import torch
import tvm
from tvm import relax
from tvm.relax.frontend.torch import from_exported_program


class Module(torch.nn.Module):
    def forward(self, x):
        return torch.chunk(x, 4, 0)


x = torch.arange(10.0).reshape(5, 2)
expected = [part.numpy() for part in Module()(x)]  # 2, 2 and 1 rows
module = from_exported_program(torch.export.export(Module(), (x,)), run_ep_decomposition=False)
try:
    machine = relax.VirtualMachine(tvm.compile(module, target="llvm"), tvm.cpu())
    got = [part.numpy() for part in machine["main"](tvm.runtime.tensor(x.numpy()))]
except (MemoryError, RuntimeError, ValueError, tvm.error.InternalError) as error:
    print(f"reproduced: {type(error).__name__}: {error}")
    sys.exit(1)
same = len(got) == len(expected) and all(map(np.array_equal, got, expected))
print("not reproduced" if same else f"reproduced: parts of {[part.shape for part in got]}")
sys.exit(0 if same else 1)
