"""ValueMismatch: TVM (Relax), dequantize of int32 near its ends.

Exit status 1: shows; 0: does not."""

import numpy as np
import tvm
from tvm import relax

x = np.array([-(2**31) + 5, 2**31 - 5, 7], np.int32)


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


got, right = (
    compiled(
        lambda bb, v: relax.op.dequantize(v, relax.const(1.0, "float32"), relax.const(100, "int32"), -1, "float32"), x
    ),
    (x.astype("float64") - 100).astype("float32"),
)
if (
    got.shape == right.shape
    and got.dtype == right.dtype
    and np.allclose(got.astype(np.float64), right.astype(np.float64), rtol=1e-3, equal_nan=True)
):
    print("not reproduced")
    raise SystemExit(0)
print(f"reproduced: {got.ravel()[:4].tolist()} of {got.dtype}{got.shape} in place of {right.ravel()[:4].tolist()}")
raise SystemExit(1)
