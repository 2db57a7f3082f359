"""Rejection: OpenVINO, QLinearConv whose weights have a scale for each channel.

Exit status 1: shows; 0: does not."""

import sys

import numpy as np
import openvino
from onnx import TensorProto, helper, numpy_helper

constants = {
    "scale": np.float32(0.5),
    "point": np.uint8(0),
    "weights": np.ones((4, 2, 1, 1), np.int8),
    "scales": np.array([0.5, 0.25, 0.125, 1], np.float32),
    "points": np.zeros(4, np.int8),
}
names = ["x", "scale", "point", "weights", "scales", "points", "scale", "point"]
graph = helper.make_graph(
    [helper.make_node("QLinearConv", names, ["y"])],
    "graph",
    [helper.make_tensor_value_info("x", TensorProto.UINT8, (1, 2, 3, 3))],
    [helper.make_tensor_value_info("y", TensorProto.UINT8, (1, 4, 3, 3))],
    [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
core = openvino.Core()
try:
    core.compile_model(core.read_model(model.SerializeToString()), "CPU")
except Exception as error:
    shown = "number of dequantization scale elements" in str(error)
    print("reproduced:" if shown else "not reproduced:", str(error)[-300:].replace("\n", " "))
    sys.exit(shown)
print("not reproduced")
