"""ProcessCrash: PyTorch, torch.compile with inductor: columns that are multiplied by stored matrices.

Exit status 1: shows; 0: does not."""

import os

import torch


def function(matrices, columns):
    return torch.matmul(matrices * matrices, columns)


def main():
    matrices = torch.ones(1, 18, 10, 2).permute(0, 3, 1, 2)  # the second axis is the last in memory
    columns = torch.ones(3, 2, 10, 1)
    compiled = torch.compile(function)
    found = [compiled(matrices, columns) for _ in range(100)]
    assert all(torch.equal(one, function(matrices, columns)) for one in found)


child = os.fork()
if not child:
    main()
    os._exit(0)
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
if status:
    print(f"reproduced: the process ended with {status}")
    raise SystemExit(1)
print("not reproduced")
