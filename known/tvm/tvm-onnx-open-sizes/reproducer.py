"""tvm-onnx-open-sizes: an ONNX model with a pool with auto_pad and open sizes

exit status: 1 reproduced, 0 not reproduced, 77 not available here
"""

import importlib.util
import sys

for module in ["onnx", "tvm"]:
    if importlib.util.find_spec(module) is None:
        print(f"not available: {module}")
        sys.exit(77)

from onnx import TensorProto, helper
from tvm.relax.frontend.onnx import from_onnx


def imported(nodes, shape):
    """The message with which a model is refused; empty where it is not."""
    given = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)]
    returned = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    graph = helper.make_graph(nodes, "graph", given, returned)
    try:
        from_onnx(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


pool = [helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[2, 2], strides=[2, 2], auto_pad="SAME_UPPER")]
known, opened = (imported(pool, shape) for shape in ((1, 3, 8, 8), (1, 3, "height", "width")))
print("sizes that are known", known or "imported")
print("open sizes", opened or "imported")
wrong = bool(not known and opened)
print("reproduced" if wrong else "not reproduced")
sys.exit(int(wrong))
