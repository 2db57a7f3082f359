"""Does a target agree with itself where the reference allows anything? What differs in kind (NaN, an infinity, a sign,
an integer) between two ways to compute one operator of the same operands is an inconsistency: neither need be wrong,
and nobody expects both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from generators.bounds.bounded import PRECISION, Bounded
from generators.graph import COMPLEX, FLOATS, Graph, Leaf, Node, TensorType
from generators.graphs import Case, pruned
from generators.ops import OPS
from generators.ops.slots import broadcast_shape
from generators.retype import retyped_graph
from oracles.judge.compare import Expected
from oracles.judge.discrepancy import Discrepancy
from oracles.questions import forward

NAME = "consistency"
CHECKS = {
    "level": "the lowest level of the compiler",
    "roles": "parameters given as inputs",
    "lanes": "the same elements at other places of a longer tensor",
}
"""What each output is compared with: another program in the same process."""
KINDS = {
    1: "NaN and a number",
    2: "an infinity and another number",
    3: "numbers of other signs",
    4: "other integers",
    5: "a zero and another number",
}
"""How an element differs, as numbers in the outputs of a program."""
ROUNDED_AWAY = 2.0**-7
"""Sums of numbers of about one may lose what is less, in bfloat16."""
LENGTH = 67
"""Elements of a longer tensor: whole vectors, and a rest that fills none."""
ELEMENTWISE = ("unary", "activation", "binary", "comparison", "special", "numerals", "division", "bitwise", "logic")
"""Families of operators of which the result's element depends on the operands' elements at the same place."""

FREE = {
    "cast": "what a cast to integers makes of NaN and of what is too large is undefined (C17 6.3.1.4; torch.Tensor.to)",
    "argsort": "the order of equal keys is not kept unless a stable sort is asked for (torch.argsort)",
    "topk_indices": "which of equal elements are taken is not said (torch.topk)",
    "scatter": "which of several values an index gets is not said (torch.Tensor.scatter_, tf.tensor_scatter_nd_update)",
    "scatter_from_end": "which of several values an index gets is not said (tf.tensor_scatter_nd_update)",
    "scatter_nd": "which of several values an index gets is not said (tf.tensor_scatter_nd_update, ONNX ScatterND)",
    "scatter_nd_from_end": "which of several values an index gets is not said (tf.tensor_scatter_nd_update)",
    "index_put": "which of several values an index gets is not said (torch.Tensor.index_put_)",
    "slice_update": "a copy: nothing is computed",
    "slice_update_front": "a copy: nothing is computed",
}
"""Operators whose documentation leaves results open, with where it says so."""
FAMILIES = {
    "layout": "nothing is computed",
    "complex": "annex G of C11 leaves open what comes of numbers with an infinite or NaN part",
    "linalg": "factors are unique up to signs and order only",
    "fourier": "sums of products in any order",
    **dict.fromkeys(
        ("conv", "recurrent", "attention"),
        "sums of products in any order, rounded once or twice (FMA): two that overflow make NaN, or an infinity",
    ),
    "quantization": "ties of rounding are not said",
}
"""The same of whole families."""
UNSORTED = ("searchsorted",)
"""The first operand has to be sorted along its last axis: where it is not, nothing is said (numpy.searchsorted)."""
NARROW = ("float16", "bfloat16")
"""Compilers may keep these in float32 on the way (`emulate_precision_casts` of torch.compile is off by default, XLA's
`xla_allow_excess_precision` on; ONNX Runtime takes casts out): levels may differ by an overflow."""


def concerns(operator: str) -> bool:
    """Is it worth asking?"""
    return operator not in FREE and OPS[operator].family not in FAMILIES


def prepare(case: Case) -> Case:
    """The first node alone, whose operands are leaves: what comes later has operands that may differ by rounding."""
    return pruned(replace(case.graph, outputs=(case.graph.nodes[0].name,)), case.arrays)


def unsupported(graph: Graph) -> str | None:
    """Why a graph cannot be asked about, or None. Several nodes side by side can."""
    leaves = {leaf.name for leaf in graph.leaves}
    if any(name not in leaves for node in graph.nodes for name in node.operands) or leaves & set(graph.outputs):
        return "an operand that is computed may differ by rounding"
    if any(type_.dtype in COMPLEX for type_ in graph.types.values()):
        return FAMILIES["complex"]
    return None


def without_parameters(graph: Graph) -> Graph:
    """All leaves as inputs, which no compiler can fold."""
    return replace(graph, leaves=tuple(replace(leaf, role="input") for leaf in graph.leaves))


def longer(graph: Graph, fits: Callable[[Graph, Node], bool] = lambda graph, node: True) -> Graph | None:
    """The elementwise nodes, of those that fit, of tensors of one axis, which hold each element several times; None
    where there is none."""
    leaves: dict[str, Leaf] = {}
    nodes = []
    for node in graph.nodes:
        own = [graph.types[name] for name in node.operands]
        if _elementwise(graph, node) and fits(graph, node):
            leaves |= {
                name: Leaf(name, TensorType(type_.dtype, (length(node.type.size),)), domain=_leaf(graph, name).domain)
                for name, type_ in zip(node.operands, own, strict=True)
            }
            nodes.append(node)
    if not nodes:
        return None
    return retyped_graph(Graph(tuple(leaves.values()), tuple(nodes), tuple(node.name for node in nodes)))


def length(size: int) -> int:
    """Elements of a tensor that holds so many several times."""
    return LENGTH + size


def _leaf(graph: Graph, name: str) -> Leaf:
    return next(leaf for leaf in graph.leaves if leaf.name == name)


def _elementwise(graph: Graph, node: Node) -> bool:
    shapes = [graph.types[name].shape for name in node.operands]
    fits = node.type.size > 0 and node.type.shape == broadcast_shape(shapes)
    return fits and elementwise(node.op) and node.name in graph.outputs


def elementwise(operator: str) -> bool:
    """Does an element of its result depend on the operands' elements at the same place?"""
    return OPS[operator].family in ELEMENTWISE


