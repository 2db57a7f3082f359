"""onnx-reference-rnn-clip: clip of a recurrent cell

exit status: 1 reproduced, 0 not reproduced, 77 not available here
"""

import importlib.util
import sys

for module in ["onnx"]:
    if importlib.util.find_spec(module) is None:
        print(f"not available: {module}")
        sys.exit(77)

import numpy as np
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator


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
    return ReferenceEvaluator(model).run(None, dict(zip([value.name for value in model.graph.input], arrays)))


W = np.array([[[2.0], [1.0], [0.5], [-2.0]]], np.float32)  # i, o, f, c
constants = {
    "w": W,
    "r": np.zeros((1, 4, 1), np.float32),
    "h": np.zeros((1, 1, 1), np.float32),
    "c": np.full((1, 1, 1), 4, np.float32),
}
node = helper.make_node("LSTM", ["x", "w", "r", "", "", "h", "c"], ["y"], hidden_size=1, clip=0.5)
model = model_of([node], {"x": (TensorProto.FLOAT, [1, 1, 1])}, {"y": TensorProto.FLOAT}, constants, 14)
got = run(model, np.array([[[3.0]]], np.float32))[0].ravel()


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


i, o, f, c = np.clip(W.ravel() * 3, -0.5, 0.5)
cell = sigmoid(f) * 4 + sigmoid(i) * np.tanh(c)
expected = [sigmoid(o) * np.tanh(np.clip(cell, -0.5, 0.5))]

print("expected", np.asarray(expected).tolist())
print("got     ", np.asarray(got).tolist())
wrong = abs(got[0] - expected[0]) > 1e-3
print("reproduced" if wrong else "not reproduced")
sys.exit(int(wrong))
