"""Small ONNX networks with random weights, and the same with one wrong node: programs that write them, for a worker
that has onnx."""

from __future__ import annotations

FAULTS = ("operator", "weight", "attribute", "operands", "activation")

WRITE = '''
import json

import numpy as np
import onnx
from onnx import helper, numpy_helper

INPUTS, PARAMETERS = {}, {}


def network(rng):
    """Blocks of convolutions, normalisation, activations and sums, then a classifier: nodes and constants."""
    nodes, constants, channels = [], {}, 4

    def constant(name, *shape, scale=1.0):
        constants[name] = (rng.standard_normal(shape) * scale).astype("float32")
        return name

    def node(kind, inputs, **attributes):
        name = f"n{len(nodes)}"
        nodes.append(helper.make_node(kind, inputs, [name], name=f"{kind.lower()}_{len(nodes)}", **attributes))
        return name

    value = node("Conv", ["x", constant("stem", channels, 3, 3, 3, scale=0.3)], pads=[1, 1, 1, 1])
    for block in range(3):
        kept = value
        weight = constant(f"w{block}", channels, channels, 3, 3, scale=0.2)
        value = node("Conv", [value, weight, constant(f"b{block}", channels)], pads=[1, 1, 1, 1])
        names = [constant(f"{part}{block}", channels) for part in ("scale", "shift", "mean")]
        constants[f"var{block}"] = rng.uniform(0.5, 2, channels).astype("float32")
        value = node("BatchNormalization", [value, *names, f"var{block}"])
        value = node(rng.choice(["Relu", "Sigmoid", "Tanh", "LeakyRelu"]), [value])
        value = node("Add", [value, kept])
        if block < 2:
            value = node(rng.choice(["MaxPool", "AveragePool"]), [value], kernel_shape=[2, 2], strides=[2, 2])
    value = node("Flatten", [node("GlobalAveragePool", [value])])
    value = node("Gemm", [value, constant("head", channels, 10), constant("bias", 10)])
    value = node("Softmax", [value])
    return nodes, constants, value


def broken(nodes, constants, fault, rng):
    """Makes one node wrong in place; the name of its result."""
    kinds = {
        "operator": ("MaxPool", "AveragePool"),
        "weight": ("Conv",),
        "attribute": ("BatchNormalization",),
        "operands": ("Conv",),
        "activation": ("Relu", "Sigmoid", "Tanh", "LeakyRelu"),
    }
    node = rng.choice([item for item in nodes if item.op_type in kinds[fault] and "stem" not in item.input])
    if fault == "operator":
        node.op_type = "AveragePool" if node.op_type == "MaxPool" else "MaxPool"
    elif fault == "weight":
        wrong = constants[node.input[1]].copy()
        wrong.flat[rng.integers(wrong.size)] += np.float32(0.01)
        constants["wrong"] = wrong
        node.input[1] = "wrong"
    elif fault == "attribute":
        node.attribute.append(helper.make_attribute("epsilon", 1e-3))
    elif fault == "operands":
        constants["wrong"] = np.ascontiguousarray(constants[node.input[1]].transpose(1, 0, 2, 3))
        node.input[1] = "wrong"
    else:
        node.op_type = {"Relu": "Elu", "Sigmoid": "HardSigmoid", "Tanh": "Softsign", "LeakyRelu": "Elu"}[node.op_type]
    return node.output[0]


def write(path, nodes, constants, result):
    graph = helper.make_graph(
        nodes,
        "network",
        [helper.make_tensor_value_info("x", 1, [1, 3, 16, 16])],
        [helper.make_tensor_value_info(result, 1, [1, 10])],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), path)


def load(parameters):
    def run():
        rng = np.random.default_rng(SEED)
        nodes, constants, result = network(rng)
        write(f"{FOLDER}/right.onnx", nodes, constants, result)
        name = broken(nodes, constants, FAULT, rng)
        write(f"{FOLDER}/wrong.onnx", nodes, constants, result)
        return [np.frombuffer(name.encode(), "uint8")]  # of its result

    return run
'''
