"""Rejection: TVM (Relax), batch_norm in training along the last axis, counted from the end.

Exit status 1: shows; 0: does not."""

import numpy as np
import tvm
from tvm import relax

x, one = np.ones((4, 3, 2), np.float32), np.ones(2, np.float32)


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
    compiled(lambda bb, v, w: relax.op.nn.batch_norm(v, w, w, w, w, axis=-1, training=True), x, one)
except Exception as error:
    words = str(error)
    shows = "list.remove(x): x not in list" in words
    print(f"reproduced: list.remove(x): x not in list" if shows else f"not available: {words.strip().splitlines()[-1]}")
    raise SystemExit(1 if shows else 77) from None
print("not reproduced")
