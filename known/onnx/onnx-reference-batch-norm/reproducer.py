"""onnx-reference-batch-norm: BatchNormalization of opsets 9 to 13

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


x = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
ones, zeros = np.ones(3, np.float32), np.zeros(3, np.float32)
node = helper.make_node("BatchNormalization", ["x", "scale", "bias", "mean", "variance"], ["y"])
constants = {"scale": ones, "bias": zeros, "mean": zeros, "variance": ones}
model = model_of([node], {"x": (TensorProto.FLOAT, [4, 3])}, {"y": TensorProto.FLOAT}, constants, 9)
(got,) = run(model, x)
expected = x / np.sqrt(1 + 1e-5)

print("expected", np.asarray(expected).tolist())
print("got     ", np.asarray(got).tolist())
wrong = np.abs(got - expected).max() > 1e-3
print("reproduced" if wrong else "not reproduced")
sys.exit(int(wrong))
