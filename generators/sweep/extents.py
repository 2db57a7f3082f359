"""Cases of unusual extent: large ones, whose sizes cross tiles and blocks of sums, at which kernels go parallel and
split their work, and deep ones, of more dimensions than tables of kernels have places. Each once alone, and twice in
company, since compilers fuse what stands beside each other and then choose by the size of the whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import TypeVar

from generators.graph import LARGEST, Graph, Leaf, Node, TensorType
from generators.graphs import SeededDraw
from generators.ops import OPS
from generators.ops.spec import Attrs, Shape, TypeRuleError, Types

T = TypeVar("T")

ROWS: tuple[tuple[Shape, ...], ...] = (((2**16,),), ((2**15, 2),), ((3, 16387),), ((67, 961),))
"""All in one row; PyTorch's grain of 2**15 rows; more than 2**14 beside each other; blocks with a rest."""
PRODUCTS: tuple[tuple[Shape, ...], ...] = (
    ((129, 257), (257, 131)),
    ((3, 16387), (16387, 2)),
    ((1, 2**15), (2**15, 1)),
    ((2**14, 3), (3, 4)),
    ((16387, 3), (3, 3)),
    ((3, 3), (3, 16387)),
)
"""Blocks with a rest, sums of many terms, and many rows."""
INDEXED: tuple[tuple[Shape, ...], ...] = (((2**15, 2), (4099,)), ((2**16,), (2**15,)))
SHORTER: tuple[tuple[Shape, ...], ...] = (((1031, 3),), ((3, 2051),))
"""Where the reference compares each element of a row with each."""
_OF_ROWS = """
sum mean prod max min argmax argmin variance std logsumexp l1_norm l2_norm sum_of_squares count_nonzero nansum
softmax log_softmax cumsum cumprod cummax cummin logcumsumexp sort topk
"""

SHAPES: dict[str, tuple[tuple[Shape, ...], ...]] = {
    **dict.fromkeys(_OF_ROWS.split(), ROWS),
    **dict.fromkeys(("argsort", "topk_indices"), SHORTER),
    "matmul": PRODUCTS,
    "dot": (((2**16,), (2**16,)),),
    "take": INDEXED,
    "segment_sum": (((2**15, 2), (2**15,)),),
}
"""Shapes of the operands of large cases, by operator."""
DEEP: tuple[Shape, ...] = ((3, 1, 2, 17, 31), (3, 2, 1, 2, 16, 31), (3, 1, 2, 2, 8, 8, 8), (2, 1, 2, 2, 2, 8, 8, 8))
"""Shapes of deep cases: some dimensions are of one element, rows behind the middle fill vectors."""
SHALLOW: tuple[Shape, ...] = ((2, 3, 1, 2, 3), (3, 1, 2, 1, 2, 3), (3, 1, 2, 2, 2, 1, 3), (2, 1, 2, 3, 1, 2, 2, 2))
"""The same of few elements, for questions that take long."""
COMPANY = ("alone", "multiplied", "turned")
"""How a case stands: alone; behind a product, before a square and a sum along the last axis; on a transposed operand,
before a square and a sum along the first axis."""
ALL = ("float32", "float64")
"""dtypes that have all cases; every other one has one in turn of each kind."""


def extents(operator: str) -> tuple[range, ...]:
    """The numbers of an operator's cases of unusual extent, by kind: large and deep, each in any company."""
    count, found = 0, []
    for shapes in (SHAPES.get(operator, ()), DEEP):
        for _ in COMPANY:
            found.append(range(count, count + len(shapes)))
            count += len(shapes)
    return tuple(kind for kind in found if kind)


