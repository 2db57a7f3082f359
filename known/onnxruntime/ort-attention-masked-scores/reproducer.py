"""ort-attention-masked-scores: scores of Attention after the mask

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


q = np.ones((1, 1, 2, 2), np.float32)
mask = np.array([[True, False], [True, True]])
node = helper.make_node("Attention", ["q", "k", "v", "m"], ["y", "", "", "s"], qk_matmul_output_mode=2)
inputs = {name: (TensorProto.FLOAT, q.shape) for name in "qkv"} | {"m": (TensorProto.BOOL, mask.shape)}
model = model_of([node], inputs, {"y": TensorProto.FLOAT, "s": TensorProto.FLOAT}, opset=23)
got = run(model, q, q, q, mask)[1][0, 0]
expected = np.where(mask, np.float32(np.sqrt(2)), -np.inf)

print("expected", np.asarray(expected).tolist())
print("got     ", np.asarray(got).tolist())
wrong = np.isfinite(got[0, 1])
print("reproduced" if wrong else "not reproduced")
sys.exit(int(wrong))
