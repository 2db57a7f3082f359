"""ValueMismatch: OpenVINO, constants of bfloat16 that stand in int32_data.

Exit status 1: shows; 0: does not."""

import numpy as np
import onnx
import openvino
from onnx import TensorProto, helper

right = [1.5, -2.0, 0.5]
constant = helper.make_tensor("c", TensorProto.BFLOAT16, [3], right)
nodes = [helper.make_node("Cast", ["c"], ["w"], to=TensorProto.FLOAT), helper.make_node("Mul", ["x", "w"], ["y"])]
ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [3]) for name in "xy"]
graph = helper.make_graph(nodes, "net", ends[:1], ends[1:], [constant])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
onnx.checker.check_model(model, full_check=True)
core = openvino.Core()
compiled = core.compile_model(core.read_model(model.SerializeToString()), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
got = compiled([np.ones(3, "float32")])[0].tolist()
print("got", got, "right", right)
if got != right:
    print("reproduced: wrong")
    raise SystemExit(1)
print("not reproduced")
