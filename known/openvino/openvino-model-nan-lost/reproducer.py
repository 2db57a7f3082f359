"""openvino-model-nan-lost: the exponential of NaN

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


model = model_of([helper.make_node("Exp", ["x"], ["y"])], {"x": (TensorProto.FLOAT, [2])}, {"y": TensorProto.FLOAT})
(got,) = run(model, np.array([np.nan, 0], np.float32))
expected = [np.nan, 1.0]

print("expected", np.asarray(expected).tolist())
print("got     ", np.asarray(got).tolist())
wrong = not np.isnan(got[0])
print("reproduced" if wrong else "not reproduced")
sys.exit(int(wrong))
