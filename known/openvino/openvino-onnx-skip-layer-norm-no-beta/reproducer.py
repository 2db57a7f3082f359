"""Rejection: OpenVINO, com.microsoft.SkipLayerNormalization with a bias and without beta.

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
x, skip, gamma, bias = (numbers.random(shape, np.float32) for shape in ((1, 2, 4), (1, 2, 4), (4,), (4,)))
total = x + skip + bias
centred = total - total.mean(-1, keepdims=True)
expected = centred / np.sqrt(total.var(-1, keepdims=True) + 1e-3) * gamma
try:
    got = run("SkipLayerNormalization", [x, skip, gamma, None, bias], epsilon=1e-3)
except RuntimeError as error:
    print(f"reproduced: {' '.join(str(error).split())[-200:]}")
    sys.exit(1)
wrong = not np.allclose(got, expected, atol=1e-4)
print(f"reproduced: {got.tolist()} in place of {expected.tolist()}" if wrong else "not reproduced")
sys.exit(wrong)
