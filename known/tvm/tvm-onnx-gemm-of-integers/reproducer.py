"""Wrong value: TVM's importer of ONNX, Gemm of integers with a factor.

Exit status 1: shows; 0: does not."""

import numpy as np
import onnx
import tvm
from onnx import helper, numpy_helper
from tvm import relax
from tvm.relax.frontend.onnx import from_onnx


def run(operator, *arrays, outputs=1, **attributes):
    """What a model of one operator gives."""
    names = [f"x{place}" for place in range(len(arrays))]
    given = [
        helper.make_tensor_value_info(name, numpy_helper.from_array(array).data_type, array.shape)
        for name, array in zip(names, arrays, strict=True)
    ]
    results = [f"y{place}" for place in range(outputs)]
    node = helper.make_node(operator, names, results, **attributes)
    graph = helper.make_graph([node], "net", given, [onnx.ValueInfoProto(name=name) for name in results])
    module = from_onnx(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9))
    executable = tvm.compile(relax.transform.DecomposeOpsForInference()(module), "llvm")
    result = relax.VirtualMachine(executable, tvm.cpu())["main"](*map(tvm.runtime.tensor, arrays))
    return [result.numpy()] if outputs == 1 else [one.numpy() for one in result]


a, b, c = np.array([[2, 2]], "int32"), np.array([[1], [3]], "int32"), np.array([5], "int32")
got, right = run("Gemm", a, b, c, alpha=0.5)[0].item(), 9
wrong = got != right
if wrong:
    print(f"reproduced: {got} in place of {right}")
    raise SystemExit(1)
print("not reproduced")
