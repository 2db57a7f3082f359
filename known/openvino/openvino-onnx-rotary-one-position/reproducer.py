"""ValueMismatch: OpenVINO, com.microsoft.RotaryEmbedding from one position on.

Exit status 1: shows; 0: does not."""

import sys

import numpy as np
import openvino
from onnx import ValueInfoProto, helper, numpy_helper


def run(operator, operands, constants=(), **attributes):
    """What OpenVINO makes of one operator of com.microsoft."""
    names = ["" if a is None else f"x{i}" for i, a in enumerate(operands)]
    given = {name: a for name, a in zip(names, operands) if name}
    held = {f"x{i}" for i in constants}
    graph = helper.make_graph(
        [helper.make_node(operator, names, ["y"], domain="com.microsoft", **attributes)],
        "graph",
        [
            helper.make_tensor_value_info(name, numpy_helper.from_array(a).data_type, a.shape)
            for name, a in given.items()
            if name not in held
        ],
        [ValueInfoProto(name="y")],
        [numpy_helper.from_array(given[name], name) for name in held],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    core = openvino.Core()
    model = core.read_model(helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString())
    compiled = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    results = compiled({name: a for name, a in given.items() if name not in held})
    return np.array(results[compiled.outputs[0]])


numbers = np.random.default_rng(0)
x, angles = numbers.random((1, 1, 2, 4), np.float32), numbers.random((8, 2), np.float32)
cos, sin = np.cos(angles), np.sin(angles)
got = run("RotaryEmbedding", [x, np.array([3], np.int64), cos, sin], interleaved=0)
left, right = x[0, 0, :, :2], x[0, 0, :, 2:]
turned = [left * cos[3:5] - right * sin[3:5], right * cos[3:5] + left * sin[3:5]]
expected = np.concatenate(turned, 1)[None, None]
wrong = not np.allclose(got, expected, rtol=1e-3)
print(f"reproduced: {got.tolist()} in place of {expected.tolist()}" if wrong else "not reproduced")
sys.exit(wrong)
