"""The cases of quantisers: drawn graphs whose weights are parameters, as in trained models."""

from __future__ import annotations

from dataclasses import replace

from generators.graph import Graph
from generators.graphs import Case, Style, pruned
from generators.inputs import SMOOTH_CHOICES

STYLE = Style(("float32",), (SMOOTH_CHOICES,))

OPERATORS = (
    *("conv1d", "conv2d", "depthwise_conv2d", "linear", "matmul", "addmm", "add", "mul", "sub", "relu", "relu6"),
    *("leaky_relu", "clip", "sigmoid", "tanh", "softmax", "concat", "mean", "max_pool2d", "avg_pool2d"),
    *("global_avg_pool", "reshape", "transpose", "flatten_2d", "squeeze", "unsqueeze", "slice", "split", "pad"),
    *("resize_nearest", "batch_norm", "hard_swish", "upsample_nearest"),
)
"""What quantisers have rules for, or have to leave in float."""

FURTHER = (
    *("abs", "neg", "exp", "log", "sqrt", "rsqrt", "sin", "cos", "square", "gelu", "silu", "maximum", "minimum", "div"),
    *("squared_difference", "sum", "max", "min", "prod", "log_softmax", "prelu", "less", "equal", "greater", "where"),
    *("gather", "stack", "argmax", "pow", "floor_divide", "conv_transpose2d", "resize_linear", "conv2d_same"),
)
"""Of which some quantisers make operators of levels (`Quantiser.further`), where others leave them in float."""

_WEIGHTED = (
    *("conv1d", "conv2d", "conv2d_same", "depthwise_conv2d", "conv_transpose2d", "linear", "matmul", "addmm"),
    "batch_norm",
)


def concerns(operator: str) -> bool:
    """Is the operator among those?"""
    return operator in OPERATORS or operator in FURTHER


def prepare(case: Case) -> Case:
    """The case with weights (leaves that operators with weights take, and not first) as parameters of their own, and
    all other leaves as inputs, as models have them."""
    graph, copies = case.graph, {}
    given = {leaf.name: leaf for leaf in graph.leaves}
    nodes = []
    for node in graph.nodes:
        operands = list(node.operands)
        for place, name in enumerate(operands):
            if place and name in given and node.op in _WEIGHTED:
                operands[place] = copies.setdefault(name, f"{name}w")
        nodes.append(replace(node, operands=tuple(operands)))
    leaves = [replace(leaf, role="input") for leaf in graph.leaves]
    leaves += [replace(given[name], name=copy, role="parameter") for name, copy in copies.items()]
    arrays = {**case.arrays, **{copy: case.arrays[name] for name, copy in copies.items()}}
    return pruned(Graph(tuple(leaves), tuple(nodes), graph.outputs), arrays)
