"""ProcessCrash: TVM (Relax), storage of the branches of a conditional.

Exit status 1: shows; 0: does not."""

import subprocess
import sys

import numpy as np
import tvm
from tvm import relax


def program():
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((2, 4), "float32"))
    condition = relax.Var("condition", relax.TensorType((), "bool"))

    def branch(operator):
        bb._begin_binding_block()
        result = bb.emit(relax.op.permute_dims(bb.emit(operator(x))))
        return relax.SeqExpr([bb._end_block()], result)

    with bb.function("main", [x, condition]):
        bb.emit_func_output(bb.emit(relax.If(condition, branch(relax.op.exp), branch(relax.op.negative))))
    return bb.get()


def child():
    machine = relax.VirtualMachine(tvm.compile(program(), "llvm"), tvm.cpu())
    x = np.arange(8, dtype="float32").reshape(2, 4)
    for condition, expected in ((True, np.exp(x)), (False, -x)):
        got = machine["main"](tvm.runtime.tensor(x), tvm.runtime.tensor(np.array(condition))).numpy()
        np.testing.assert_allclose(got, expected.T, rtol=1e-5)


if "--child" in sys.argv:
    child()
    sys.exit()
status = subprocess.run([sys.executable, __file__, "--child"], capture_output=True).returncode
if status < 0:
    print(f"reproduced: signal {-status} (SIGSEGV is 11) where the condition is false")
    raise SystemExit(1)
print("not reproduced" if not status else f"not available: status {status}")
raise SystemExit(77 if status else 0)
