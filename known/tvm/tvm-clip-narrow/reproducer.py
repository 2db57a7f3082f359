"""Rejection: TVM (Relax), clip of int8 with a limit beyond it.

Exit status 1: shows; 0: does not."""

import numpy as np
import tvm
from tvm import relax

x = np.array([0, 100], np.int8)


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
    compiled(lambda bb, v: relax.op.clip(v, 0, 300), x)
except Exception as error:
    words = str(error)
    shows = "Literal value 300 exceeds range of int8" in words
    print(
        f"reproduced: Literal value 300 exceeds range of int8"
        if shows
        else f"not available: {words.strip().splitlines()[-1]}"
    )
    raise SystemExit(1 if shows else 77) from None
print("not reproduced")
