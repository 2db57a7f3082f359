"""Rejection: TVM (Relax), FuseOps and FuseTIR of a part of a nested tuple.

Exit status 1: shows; 0: does not."""

import numpy as np
import tvm
from tvm import relax

bb = relax.BlockBuilder()
x = relax.Var("x", relax.TensorType((4,), "float32"))
with bb.function("main", [x]):
    with bb.dataflow():
        doubled, squared = bb.emit(relax.op.add(x, x)), bb.emit(relax.op.multiply(x, x))
        nested = bb.emit(relax.Tuple([relax.Tuple([doubled, squared]), doubled]))
        pair = bb.emit(relax.TupleGetItem(nested, 0))
        result = bb.emit_output(relax.TupleGetItem(pair, 1))
    bb.emit_func_output(result)
target = tvm.target.Target("llvm")
array = np.arange(4, dtype="float32")
try:
    executable = tvm.compile(bb.get(), target, relax_pipeline=relax.get_default_pipeline(target))
except Exception as error:
    words = str(error).strip().splitlines()[-1]
    print(f"reproduced: {words}" if 'global_name != "fused"' in str(error) else f"not available: {words}")
    raise SystemExit(1 if 'global_name != "fused"' in str(error) else 77) from None
got = relax.VirtualMachine(executable, tvm.cpu())["main"](tvm.runtime.tensor(array)).numpy()
np.testing.assert_array_equal(got, array * array)
print("not reproduced")
