"""Rejection: TVM (Relax), ExpandMatmulOfSum and a sum that broadcasts.

Exit status 1: shows; 0: does not."""

import numpy as np
import tvm
from tvm import relax

x, v, w = np.ones((4, 3), np.float32), np.ones((3, 5), np.float32), np.ones(5, np.float32)


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
    compiled(
        lambda bb, x, v, w: relax.op.matmul(x, bb.emit(relax.op.add(v, w))),
        x,
        v,
        w,
        passes=[relax.transform.ExpandMatmulOfSum()],
    )
except Exception as error:
    words = str(error)
    shows = "Matmul requires the reduction length" in words
    print(
        f"reproduced: Matmul requires the reduction length"
        if shows
        else f"not available: {words.strip().splitlines()[-1]}"
    )
    raise SystemExit(1 if shows else 77) from None
print("not reproduced")
