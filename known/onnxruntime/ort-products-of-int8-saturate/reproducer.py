"""ort-products-of-int8-saturate: MatMulInteger of uint8 and int8 on a processor without VNNI

exit status: 1 reproduced, 0 not reproduced, 77 not available here
"""

import importlib.util
import sys
from pathlib import Path

for module in ["onnx", "onnxruntime"]:
    if importlib.util.find_spec(module) is None:
        print(f"not available: {module}")
        sys.exit(77)
if "vnni" in Path("/proc/cpuinfo").read_text():
    print("not available: a processor without VNNI")
    sys.exit(77)

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

a, b = np.full((1, 2), 255, np.uint8), np.full((2, 1), 127, np.int8)
graph = helper.make_graph(
    [helper.make_node("MatMulInteger", ["a", "b"], ["y"])],
    "graph",
    [helper.make_tensor_value_info("a", TensorProto.UINT8, a.shape)],
    [helper.make_tensor_value_info("y", TensorProto.INT32, (1, 1))],
    [numpy_helper.from_array(b, "b")],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
(got,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"a": a})
expected = a.astype(np.int32) @ b.astype(np.int32)
print("expected", expected.tolist())
print("got     ", got.tolist())
wrong = bool((got != expected).any())
print("reproduced" if wrong else "not reproduced")
sys.exit(int(wrong))
