"""ort-nms-score-at-threshold: NonMaxSuppression: a score at the threshold

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


boxes = np.array([[[0, 0, 1, 1], [0, 0, 1, 0.5], [5, 5, 6, 6]]], np.float32)  # the second covers half of the first
scores = np.array([[[0.9, 0.8, 0.7]]], np.float32)
limits = {"most": np.array([5]), "iou": np.array([0.9], np.float32), "score": np.array([0.7], np.float32)}
node = helper.make_node("NonMaxSuppression", ["boxes", "scores", *limits], ["y"])
inputs = {"boxes": (TensorProto.FLOAT, boxes.shape), "scores": (TensorProto.FLOAT, scores.shape)}
model = model_of([node], inputs, {"y": TensorProto.INT64}, limits, 11)
got = run(model, boxes, scores)[0][:, 2].tolist()
expected = [0, 1, 2]

print("expected", np.asarray(expected).tolist())
print("got     ", np.asarray(got).tolist())
wrong = got != expected
print("reproduced" if wrong else "not reproduced")
sys.exit(int(wrong))
