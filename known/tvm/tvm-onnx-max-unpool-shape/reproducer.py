"""Refused: TVM's importer of ONNX, MaxUnpool to a shape that is given.

Exit status 1: shows; 0: does not."""

import numpy as np
import onnx
import tvm
from onnx import helper, numpy_helper
from tvm import relax
from tvm.relax.frontend.onnx import from_onnx

x, places = np.ones((1, 1, 2, 2), "float32"), np.array([[[[6, 8], [16, 18]]]])
given = [
    helper.make_tensor_value_info(name, numpy_helper.from_array(array).data_type, array.shape)
    for name, array in (("x", x), ("places", places))
]
node = helper.make_node("MaxUnpool", ["x", "places", "shape"], ["y"], kernel_shape=[2, 2], strides=[2, 2])
shape = numpy_helper.from_array(np.array([1, 1, 5, 5]), "shape")
graph = helper.make_graph([node], "net", given, [onnx.ValueInfoProto(name="y")], [shape])
try:
    module = from_onnx(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), keep_params_in_input=False
    )
    executable = tvm.compile(relax.transform.DecomposeOpsForInference()(module), "llvm")
    got = relax.VirtualMachine(executable, tvm.cpu())["main"](tvm.runtime.tensor(x), tvm.runtime.tensor(places)).numpy()
except AttributeError as error:
    print(f"reproduced: {error}")
    raise SystemExit(1) from error
print(f"not reproduced: {got.shape}")
