"""Rejection: TVM (Relax), logical_and of whole numbers.

Exit status 1: shows; 0: does not."""

import numpy as np
import tvm
from tvm import relax

x, y = np.array([2, 0], np.int32), np.array([1, 1], np.int32)


def compiled(f, *arrays, passes=()):
    """What f says, compiled by TVM's default pipeline and run."""
    bb = relax.BlockBuilder()
    given = [relax.Var(f"x{i}", relax.TensorType(x.shape, str(x.dtype))) for i, x in enumerate(arrays)]
    with bb.function("main", given):
        with bb.dataflow():
            result = bb.emit_output(f(bb, *given))
        bb.emit_func_output(result)
    module = bb.get()
    for one in passes:
        module = one(module)
    machine = relax.VirtualMachine(tvm.compile(module, tvm.target.Target("llvm")), tvm.cpu())
    found = machine["main"](*[tvm.runtime.tensor(x) for x in arrays])
    return found.numpy() if hasattr(found, "numpy") else [one.numpy() for one in found]


try:
    compiled(lambda bb, v, w: relax.op.logical_and(v, w), x, y)
except Exception as error:
    words = str(error)
    shows = "of type T." in words
    print(f"reproduced: of type T." if shows else f"not available: {words.strip().splitlines()[-1]}")
    raise SystemExit(1 if shows else 77) from None
print("not reproduced")
