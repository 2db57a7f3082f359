"""ort-dft-angles: DFT and STFT of a length that is no power of two

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


N = 400
x = np.random.default_rng(0).standard_normal((1, N, 1)).astype(np.float32)
model = model_of(
    [helper.make_node("DFT", ["x"], ["y"], axis=1)],
    {"x": (TensorProto.FLOAT, [1, N, 1])},
    {"y": TensorProto.FLOAT},
    opset=17,
)
(y,) = run(model, x)
whole = np.fft.fft(x[0, :, 0].astype(np.float64))
error = np.sqrt(np.mean(np.abs(y[0, :, 0] + 1j * y[0, :, 1] - whole) ** 2)) / np.abs(whole).max()
# numpy.fft of float32 is off by 1e-7; each of N terms whose angle of less than one turn is rounded in float32 is off by
# less than 2 pi + 4 times 2 ** -24, all of them in one direction by less than that
expected, got = [f"less than {4e-6:.1e} (rms, as a part of the greatest)"], [f"{error:.1e}"]

print("expected", np.asarray(expected).tolist())
print("got     ", np.asarray(got).tolist())
wrong = error > 4e-6
print("reproduced" if wrong else "not reproduced")
sys.exit(int(wrong))
