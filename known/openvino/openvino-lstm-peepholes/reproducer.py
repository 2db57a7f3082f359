"""openvino-lstm-peepholes: peepholes of LSTM

exit status: 1 reproduced, 0 not reproduced, 77 not available here
"""

import importlib.util
import sys

for module in ["onnx", "openvino"]:
    if importlib.util.find_spec(module) is None:
        print(f"not available: {module}")
        sys.exit(77)

import numpy as np
import openvino
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
    core = openvino.Core()
    compiled = core.compile_model(
        core.read_model(model.SerializeToString()), "CPU", {"INFERENCE_PRECISION_HINT": "f32"}
    )
    return [np.array(value) for value in compiled(list(arrays)).values()]


constants = {
    "w": np.full((1, 4, 1), 0.5, np.float32),
    "r": np.zeros((1, 4, 1), np.float32),
    "c": np.full((1, 1, 1), 2, np.float32),
    "p": np.full((1, 3), 3, np.float32),
}
node = helper.make_node("LSTM", ["x", "w", "r", "", "", "", "c", "p"], ["y"], hidden_size=1)
model = model_of([node], {"x": (TensorProto.FLOAT, [1, 1, 1])}, {"y": TensorProto.FLOAT}, constants, 14)
got = run(model, np.ones((1, 1, 1), np.float32))[0].ravel()


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


i = f = sigmoid(0.5 + 3 * 2)  # of the cell before
cell = f * 2 + i * np.tanh(0.5)
expected = np.array([sigmoid(0.5 + 3 * cell) * np.tanh(cell)])

print("expected", np.asarray(expected).ravel()[:8].tolist())
print("got     ", np.asarray(got).ravel()[:8].tolist())
wrong = got.shape != expected.shape or not np.allclose(got, expected, rtol=1e-4, atol=1e-4)
print("reproduced" if wrong else "not reproduced")
sys.exit(int(wrong))
