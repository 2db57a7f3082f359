"""SpecialMismatch, ValueMismatch: OpenVINO, com.microsoft.Pad by a number that is no constant.

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


x = np.ones((1, 2), np.float32)
got = run("Pad", [x, np.array([0, 1, 0, 0]), np.array(3, np.float32)], constants=[1], mode="constant").tolist()
wrong = got != [[3, 1, 1]]
print(f"reproduced: {got} in place of [[3, 1, 1]]" if wrong else "not reproduced")
sys.exit(wrong)