def of_extent(operator: str, dtype: str, number: int, enlarge: bool = True) -> Graph | None:
    """Case `number` of them, of a dtype, on inputs. None where there is no such case, or the operator does not take
    the dtype or the shapes, or without `enlarge`, where the case is large."""
    wide, deep = SHAPES.get(operator, ()), tuple((shape,) for shape in (DEEP if enlarge else SHALLOW))
    for shapes in (wide, deep):
        if number < len(COMPANY) * len(shapes):
            if shapes is wide and not enlarge:
                return None
            company = COMPANY[number // len(shapes)]
            graph = _alone(operator, dtype, shapes[number % len(shapes)], shapes is deep)
            return graph if graph is None or company == "alone" else _in_company(graph, company)
        number -= len(COMPANY) * len(shapes)
    return None


class _Draw(SeededDraw):
    """Refuses where there is nothing to choose from: some attributes are drawn for small shapes only."""

    def integer(self, low: int, high: int) -> int:
        if high < low:
            raise TypeRuleError(f"nothing from {low} to {high}")
        return super().integer(low, high)

    def choice(self, options: Sequence[T]) -> T:
        if not len(options):
            raise TypeRuleError("nothing to choose from")
        return super().choice(options)


@cache
def _alone(operator: str, dtype: str, shapes: tuple[Shape, ...], deep: bool) -> Graph | None:
    """One node on inputs of these shapes. deep: the shape is of the first operand, others follow from it, and an axis
    is one in the middle."""
    spec, draw = OPS[operator], _Draw(f"{operator}/{dtype}/{shapes}")
    draw.dtype = dtype
    leaves: list[Leaf] = []
    for position in range(len(spec.operands) if deep else len(shapes)):
        slot, earlier = spec.slot(position), tuple(leaf.type for leaf in leaves)
        shape = shapes[min(position, len(shapes) - 1)]
        kinds = (TensorType(kind, shape) for kind in (dtype, "int64", "bool"))  # of indices, of conditions
        own = next((kind for kind in kinds if slot.accepts(kind, earlier)), None)
        try:
            own = own or (slot.fresh(draw, earlier) if deep and position else None)
        except TypeRuleError:
            return None
        if not own:
            return None
        leaves.append(Leaf(f"x{position}", own, "input", slot.domain(earlier) or slot.span))
    types: Types = tuple(leaf.type for leaf in leaves)
    if all(type_.dtype != dtype for type_ in types):
        return None
    attrs: dict = {}
    try:
        for key, rule in spec.attrs.items():
            attrs[key] = rule(draw, types, attrs)
        middle = len(shapes[0]) // 2
        between = {**attrs, **{key: v for key, v in (("axis", middle), ("axes", (middle,))) if key in attrs and deep}}
        attrs = between if _typed(operator, types, between) else attrs
        result = spec.result(types, attrs)
    except TypeRuleError:
        return None
    if result.size > LARGEST:
        return None
    names = tuple(leaf.name for leaf in leaves)
    return Graph(tuple(leaves), (Node("v0", operator, names, tuple(attrs.items()), result),), ("v0",))


def _in_company(graph: Graph, company: str) -> Graph | None:
    """The case in company, as far as the operators take the dtypes. None where there is none."""
    leaves, nodes = _multiplied(graph) if company == "multiplied" else _turned(graph)
    last = nodes[-1]
    for number, operator in enumerate(("square", "sum"), 1):
        axis = -1 if company == "multiplied" else 0
        attrs: Attrs = {"axes": (axis,), "keepdims": False} if operator == "sum" else {}
        result = _typed(operator, (last.type,), attrs) if operator != "sum" or last.type.rank else None
        if result:
            last = Node(f"v{number}", operator, (last.name,), tuple(attrs.items()), result)
            nodes = (*nodes, last)
    return Graph(leaves, nodes, (last.name,)) if len(nodes) > 1 else None


def _multiplied(graph: Graph) -> tuple[tuple[Leaf, ...], tuple[Node, ...]]:
    """The node's first operand is a product."""
    first, node = graph.leaves[0], graph.nodes[0]
    if first.domain or _typed("mul", (first.type, first.type), {}) != first.type:
        return graph.leaves, graph.nodes
    operands = tuple("u0" if name == first.name else name for name in node.operands)
    product = Node("u0", "mul", (first.name, "y0"), (), first.type)
    return (*graph.leaves, replace(first, name="y0")), (product, replace(node, operands=operands))


def _turned(graph: Graph) -> tuple[tuple[Leaf, ...], tuple[Node, ...]]:
    """The last operand of some dimensions is a transposed input."""
    found = next((leaf for leaf in reversed(graph.leaves) if leaf.type.rank > 1 and not leaf.domain), None)
    if found is None:
        return graph.leaves, graph.nodes
    stored = replace(found, type=TensorType(found.type.dtype, found.type.shape[::-1]))
    perm = tuple(range(found.type.rank))[::-1]
    turn = Node("u0", "transpose", (found.name,), (("perm", perm),), found.type)
    operands = tuple("u0" if name == found.name else name for name in graph.nodes[0].operands)
    leaves = tuple(stored if leaf is found else leaf for leaf in graph.leaves)
    return leaves, (turn, replace(graph.nodes[0], operands=operands))


def _typed(operator: str, types: Types, attrs: Attrs) -> TensorType | None:
    """The type of a result, or None where the operator does not take these."""
    spec = OPS[operator]
    if not all(spec.slot(i).accepts(type_, types[:i]) for i, type_ in enumerate(types)):
        return None
    try:
        return spec.result(types, attrs)
    except TypeRuleError:
        return None
