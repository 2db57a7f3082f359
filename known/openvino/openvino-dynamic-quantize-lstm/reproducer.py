"""openvino-dynamic-quantize-lstm: an LSTM that is to quantise its input and hidden states is one of floats

exit status: 1 reproduced, 0 not reproduced, 77 not available here
"""

import importlib.util
import sys

for module in ["onnx", "onnxruntime", "openvino"]:
    if importlib.util.find_spec(module) is None:
        print(f"not available: {module}")
        sys.exit(77)

import numpy as np
import onnxruntime
import openvino
from onnx import TensorProto, helper, numpy_helper

T, SIZE, H = 6, 5, 4
random = np.random.default_rng(0)
w, r = (random.integers(-60, 60, (1, size, 4 * H)).astype(np.int8) for size in (SIZE, H))
x = random.normal(size=(T, 1, SIZE)).astype(np.float32)
kept = {"w": w, "r": r, "scale": np.array([0.02], np.float32), "zero": np.zeros(1, np.int8)}
names = ["x", "w", "r", "", "", "", "", "", "scale", "zero", "scale", "zero"]
real = {
    "w": (w * kept["scale"]).transpose(0, 2, 1).astype(np.float32),
    "r": (r * kept["scale"]).transpose(0, 2, 1).astype(np.float32),
}


def model_of(node, constants):
    graph = helper.make_graph(
        [node],
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (T, 1, 1, H))],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    opsets = [helper.make_opsetid("", 14), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


quantised = model_of(helper.make_node("DynamicQuantizeLSTM", names, ["y"], hidden_size=H, domain="com.microsoft"), kept)
floats = model_of(helper.make_node("LSTM", ["x", "w", "r"], ["y"], hidden_size=H), real)
expected, other = (onnxruntime.InferenceSession(model).run(None, {"x": x})[0] for model in (quantised, floats))
core = openvino.Core()
compiled = core.compile_model(core.read_model(quantised), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
got = next(iter(compiled([x]).values()))
print("from the operator", np.abs(got - expected).max())
print("from an LSTM of floats", np.abs(got - other).max())
wrong = np.abs(got - expected).max() > 100 * np.abs(got - other).max()
print("reproduced" if wrong else "not reproduced")
sys.exit(int(wrong))
