"""ValueMismatch: OpenVINO, com.microsoft.Attention with a scale.

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
x, weight, bias = (numbers.random(shape, np.float32) for shape in ((1, 3, 4), (4, 12), (12,)))
got = run("Attention", [x, weight, bias], num_heads=1, scale=2.0)
query, key, value = np.split(x[0].astype(np.float64) @ weight + bias, 3, 1)
scores = np.exp(2.0 * query @ key.T)
expected = (scores / scores.sum(1, keepdims=True) @ value)[None]
wrong = not np.allclose(got, expected, rtol=1e-3)
print(f"reproduced: {got.tolist()} in place of {expected.tolist()}" if wrong else "not reproduced")
sys.exit(wrong)
