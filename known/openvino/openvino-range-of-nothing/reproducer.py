"""Wrong shape: OpenVINO, Range that leads away from its limit.

Exit status 1: shows; 0: does not."""

import numpy as np
import openvino
from onnx import TensorProto, helper, numpy_helper

given = [helper.make_tensor_value_info("start", TensorProto.FLOAT, [])]
made = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None])]
held = [numpy_helper.from_array(np.array(value, "float32"), name) for name, value in (("limit", -5), ("delta", 1))]
graph = helper.make_graph([helper.make_node("Range", ["start", "limit", "delta"], ["y"])], "net", given, made, held)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=8)
core = openvino.Core()
compiled = core.compile_model(core.read_model(model.SerializeToString()), "CPU")
got = compiled({"start": np.array(6, "float32")})[0].shape
if got != (0,):
    print(f"reproduced: {got} in place of (0,)")
    raise SystemExit(1)
print("not reproduced")
