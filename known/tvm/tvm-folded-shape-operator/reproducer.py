"""Rejection: TVM (Relax), an operator on what is reshaped to a constant that was a tensor.

Exit status 1: shows; 0: does not."""

import numpy as np
import tvm
from tvm import relax

x = np.ones((4, 6), np.float32)


def f(bb, v):
    sizes = bb.emit(relax.op.tensor_to_shape(relax.const([2, 12], "int64")))
    y = bb.emit(relax.op.reshape(v, sizes))
    return relax.op.add(y, y)


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
    compiled(f, x)
except Exception as error:
    words = str(error)
    shows = "CodeGenVM cannot emit this Relax operator directly" in words
    print(
        f"reproduced: CodeGenVM cannot emit this Relax operator directly"
        if shows
        else f"not available: {words.strip().splitlines()[-1]}"
    )
    raise SystemExit(1 if shows else 77) from None
print("not reproduced")
