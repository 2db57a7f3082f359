"""Composite operators written with simpler ones of our own, and matrix products in two halves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import pi, sqrt

import numpy as np

from generators.graph import Attr, Graph, Leaf, Node, TensorType
from generators.graphs import Case
from generators.ops import OPS
from generators.ops.spec import TypeRuleError


@dataclass
class GraphBuilder:
    """Nodes that take the place of one, in the making. types: of all values that they may use."""

    prefix: str
    types: dict[str, TensorType]
    nodes: list[Node] = field(default_factory=list)
    constants: dict[str, np.ndarray] = field(default_factory=dict)

    def add(self, operator: str, *operands: str, **attrs: Attr) -> str:
        """One more node; returns its name."""
        name = f"{self.prefix}_{len(self.nodes)}"
        type_ = OPS[operator].result(tuple(self.types[o] for o in operands), attrs)
        self.nodes.append(Node(name, operator, operands, tuple(attrs.items()), type_))
        self.types[name] = type_
        return name

    def constant(self, value: float, like: str) -> str:
        """A scalar parameter of the dtype of a value."""
        name, dtype = f"{self.prefix}_c{len(self.constants)}", self.types[like].dtype
        self.constants[name] = np.asarray(value, dtype)
        self.types[name] = TensorType(dtype, ())
        return name

    def array(self, values: np.ndarray) -> str:
        """A constant array."""
        name = f"{self.prefix}_c{len(self.constants)}"
        self.constants[name] = values
        self.types[name] = TensorType(str(values.dtype), values.shape)
        return name

    def slice(self, operand: str, axis: int, start: int, stop: int) -> str:
        """Places start to stop of one axis."""
        shape = self.types[operand].shape
        starts, stops = [0] * len(shape), list(shape)
        starts[axis], stops[axis] = start, stop
        return self.add("slice", operand, starts=tuple(starts), stops=tuple(stops), steps=(1,) * len(shape))


Attrs = Mapping[str, Attr]
Rule = Callable[[GraphBuilder, Node], str | None]
"""Adds the nodes that compute what a node does, and returns the name of their result; None where it does not apply."""


def _shifted(s: GraphBuilder, x: str, axes: Attr) -> tuple[str, str]:
    """x without its greatest element, and that element."""
    top = s.add("max", x, axes=axes, keepdims=True)
    return s.add("sub", x, top), top


def _softmax(s: GraphBuilder, node: Node) -> str:
    e = s.add("exp", _shifted(s, node.operands[0], (node.attributes["axis"],))[0])  # type: ignore[arg-type]
    return s.add("div", e, s.add("sum", e, axes=(node.attributes["axis"],), keepdims=True))  # type: ignore[arg-type]


def _log_softmax(s: GraphBuilder, node: Node) -> str:
    axes = (node.attributes["axis"],)
    low, _ = _shifted(s, node.operands[0], axes)  # type: ignore[arg-type]
    total = s.add("sum", s.add("exp", low), axes=axes, keepdims=True)  # type: ignore[arg-type]
    return s.add("sub", low, s.add("log", total))


def _logsumexp(s: GraphBuilder, node: Node) -> str | None:
    axes, keep = node.attributes["axes"], node.attributes["keepdims"]
    if not axes:
        return None
    low, top = _shifted(s, node.operands[0], axes)
    total = s.add("log", s.add("sum", s.add("exp", low), axes=axes, keepdims=True))
    both = s.add("add", total, top)
    return both if keep else s.add("sum", both, axes=axes, keepdims=False)  # over size 1


def _standardized(s: GraphBuilder, x: str, axes: tuple[int, ...], epsilon: Attr) -> str:
    apart = s.add("sub", x, s.add("mean", x, axes=axes, keepdims=True))
    spread = s.add("mean", s.add("mul", apart, apart), axes=axes, keepdims=True)
    root = s.add("sqrt", s.add("add", spread, s.constant(epsilon, x)))  # type: ignore[arg-type]
    return s.add("div", apart, root)


def _layer_norm(s: GraphBuilder, node: Node) -> str:
    x, scale, bias = node.operands
    axes = tuple(range(-s.types[scale].rank, 0))
    return s.add("add", s.add("mul", _standardized(s, x, axes, node.attributes["epsilon"]), scale), bias)


def _rms_norm(s: GraphBuilder, node: Node) -> str:
    x, scale = node.operands
    axes = tuple(range(-s.types[scale].rank, 0))
    square = s.add("mean", s.add("mul", x, x), axes=axes, keepdims=True)
    root = s.add("sqrt", s.add("add", square, s.constant(node.attributes["epsilon"], x)))  # type: ignore[arg-type]
    return s.add("mul", s.add("div", x, root), scale)


def _instance_norm(s: GraphBuilder, node: Node) -> str | None:
    x, scale, bias = node.operands
    rank = s.types[x].rank
    y = _standardized(s, x, tuple(range(2, rank)), node.attributes["epsilon"])
    axes = range(rank - 2)
    for _ in axes:
        scale, bias = (s.add("unsqueeze", p, axis=s.types[p].rank) for p in (scale, bias))
    return s.add("add", s.add("mul", y, scale), bias)


def _gelu(s: GraphBuilder, node: Node) -> str:
    (x,) = node.operands
    inner = s.add("erf", s.add("mul", x, s.constant(sqrt(0.5), x)))
    return s.add("mul", s.add("mul", x, s.constant(0.5, x)), s.add("add", inner, s.constant(1, x)))


def _gelu_tanh(s: GraphBuilder, node: Node) -> str:
    (x,) = node.operands
    cube = s.add("mul", s.add("mul", s.add("mul", x, x), x), s.constant(0.044715, x))
    inner = s.add("tanh", s.add("mul", s.add("add", x, cube), s.constant(sqrt(2 / pi), x)))
    return s.add("mul", s.add("mul", x, s.constant(0.5, x)), s.add("add", inner, s.constant(1, x)))


def _sigmoid(s: GraphBuilder, node: Node) -> str:
    (x,) = node.operands
    one = s.constant(1, x)
    return s.add("div", one, s.add("add", one, s.add("exp", s.add("neg", x))))


def _silu(s: GraphBuilder, node: Node) -> str:
    (x,) = node.operands
    return s.add("mul", x, s.add("sigmoid", x))


def _softplus(s: GraphBuilder, node: Node) -> str:
    (x,) = node.operands
    rest = s.add("log1p", s.add("exp", s.add("neg", s.add("abs", x))))
    return s.add("add", s.add("relu", x), rest)


def _mish(s: GraphBuilder, node: Node) -> str:
    (x,) = node.operands
    return s.add("mul", x, s.add("tanh", s.add("softplus", x)))


def _relu(s: GraphBuilder, node: Node) -> str:
    (x,) = node.operands
    return s.add("maximum", x, s.constant(0, x))


def _variance(s: GraphBuilder, node: Node) -> str | None:
    (x,), axes = node.operands, node.attributes["axes"]
    if not axes:
        return None
    apart = s.add("sub", x, s.add("mean", x, axes=axes, keepdims=True))
    return s.add("mean", s.add("mul", apart, apart), axes=axes, keepdims=node.attributes["keepdims"])


def _mean(s: GraphBuilder, node: Node) -> str | None:
    (x,) = node.operands
    if not node.type.size or not s.types[x].size or not s.types[x].dtype.startswith("float"):
        return None
    total = s.add("sum", x, **node.attributes)
    return s.add("div", total, s.constant(s.types[x].size // node.type.size, x))


def _matmul(s: GraphBuilder, node: Node) -> str | None:
    """Columns of the right operand in two halves."""
    left, right = node.operands
    columns = s.types[right].shape[-1]
    if columns < 2:
        return None
    cut, last = (columns + 1) // 2, s.types[right].rank - 1
    parts = [s.add("matmul", left, s.slice(right, last, *ends)) for ends in ((0, cut), (cut, columns))]
    return s.add("concat", *parts, axis=-1)


def _linear(s: GraphBuilder, node: Node) -> str | None:
    """Rows of the weight in two halves, with their biases."""
    x, weight, bias = node.operands
    rows = s.types[weight].shape[0]
    if rows < 2:
        return None
    halves = ((0, (rows + 1) // 2), ((rows + 1) // 2, rows))
    parts = [s.add("linear", x, s.slice(weight, 0, *ends), s.slice(bias, 0, *ends)) for ends in halves]
    return s.add("concat", *parts, axis=-1)


SPLITS: dict[str, Rule] = {"matmul": _matmul, "linear": _linear}
"""Products in halves."""

COMPOSITES: dict[str, Rule] = {
    "softmax": _softmax,
    "log_softmax": _log_softmax,
    "logsumexp": _logsumexp,
    "layer_norm": _layer_norm,
    "rms_norm": _rms_norm,
    "instance_norm": _instance_norm,
    "gelu": _gelu,
    "gelu_tanh": _gelu_tanh,
    "sigmoid": _sigmoid,
    "silu": _silu,
    "softplus": _softplus,
    "mish": _mish,
    "relu": _relu,
    "variance": _variance,
    "mean": _mean,
}
"""Composite operators from simpler ones."""


def rewritten(case: Case, rules: Mapping[str, Rule]) -> Case | None:
    """The case with every node that has a rule written by it; None where there is none."""
    types: dict[str, TensorType] = dict(case.graph.types)
    nodes: list[Node] = []
    constants: dict[str, np.ndarray] = {}
    places: dict[str, str] = {}
    for node in case.graph.nodes:
        node = replace(node, operands=tuple(places.get(o, o) for o in node.operands))
        steps = GraphBuilder(f"{node.name}_d", types)
        try:
            result = rules[node.op](steps, node) if node.op in rules else None
        except TypeRuleError:  # the greatest of no elements, say
            result = None
        if result is None:
            nodes.append(node)
            continue
        assert types[result] == node.type, f"{node}: {types[result]} instead of {node.type}"
        nodes += steps.nodes
        constants |= steps.constants
        places[node.name] = result
    if not places:
        return None
    leaves = (
        *case.graph.leaves,
        *(Leaf(n, TensorType(str(a.dtype), a.shape), "parameter") for n, a in constants.items()),
    )
    outputs = tuple(places.get(name, name) for name in case.graph.outputs)
    return Case(Graph(leaves, tuple(nodes), outputs), {**case.arrays, **constants})
