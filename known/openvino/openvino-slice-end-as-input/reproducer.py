"""Wrong value: OpenVINO, Slice to INT64_MAX as an input.

Exit status 1: shows; 0: does not."""

import numpy as np
import openvino
from onnx import TensorProto, helper

bounds = [helper.make_tensor_value_info(name, TensorProto.INT64, [1]) for name in ("start", "end", "axis")]
given = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3]), *bounds]
result = helper.make_tensor_value_info("y", TensorProto.FLOAT, [None])
graph = helper.make_graph([helper.make_node("Slice", ["x", "start", "end", "axis"], ["y"])], "net", given, [result])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
core = openvino.Core()
compiled = core.compile_model(core.read_model(model.SerializeToString()), "CPU")
numbers = {"start": 0, "end": np.iinfo("int64").max, "axis": 0}
arrays = {name: np.array([number], "int64") for name, number in numbers.items()}
got, right = compiled({"x": np.arange(3, dtype="float32"), **arrays})[0].tolist(), [0, 1, 2]
wrong = got != right
if wrong:
    print(f"reproduced: {got} in place of {right}")
    raise SystemExit(1)
print("not reproduced")
