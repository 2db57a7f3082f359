"""Matrices whose singular values are equal, of which formulas that divide by their differences know nothing; products
that passes put together or turn round as if all operands were plain matrices of one dtype."""

from __future__ import annotations

from typing import Any

import numpy as np

from generators.baits.bait import Bait, Guard, Pattern
from generators.ops.attributes import OTHERWISE

_DIAGONALS: dict[str, Any] = {"equal": (1, 1, 1), "signs": (1, -1, 1), "pair": (2, 1, 1), "different": (1, 2, 3)}


def _stretched(p: Pattern, operator: str, diagonal: str, turned: bool) -> str:
    """A function of a number times a diagonal matrix, or one whose rows are interchanged."""
    rows = np.diag(np.array(_DIAGONALS[diagonal], np.float64))
    return p.apply(operator, p.mul(p.input(), p.constant(np.roll(rows, 1, 0) if turned else rows)))


def _turned_chain(p: Pattern, perm: tuple[int, ...], side: str, sizes: tuple[int, int]) -> str:
    """A (B C) where the inner product is turned first, or only seems to be: it has as many rows as columns."""
    side_length, inner = sizes
    product = p.transpose(p.matmul(p.weight(side_length, inner), p.weight(inner, side_length)), perm=perm)
    return p.matmul(*((p.input(1, side_length), product) if side == "left" else (product, p.input(side_length, 1))))


def _parallel_vectors(p: Pattern, kind: str, then: str) -> tuple[str, ...]:
    """Products of one value by several others, one of them or all of them vectors."""
    if kind == "vector first":
        x = p.input(3)
        found = [p.vector_matrix(x, p.weight(3, 5)), p.vector_matrix(x, p.weight(3, 5))]
    else:
        x = p.input(4, 3)
        found = [p.matrix_vector(x, p.weight(3)), p.matrix_vector(x, p.weight(3))]
    return tuple(found) if then == "apart" else (p.add(*found),)


def _parallel_biased(p: Pattern, widths: tuple[int, int], biases: tuple[str, str]) -> tuple[str, ...]:
    """Products of one value, each with a bias of its own shape."""
    x, found = p.input(2, 3), []
    for width, bias in zip(widths, biases, strict=True):
        shape = {"vector": (width,), "row": (1, width), "whole": (2, width), "column": (2, 1), "one": (1,)}[bias]
        found.append(p.add(p.matmul(x, p.weight(3, width)), p.weight(*shape)))
    return tuple(found)


def _widened(p: Pattern, x: str, y: str) -> str:
    """A product whose result is of another dtype than its operands, said by an argument of the product's own."""
    return p.apply(f"matmul_widened{OTHERWISE}", x, y, spelling=0)


def _parallel_widened(p: Pattern, which: str) -> tuple[str, ...]:
    x, a, b = p.input(2, 3), p.weight(3, 4), p.weight(3, 5)
    first = _widened(p, x, a) if which in ("first", "both") else p.matmul(x, a)
    return first, _widened(p, x, b) if which in ("last", "both") else p.matmul(x, b)


def _widened_chain(p: Pattern, order: str) -> str:
    """A chain whose outer product has a result of another dtype."""
    a, b, c = p.input(9, 2), p.weight(2, 9), p.weight(9, 2)
    return _widened(p, p.matmul(a, b), c) if order == "left" else _widened(p, a, p.matmul(b, c))


BAITS = (
    Bait("matmul-of-turned", ("tvm/AdjustMatmulOrder", "tvm/FuseTransposeMatmul"), _turned_chain,
         {"perm": Guard(((1, 0),), ((0, 1),)), "side": Guard(("left", "right")), "sizes": Guard(((4, 2),), ((4, 9),))},
         Guard(("float32",), ("int32", "float64"))),
    Bait("parallel-vectors", ("tvm/CombineParallelMatmul", "xla/dot-merger"), _parallel_vectors,
         {"kind": Guard(("vector first",), ("vector last",)), "then": Guard(("sum",), ("apart",))},
         Guard(("float32",), ("float64",))),
    Bait("parallel-biased", ("tvm/CombineParallelMatmul", "xla/dot-merger"), _parallel_biased,
         {"widths": Guard(((4, 5), (5, 5))),
          "biases": Guard((("vector", "vector"),), (("one", "row"), ("column", "whole"), ("row", "whole")))},
         Guard(("float32",), ("float64", "int32"))),
    Bait("parallel-widened", ("tvm/CombineParallelMatmul",), _parallel_widened,
         {"which": Guard(("both",), ("first", "last"))}, Guard(("int8",), ("bfloat16", "uint8"))),
    Bait("matmul-chain-widened", ("tvm/AdjustMatmulOrder",), _widened_chain, {"order": Guard(("left", "right"))},
         Guard(("int8",), ("bfloat16", "uint8"))),
    Bait("equal-singular-values", ("torch/linalg_det_backward",), _stretched,
         {"operator": Guard(("det", "matrix_exp")), "diagonal": Guard(("equal", "signs", "pair"), ("different",)),
          "turned": Guard((False, True))}, Guard(("float32",), ("float64",))),
)  # fmt: skip
