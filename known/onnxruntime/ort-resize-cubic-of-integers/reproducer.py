"""Rejection: ONNX Runtime, cubic Resize of integers.

Exit status 1: shows; 0: does not."""

import numpy as np
import onnxruntime
from onnx import TensorProto, helper

image = helper.make_tensor_value_info("x", TensorProto.UINT8, [1, 1, 5, 6])
node = helper.make_node("Resize", ["x", "", "", "s"], ["y"], mode="cubic")
sizes = helper.make_tensor("s", TensorProto.INT64, [4], [1, 1, 7, 9])
graph = helper.make_graph([node], "net", [image], [helper.make_empty_tensor_value_info("y")], [sizes])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=8)
session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
x, right = np.arange(30, dtype="uint8").reshape(1, 1, 5, 6), (1, 1, 7, 9)
try:
    got = session.run(None, {"x": x})[0].shape
except Exception as error:
    got = str(error).strip().splitlines()[-1]
wrong = got != right
if wrong:
    print(f"reproduced: {got} in place of {right}")
    raise SystemExit(1)
print("not reproduced")
