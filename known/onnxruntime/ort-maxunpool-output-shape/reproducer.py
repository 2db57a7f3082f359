"""ort-maxunpool-output-shape: MaxUnpool with an output shape

exit status: 1 reproduced, 0 not reproduced, 77 not available here
"""

import importlib.util
import sys

for module in ["onnx", "onnxruntime"]:
    if importlib.util.find_spec(module) is None:
        print(f"not available: {module}")
        sys.exit(77)

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper


def model_of(nodes, inputs, outputs, constants=(), opset=20):
    """One node or several. inputs: name -> (element type, shape); outputs: name -> element type; constants: name ->
    array."""
    given = [helper.make_tensor_value_info(name, *type_) for name, type_ in inputs.items()]
    returned = [helper.make_tensor_value_info(name, element, None) for name, element in outputs.items()]
    kept = [numpy_helper.from_array(array, name) for name, array in dict(constants).items()]
    graph = helper.make_graph(nodes, "graph", given, returned, kept)
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def run(model, *arrays):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, dict(zip([value.name for value in session.get_inputs()], arrays)))


x = np.array([[[[5, 6], [7, 8]]]], np.float32)
places = np.array([[[[5, 7], [13, 15]]]], np.int64)  # in a tensor of 4 x 4
node = helper.make_node("MaxUnpool", ["x", "i", "shape"], ["y"], kernel_shape=[2, 2], strides=[2, 2])
inputs = {"x": (TensorProto.FLOAT, x.shape), "i": (TensorProto.INT64, places.shape)}
model = model_of([node], inputs, {"y": TensorProto.FLOAT}, {"shape": np.array([1, 1, 5, 5])}, 11)
(got,) = run(model, x, places)
expected = np.zeros((1, 1, 5, 5), np.float32)
expected[0, 0, 1, 1], expected[0, 0, 1, 3], expected[0, 0, 3, 1], expected[0, 0, 3, 3] = 5, 6, 7, 8

print("expected", np.asarray(expected).tolist())
print("got     ", np.asarray(got).tolist())
wrong = not np.array_equal(np.asarray(got), np.asarray(expected))
print("reproduced" if wrong else "not reproduced")
sys.exit(int(wrong))
