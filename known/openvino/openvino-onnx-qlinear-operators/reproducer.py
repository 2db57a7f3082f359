"""ValueMismatch: OpenVINO, quantised operators of com.microsoft.

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


def number(value):
    return np.array(value, np.float32)


def levels(*values):
    return np.array(values[0] if len(values) == 1 else values, np.uint8)


ZERO, HALF = levels(0), levels(100)
CASES = (
    (
        "QLinearMul",
        [levels(255, 10), number(0.02), ZERO, levels(255, 9), number(0.02), ZERO, number(0.05), ZERO],
        {},
        [255, 1],
    ),
    (
        "QLinearAdd",
        [levels(3, 200), number(0.1), ZERO, levels(0, 200), number(0.1), ZERO, number(0.2), ZERO],
        {},
        [2, 200],
    ),
    ("QLinearLeakyRelu", [levels(0, 100), number(0.02), HALF, number(0.02), HALF], {"alpha": 0.1}, [90, 100]),
    ("QLinearConcat", [number(0.03), ZERO, levels(100, 7), number(0.02), ZERO], {"axis": 0}, [67, 5]),
)
wrong = False
for operator, operands, attributes, expected in CASES:
    got = run(operator, operands, [i for i, a in enumerate(operands) if not a.ndim], **attributes).tolist()
    if got != expected:
        print(f"reproduced: {operator}: {got} in place of {expected}")
        wrong = True
if not wrong:
    print("not reproduced")
sys.exit(wrong)
