"""openvino-rnn-lengths: LSTM with lengths where time varies

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


T, B, I, H, LENGTH = 5, 1, 3, 2, 2
random = np.random.default_rng(0)
w, r = random.normal(size=(1, 4 * H, I)), random.normal(size=(1, 4 * H, H))
x = random.normal(size=(T, B, I))
constants = {"w": w.astype(np.float32), "r": r.astype(np.float32)}
node = helper.make_node("LSTM", ["x", "w", "r", "", "lengths"], ["", "h"], hidden_size=H)
inputs = {"x": (TensorProto.FLOAT, ["time", B, I]), "lengths": (TensorProto.INT32, [B])}
model = model_of([node], inputs, {"h": TensorProto.FLOAT}, constants, 14)
got = run(model, x.astype(np.float32), np.array([LENGTH], np.int32))[0].ravel()


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


h = c = np.zeros(H)
for step in x[:LENGTH, 0]:
    i, o, f, new = np.split(w[0] @ step + r[0] @ h, 4)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(new)
    h = sigmoid(o) * np.tanh(c)
expected = h

print("expected", np.asarray(expected).tolist())
print("got     ", np.asarray(got).tolist())
wrong = np.abs(got - expected).max() > 1e-3
print("reproduced" if wrong else "not reproduced")
sys.exit(int(wrong))
