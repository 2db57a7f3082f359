"""Rejection: TVM (Relax), take of whole numbers with mode nan.

Exit status 1: shows; 0: does not."""

import numpy as np
import tvm
from tvm import relax

x, i = np.arange(5), np.array([1, 2])


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
    compiled(lambda bb, v, i: relax.op.take(v, i, 0, "nan"), x, i)
except Exception as error:
    words = str(error)
    shows = "Cannot convert NaN to BigInt" in words
    print(f"reproduced: Cannot convert NaN to BigInt" if shows else f"not available: {words.strip().splitlines()[-1]}")
    raise SystemExit(1 if shows else 77) from None
print("not reproduced")
