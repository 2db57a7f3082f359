"""ValueMismatch: TVM (Relax), index_tensor with places counted from the end.

Exit status 1: shows; 0: does not."""

import numpy as np
import tvm
from tvm import relax

x, places = np.arange(1, 5, dtype=np.float32), np.array([-1, 2])


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


got, right = compiled(lambda bb, v, i: relax.op.index_tensor(v, [i]), x, places), x[places]
if (
    got.shape == right.shape
    and got.dtype == right.dtype
    and np.allclose(got.astype(np.float64), right.astype(np.float64), rtol=1e-3, equal_nan=True)
):
    print("not reproduced")
    raise SystemExit(0)
print(f"reproduced: {got.ravel()[:4].tolist()} of {got.dtype}{got.shape} in place of {right.ravel()[:4].tolist()}")
raise SystemExit(1)
