"""Do integers compute what the quantised model says? A graph of real numbers gets what a quantiser writes around its
operators, quantising and dequantising, with scales from what its values range over. It still is a graph, and is judged
like any other: the float64 reference rounds to the same levels, and says where a correct evaluation may be a level off,
since what it rounds lies that near to the middle of two. Back ends that make integer operators of it owe the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from zlib import crc32

import numpy as np

from generators.bounds.bounded import PRECISION, Bounded
from generators.graph import Attr, Graph, Leaf, Node
from generators.graphs import FLOAT_CHOICES, Case, Style, pruned
from generators.ops import OPS, valid
from generators.ops.nn.fake_quantize import RANGES
from oracles.judge import reference

NAME = "quantized"

CHANNELS: Mapping[str, int] = {
    **dict.fromkeys(("conv1d", "conv2d", "conv3d", "depthwise_conv2d", "linear"), 0),
    **dict.fromkeys(("conv_transpose1d", "conv_transpose2d", "conv_transpose3d"), 1),
    "matmul": -1,
}
"""Operator -> the axis of its channels in its weight, the second operand (ONNX Runtime's quantiser has one scale for
each of these)."""
_REAL_ONLY = 2
"""Operands from here on (biases) stay real: quantisers hold them as int32, with scales that are products of others."""


STYLE = Style(("float32",), (FLOAT_CHOICES,))


@dataclass(frozen=True)
class Scheme:
    """activations, weights: dtypes; symmetric: zero points of activations are the middle of the range; per_channel:
    weights have a scale for each channel."""

    activations: str
    weights: str
    symmetric: bool
    per_channel: bool


SCHEMES: Mapping[str, Scheme] = {
    "u8s8": Scheme("uint8", "int8", False, False),
    "u8s8-channels": Scheme("uint8", "int8", False, True),
    "s8s8": Scheme("int8", "int8", True, False),
    "s8s8-channels": Scheme("int8", "int8", True, True),
    "u8u8": Scheme("uint8", "uint8", False, False),
}
"""What ONNX Runtime's static quantiser offers on a CPU (documentation of quantize_static: activation_type, weight_type,
per_channel, ActivationSymmetric)."""


def parameters(value: np.ndarray, dtype: str, symmetric: bool) -> tuple[float, int]:
    """Scale (a float32) and zero point by which the finite ones of these numbers, and 0, fit in the dtype."""
    finite = value[np.isfinite(value)]
    low, high = (float(end(finite, initial=0.0)) for end in (np.min, np.max))
    least, most = RANGES[dtype]
    if symmetric:
        middle = (least + most + 1) // 2
        scale, zero_point = max(-low, high) / (most - middle), middle
    else:
        scale = (high - low) / (most - least)
        zero_point = least
    with np.errstate(over="ignore"):
        scale = float(np.float32(scale))
    if not PRECISION["float32"].tiny < scale < PRECISION["float32"].largest:
        return 1.0, zero_point
    if not symmetric:
        zero_point = int(np.clip(np.rint(least - low / scale), least, most))
    return scale, zero_point


def _around(leaf_or_node: Leaf | Node, value: Bounded, dtype: str, symmetric: bool, axis: int | None) -> Node:
    """The node that quantises a value and dequantises it again, with a scale for each place on the axis, or one."""
    name, type_ = leaf_or_node.name, leaf_or_node.type
    attrs: tuple[tuple[str, Attr], ...]
    if axis is None:
        scale, zero_point = parameters(value.value, dtype, symmetric)
        attrs = (("dtype", dtype), ("scale", scale), ("zero_point", zero_point))
        return Node(f"{name}_q", "quantize_dequantize", (name,), attrs, type_)
    parts = [parameters(part, dtype, True) for part in np.moveaxis(value.value, axis, 0)]
    zero_point = parts[0][1] if parts else 0
    attrs = (
        ("dtype", dtype),
        ("axis", axis),
        ("scales", tuple(scale for scale, _ in parts)),
        ("zero_point", zero_point),
    )
    return Node(f"{name}_q", "quantize_dequantize_channels", (name,), attrs, type_)


def quantized(case: Case, scheme: Scheme) -> Case | None:
    """The case with all float32 values quantised that operators take, but three in eight results of operators
    (quantisers leave out what is fused: an activation after a convolution), and what it returns. None where nothing
    is."""
    graph, values = case.graph, reference.evaluate(case.graph, case.arrays)
    text = str(graph)
    weights = {
        node.operands[1]: CHANNELS[node.op] % graph.types[node.operands[1]].rank
        for node in graph.nodes
        if node.op in CHANNELS and node.operands[1] != node.operands[0]
    }
    used = {name for node in graph.nodes for name in node.operands[:_REAL_ONLY]}
    chosen: dict[str, Node] = {}
    for item in (*graph.leaves, *graph.nodes):
        inner = isinstance(item, Node) and item.name not in graph.outputs
        confined = isinstance(item, Leaf) and (item.domain is not None or item.name not in used)
        left_out = inner and crc32(f"{item.name} {text}".encode()) % 8 < 3
        if item.type.dtype != "float32" or confined or left_out:
            continue
        weight = isinstance(item, Leaf) and item.name in weights
        axis = weights[item.name] if weight and scheme.per_channel else None
        dtype = scheme.weights if weight else scheme.activations
        symmetric = (weight and dtype == "int8") or (not weight and scheme.symmetric)
        chosen[item.name] = _around(item, values[item.name], dtype, symmetric, axis)
    if not chosen:
        return None
    nodes = [chosen[leaf.name] for leaf in graph.leaves if leaf.name in chosen]
    for node in graph.nodes:
        taken = (chosen[o].name if o in chosen and i < _REAL_ONLY else o for i, o in enumerate(node.operands))
        nodes.append(replace(node, operands=tuple(taken)))
        nodes += [chosen[node.name]] if node.name in chosen else []
    outputs = tuple(chosen[name].name if name in chosen else name for name in graph.outputs)
    return pruned(Graph(graph.leaves, tuple(nodes), outputs), case.arrays)


def prepare(case: Case) -> Case:
    """Quantised by one of the schemes, by chance but always the same one; as it is where that cannot be."""
    text = str(case.graph)
    name = min(SCHEMES, key=lambda name: crc32(f"{name} {text}".encode()))
    found = quantized(case, SCHEMES[name])
    # an operand with a domain may have become a computed value, which has none
    return found if found and valid(found.graph) else case


def concerns(operator: str) -> bool:
    """What quantisers write levels around."""
    return OPS[operator].family in _FAMILIES or operator in _OTHERS


_FAMILIES = {"conv", "pooling", "layout"}
_OTHERS = frozenset(
    (
        *("matmul", "linear", "addmm", "add", "sub", "mul", "div", "relu", "leaky_relu", "clip", "sigmoid", "softmax"),
        *("concat", "mean", "max", "min", "where", "hard_sigmoid", "hard_swish", "silu", "gelu", "tanh", "layer_norm"),
        *("instance_norm", "batch_norm", "resize_nearest", "resize_linear", "gather", "take", "log_softmax"),
    )
)
