"""Wrong shape: ONNX Runtime, NonZero of a scalar.

Exit status 1: shows; 0: does not."""

import numpy as np
import onnxruntime
from onnx import TensorProto, helper

given = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [])]
made = [helper.make_tensor_value_info("y", TensorProto.INT64, [None, None])]
graph = helper.make_graph([helper.make_node("NonZero", ["x"], ["y"])], "net", given, made)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
got = session.run(None, {"x": np.array(2, "float32")})[0].shape
if got != (0, 1):
    print(f"reproduced: {got} in place of (0, 1)")
    raise SystemExit(1)
print("not reproduced")
