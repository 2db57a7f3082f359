"""Small ONNX networks, three fixed ones and any number of drawn ones, and the same with one layer that is wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class _Builder:
    """Nodes and weights, one after the other."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def weight(self, *shape: int, centre: float = 0.0) -> str:
        fan = max(1, int(np.prod(shape[1:])))
        return self.constant((centre + self.rng.normal(size=shape) / np.sqrt(fan)).astype(np.float32))

    def constant(self, array: np.ndarray) -> str:
        self.weights.append(numpy_helper.from_array(array, f"w{len(self.weights)}"))
        return self.weights[-1].name

    def __call__(self, kind: str, *inputs: str, **attributes: Any) -> str:
        self.nodes.append(helper.make_node(kind, inputs, [f"v{len(self.nodes)}"], **attributes))
        return self.nodes[-1].output[0]

    def norm(self, x: str, channels: int) -> str:
        mean = self.constant(self.rng.normal(scale=0.3, size=channels).astype(np.float32))
        variance = self.constant(self.rng.uniform(0.1, 1.0, channels).astype(np.float32))
        return self("BatchNormalization", x, self.weight(channels, centre=1.0), self.weight(channels), mean, variance)

    def model(self, shape: tuple[int, ...], output: str) -> onnx.ModelProto:
        given = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
        returned = helper.make_tensor_value_info(output, TensorProto.FLOAT, [shape[0], 10])
        graph = helper.make_graph(self.nodes, "network", [given], [returned], self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def residual() -> onnx.ModelProto:
    """Convolutions with batch normalisation, a residual, pools."""
    g = _Builder(1)
    x = g("Relu", g.norm(g("Conv", "x", g.weight(8, 3, 3, 3), pads=[1, 1, 1, 1]), 8))
    x = g("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    y = g("Relu", g.norm(g("Conv", x, g.weight(8, 8, 3, 3), pads=[1, 1, 1, 1]), 8))
    x = g("Add", x, g.norm(g("Conv", y, g.weight(8, 8, 1, 1)), 8))
    x = g("Flatten", g("GlobalAveragePool", x))
    return g.model((2, 3, 16, 16), g("Gemm", x, g.weight(10, 8), g.weight(10), transB=1))


def separable() -> onnx.ModelProto:
    """Depthwise convolutions, squeeze and excitation, swish; softmax at the end."""
    g = _Builder(2)
    x = g.norm(g("Conv", "x", g.weight(12, 3, 3, 3), strides=[2, 2], auto_pad="SAME_UPPER"), 12)
    x = g("Mul", x, g("Sigmoid", x))
    x = g("HardSwish", g.norm(g("Conv", x, g.weight(12, 1, 5, 5), group=12, pads=[2, 2, 2, 2]), 12))
    s = g("Relu", g("Conv", g("GlobalAveragePool", x), g.weight(4, 12, 1, 1)))
    x = g("Mul", x, g("Sigmoid", g("Conv", s, g.weight(12, 4, 1, 1))))
    x = g("AveragePool", x, kernel_shape=[2, 2], strides=[2, 2])
    x = g("ReduceMean", x, g.constant(np.array([2, 3])), keepdims=0)
    return g.model((2, 3, 16, 16), g("Softmax", g("MatMul", x, g.weight(12, 10)), axis=-1))


def attention() -> onnx.ModelProto:
    """A block of a transformer."""
    g = _Builder(3)
    q, k, v = (g("MatMul", "x", g.weight(32, 32)) for _ in range(3))
    scores = g("Div", g("MatMul", q, g("Transpose", k, perm=[0, 2, 1])), g.constant(np.array(32**0.5, np.float32)))
    x = g("Add", "x", g("MatMul", g("Softmax", scores, axis=-1), v))
    x = g("LayerNormalization", x, g.weight(32, centre=1.0), g.weight(32), axis=-1)
    h = g("MatMul", x, g.weight(32, 64))
    h = g(
        "Mul",
        h,
        g("Add", g("Erf", g("Div", h, g.constant(np.array([2**0.5], np.float32)))), g.constant(np.ones(1, np.float32))),
    )
    x = g("Add", x, g("MatMul", h, g.weight(64, 32)))
    x = g("ReduceMean", x, g.constant(np.array([1])), keepdims=0)
    return g.model((2, 12, 32), g("Gemm", x, g.weight(32, 10), g.weight(10)))


def blocks(seed: int) -> onnx.ModelProto:
    """Blocks of convolutions, normalisation, activations, sums and pools, which the seed draws; softmax at the end."""
    g = _Builder(seed)
    x = g("Conv", "x", g.weight(4, 3, 3, 3), pads=[1, 1, 1, 1])
    for block in range(3):
        y = g.norm(g("Conv", x, g.weight(4, 4, 3, 3), g.weight(4), pads=[1, 1, 1, 1]), 4)
        x = g("Add", g(g.rng.choice(list(OTHERS)), y), x)
        if block < 2:
            x = g(g.rng.choice(["MaxPool", "AveragePool"]), x, kernel_shape=[2, 2], strides=[2, 2])
    x = g("Flatten", g("GlobalAveragePool", x))
    return g.model((1, 3, 16, 16), g("Softmax", g("Gemm", x, g.weight(4, 10), g.weight(10))))


OTHERS = {"Relu": "Elu", "Sigmoid": "HardSigmoid", "Tanh": "Softsign", "LeakyRelu": "Elu"}
"""Activations, and what is put in their place where one is to be wrong."""
NETWORKS: dict[str, Callable[[], onnx.ModelProto]] = {
    "residual": residual,
    "separable": separable,
    "attention": attention,
}


def _nodes(model: onnx.ModelProto, *kinds: str) -> list[onnx.NodeProto]:
    return [node for node in model.graph.node if node.op_type in kinds]


def larger_epsilon(model: onnx.ModelProto) -> str:
    """Of the last batch normalisation: 1e-3 in place of 1e-5."""
    node = _nodes(model, "BatchNormalization")[-1]
    node.attribute.append(helper.make_attribute("epsilon", 1e-3))
    return node.output[0]


def moved_padding(model: onnx.ModelProto) -> str:
    """Of the first convolution that has some: all of it after the image in place of around it."""
    node = next(n for n in _nodes(model, "Conv") if any(a.name == "pads" for a in n.attribute))
    pads = next(a for a in node.attribute if a.name == "pads")
    pads.ints[:] = [0, 0, *(2 * p for p in pads.ints[2:])]
    return node.output[0]


def wrong_sign(model: onnx.ModelProto) -> str:
    """Of one weight of the last product, of a typical size."""
    node = _nodes(model, "Gemm", "MatMul", "Conv")[-1]
    name = node.input[1]
    tensor = next(t for t in model.graph.initializer if t.name == name)
    array = numpy_helper.to_array(tensor).copy()
    place = np.argsort(np.abs(array), axis=None)[array.size // 2]
    array.flat[place] *= -1
    tensor.CopyFrom(numpy_helper.from_array(array, name))
    return node.output[0]


def wrong_mean(model: onnx.ModelProto) -> str:
    """The last mean is of one element less: off by a factor."""
    node = _nodes(model, "ReduceMean", "GlobalAveragePool")[-1]
    scale = numpy_helper.from_array(np.array(1 + 1e-4, np.float32), "scale")
    model.graph.initializer.append(scale)
    last = helper.make_node("Mul", [f"{node.output[0]}_mean", "scale"], list(node.output))
    node.output[0] = f"{node.output[0]}_mean"
    place = list(model.graph.node).index(node)
    model.graph.node.insert(place + 1, last)
    return last.output[0]


def other_pool(model: onnx.ModelProto) -> str:
    """The last pool takes means in place of maxima, or the other way round."""
    node = _nodes(model, "MaxPool", "AveragePool")[-1]
    node.op_type = "AveragePool" if node.op_type == "MaxPool" else "MaxPool"
    return node.output[0]


def other_activation(model: onnx.ModelProto) -> str:
    """The first activation is one that is like it."""
    node = _nodes(model, *OTHERS)[0]
    node.op_type = OTHERS[node.op_type]
    return node.output[0]


def _other_weight(model: onnx.ModelProto, node: onnx.NodeProto, change: Callable[[np.ndarray], np.ndarray]) -> str:
    tensor = next(t for t in model.graph.initializer if t.name == node.input[1])
    tensor.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(change(numpy_helper.to_array(tensor))), tensor.name))
    return node.output[0]


def nudged_weight(model: onnx.ModelProto) -> str:
    """One weight of the second convolution is off by a hundredth."""
    nudge = np.float32(0.01)
    return _other_weight(
        model, _nodes(model, "Conv")[1], lambda w: w + nudge * (np.arange(w.size) == 5).reshape(w.shape)
    )


def swapped_channels(model: onnx.ModelProto) -> str:
    """The weights of the last convolution have their channels of inputs and outputs swapped."""
    return _other_weight(model, _nodes(model, "Conv")[-1], lambda w: w.transpose(1, 0, 2, 3))


DRAWN = "blocks"
"""In FAULTS: of the drawn networks."""
FAULTS: dict[str, tuple[Callable[[onnx.ModelProto], str], tuple[str, ...]]] = {
    "larger epsilon": (larger_epsilon, ("residual", "separable", DRAWN)),
    "moved padding": (moved_padding, ("residual", "separable", DRAWN)),
    "wrong sign": (wrong_sign, ("residual", "separable", "attention", DRAWN)),
    "wrong mean": (wrong_mean, ("residual", "separable", "attention", DRAWN)),
    "other pool": (other_pool, (DRAWN,)),
    "other activation": (other_activation, (DRAWN,)),
    "nudged weight": (nudged_weight, (DRAWN,)),
    "swapped channels": (swapped_channels, (DRAWN,)),
}
"""What is done to a network (which returns the value that is wrong then), and to which ones it can be."""
