"""Wrong value: ONNX Runtime, Cast to float8 that does not saturate.

Exit status 1: shows; 0: does not."""

import numpy as np
import onnxruntime
from onnx import TensorProto, helper


def run(element, x):
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [len(x)]) for name in "xy"]
    nodes = [
        helper.make_node("Cast", ["x"], ["a"], to=element, saturate=0),
        helper.make_node("Cast", ["a"], ["y"], to=TensorProto.FLOAT),
    ]
    graph = helper.make_graph(nodes, "net", ends[:1], ends[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"x": np.array(x, "float32")})[0].tolist()


got = [*run(TensorProto.FLOAT8E4M3FN, [449, 480]), *run(TensorProto.FLOAT8E5M2, [57344, 61440])]
right = [448, np.nan, 57344, np.inf]
wrong = not np.array_equal(got, right, equal_nan=True)
if wrong:
    print(f"reproduced: {got} in place of {right}")
    raise SystemExit(1)
print("not reproduced")
