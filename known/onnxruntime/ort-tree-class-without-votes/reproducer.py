"""ort-tree-class-without-votes: TreeEnsembleClassifier: a class that has no vote

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


settings = {
    "nodes_treeids": [0, 0, 0],
    "nodes_nodeids": [0, 1, 2],
    "nodes_featureids": [0, 0, 0],
    "nodes_values": [0.5, 0.0, 0.0],
    "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
    "nodes_truenodeids": [1, 0, 0],
    "nodes_falsenodeids": [2, 0, 0],
    "nodes_missing_value_tracks_true": [0, 0, 0],
    "class_treeids": [0, 0],
    "class_nodeids": [1, 2],
    "class_ids": [1, 2],
    "class_weights": [-0.3, -0.2],
    "classlabels_int64s": [10, 20, 30],
}
node = helper.make_node("TreeEnsembleClassifier", ["x"], ["y", "scores"], domain="ai.onnx.ml", **settings)
model = model_of([node], {"x": (TensorProto.FLOAT, [2, 1])}, {"y": TensorProto.INT64, "scores": TensorProto.FLOAT})
got, scores = run(model, np.array([[0], [1]], np.float32))
print("scores  ", scores.tolist())
expected = np.array([10, 20, 30])[scores.argmax(1)]

print("expected", np.asarray(expected).tolist())
print("got     ", np.asarray(got).tolist())
wrong = not np.array_equal(np.asarray(got), np.asarray(expected))
print("reproduced" if wrong else "not reproduced")
sys.exit(int(wrong))
