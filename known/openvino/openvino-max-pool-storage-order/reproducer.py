"""TypeMismatch: OpenVINO, MaxPool with storage_order 1 of three dimensions.

Exit status 1: shows; 0: does not."""

import numpy as np
import onnx
import openvino
from onnx import helper

x = np.random.default_rng(0).random((1, 1, 2, 3, 4), "float32")
node = helper.make_node("MaxPool", ["x"], ["y", "places"], kernel_shape=[1, 1, 1], storage_order=1)
given = [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, x.shape)]
ends = [
    helper.make_tensor_value_info(name, element, x.shape)
    for name, element in (("y", onnx.TensorProto.FLOAT), ("places", onnx.TensorProto.INT64))
]
graph = helper.make_graph([node], "graph", given, ends)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
core = openvino.Core()
compiled = core.compile_model(core.read_model(model.SerializeToString()), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
got = np.array(compiled([x])[1])
d, h, w = np.indices(x.shape[2:])
right = (d + 2 * (h + 3 * w))[None, None]
print("got", got.shape, got.ravel().tolist(), "right", right.shape, right.ravel().tolist())
if got.shape != right.shape or (got != right).any():
    print("reproduced: wrong")
    raise SystemExit(1)
print("not reproduced")
