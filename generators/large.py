"""Large cases of single operators: sizes that cross tiles and blocks of sums, at which kernels go parallel and split
their work. They stay within what a file may hold (`graph.LARGEST`), so that a finding can be read again."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

from generators.graph import LARGEST, Graph, Leaf, Node, TensorType
from generators.ops import OPS
from generators.ops.spec import Shape, TypeRuleError

T = TypeVar("T")

ROWS: tuple[tuple[Shape, ...], ...] = (((2**16,),), ((2**15, 2),), ((3, 16387),), ((67, 961),))
"""All in one row; PyTorch's grain of 2**15 rows; more than 2**14 beside each other; blocks with a rest."""
PRODUCTS: tuple[tuple[Shape, ...], ...] = (
    ((129, 257), (257, 131)),
    ((3, 16387), (16387, 2)),
    ((1, 2**15), (2**15, 1)),
    ((2**14, 3), (3, 4)),
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
"""Shapes of the operands, by operator."""


class _Chosen:
    """`Draw` of attributes and of operands that depend on others, from a seed."""

    def __init__(self, seed: str, dtype: str) -> None:
        self._rng = random.Random(seed)
        self.dtype = dtype

    def integer(self, low: int, high: int) -> int:
        return self._rng.randint(low, high)

    def choice(self, options: Sequence[T]) -> T:
        return options[self._rng.randrange(len(options))]

    def boolean(self) -> bool:
        return self._rng.random() < 0.5


def large(operator: str, dtype: str, number: int) -> Graph | None:
    """Case `number` of those with these shapes, of a dtype: a graph of one node on inputs. None where there is no such
    case, or the operator does not take the dtype or the shapes."""
    shapes = SHAPES.get(operator, ())
    if number >= len(shapes):
        return None
    spec, draw = OPS[operator], _Chosen(f"{operator}/{dtype}/{number}", dtype)
    leaves: list[Leaf] = []
    for position, shape in enumerate(shapes[number]):
        slot, earlier = spec.slot(position), tuple(leaf.type for leaf in leaves)
        own = TensorType(dtype, shape)
        if not slot.accepts(own, earlier):
            own = TensorType("int64", shape)  # of indices
        if not slot.accepts(own, earlier):
            return None
        leaves.append(Leaf(f"x{position}", own, "input", slot.domain(earlier)))
    types = tuple(leaf.type for leaf in leaves)
    attrs: dict = {}
    try:
        for key, rule in spec.attrs.items():
            attrs[key] = rule(draw, types, attrs)
        result = spec.result(types, attrs)
    except TypeRuleError:
        return None
    if result.size > LARGEST or leaves[0].type.dtype != dtype:
        return None
    names = tuple(leaf.name for leaf in leaves)
    return Graph(tuple(leaves), (Node("v0", operator, names, tuple(attrs.items()), result),), ("v0",))
