"""openvino-attention: Attention with a window, or a mask beside a past

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


node = helper.make_node("Attention", ["q", "k", "v"], ["y"], left_window_size=1, right_window_size=2)
inputs = {name: (TensorProto.FLOAT, [1, 1, 5, 1]) for name in "qkv"}
model = model_of([node], inputs, {"y": TensorProto.FLOAT}, opset=25)
v = np.arange(5, dtype=np.float32).reshape(1, 1, 5, 1)
got, expected = run(model, v * 0, v * 0, v)[0].ravel(), np.array([1, 1.5, 2.5, 3, 3.5])  # means of one before to two behind

print("expected", np.asarray(expected).ravel()[:8].tolist())
print("got     ", np.asarray(got).ravel()[:8].tolist())
wrong = got.shape != expected.shape or not np.allclose(got, expected, rtol=1e-4, atol=1e-4)
print("reproduced" if wrong else "not reproduced")
sys.exit(int(wrong))