def expect(case: Case) -> Expected:
    """No difference in kind, where the reference is undetermined and nothing leaves the result open. Other elements are
    the business of the forward question, or their difference is one of rounding: they count as undetermined here."""
    one = forward.expect(case)
    names, types, values = [], [], []
    nodes = {node.name: node for node in case.graph.nodes}
    for check in CHECKS:
        for name, type_, bound in zip(one.names, one.types, one.values, strict=True):
            free = ~bound.undetermined | left_open(case, nodes[name], check)
            names.append(f"{check}_{name}")
            types.append(TensorType("uint8", type_.shape))
            values.append(no_difference(np.broadcast_to(free, type_.shape)))
    return Expected(tuple(names), tuple(types), tuple(values), said)


def no_difference(free: np.ndarray) -> Bounded:
    """What is expected of elements that are compared: none but the free ones differs in kind."""
    return Bounded(np.zeros(free.shape, np.uint8), np.where(free, np.inf, 0.0), "uint8")


def asks(expected: Expected) -> bool:
    """Is any element compared?"""
    return any(not value.undetermined.all() for value in expected.values)


def worth(case: Case) -> bool:
    """Is there an element where the reference allows anything, and no document leaves the result open?"""
    return asks(expect(case))


def left_open(case: Case, node: Node, check: str) -> bool:
    """Does a document leave the whole result open?"""
    if not concerns(node.op):
        return True
    arrays = [case.arrays[name] for name in node.operands]
    if node.op in UNSORTED and not (arrays[0][..., 1:] >= arrays[0][..., :-1]).all():
        return True
    if check == "level" and any(str(array.dtype) in NARROW for array in arrays):
        return True
    return any(_subnormal(array) for array in arrays)  # which may be flushed, in vectors and not elsewhere


def _subnormal(array: np.ndarray) -> bool:
    if str(array.dtype) not in FLOATS:
        return False
    size = np.abs(array.astype(np.float64))
    return bool(((size > 0) & (size < PRECISION[str(array.dtype)].tiny)).any())


def said(name: str, output: np.ndarray, found: Discrepancy) -> Discrepancy:
    """What a difference is called."""
    if found.symptom != "value":
        return found
    wrong = np.argwhere(output)
    first = tuple(int(i) for i in wrong[0])
    check = name.split("_")[0]
    kind = KINDS.get(int(output[first]), "a difference of an unknown kind")
    where = f"({len(wrong)} of {output.size}, first at {list(first)})"
    return Discrepancy("inconsistency", f"beside {CHECKS[check]}: {kind} {where}", found.output)
