"""ValueMismatch, TypeMismatch: TVM (Relax), average pooling of int8.

Exit status 1: shows; 0: does not."""

import sys

import numpy as np
import tvm
from tvm import relax

bb = relax.BlockBuilder()
x = relax.Var("x", relax.TensorType((1, 1, 2, 2), "int8"))
with bb.function("main", [x]):
    with bb.dataflow():
        output = bb.emit_output(relax.op.nn.avg_pool2d(x, (2, 2)))
    bb.emit_func_output(output)
inferred = output.ty.dtype
machine = relax.VirtualMachine(tvm.compile(bb.get(), target="llvm"), tvm.cpu())
got = machine["main"](tvm.runtime.tensor(np.full((1, 1, 2, 2), 100, np.int8))).numpy()
wrong = str(got.dtype) != str(inferred) or got.item() != 100
print(f"reproduced: {got.item()} as {got.dtype}, inferred {inferred}, in place of 100" if wrong else "not reproduced")
sys.exit(wrong)
