"""einsum: contractions that an equation names, of one operand and of two."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod

import numpy as np

from generators.bounds.bounded import Bounded
from generators.bounds.products import bilinear, bilinear_integer
from generators.bounds.sums import summed
from generators.graph import FLOATS, TensorType
from generators.ops.slots import MAX_ELEMENTS, NUMBERS, draw_dim, draw_dtype, same_dtype
from generators.ops.spec import Attrs, Call, Draw, OpSpec, Slot, TypeRuleError, Types

Sizes = dict[str, int]

SINGLE = ("ij->ji", "ij->j", "ij->", "ijk->k", "ijk->kij", "bij->bji", "ii->i", "ii->", "bii->bi", "iji->j")
PAIRS = (
    "ij,jk->ik",
    "ij,kj->ik",
    "ij,jk->ki",
    "i,i->",
    "i,j->ij",
    "ij,j->i",
    "ij,ij->i",
    "ij,ij->ij",
    "ij,ji->",
    "bij,bjk->bik",
    "bij,bkj->bik",
    "bij,bij->b",
    "bij,jk->bik",
    "bi,bj->bij",
    "bqhd,bkhd->bhqk",
)
"""Equations in which every letter stands in the result or in both operands (PAIRS), so that no sum is of one alone."""


def parts(equation: str) -> tuple[list[str], str]:
    """The letters of each operand, and those of the result."""
    left, right = equation.split("->")
    return left.split(","), right


def sizes(equation: str, operands: Types) -> Sizes | None:
    """The size of every letter; None where the operands do not fit (more operands than given are not looked at)."""
    letters, _ = parts(equation)
    found: Sizes = {}
    for names, type_ in zip(letters, operands, strict=False):
        if len(names) != type_.rank:
            return None
        for name, size in zip(names, type_.shape, strict=True):
            if found.setdefault(name, size) != size:
                return None
    return found


def fitting(equations: Sequence[str], operands: Types) -> tuple[str, ...]:
    """The equations that these operands fit, with a result that is not too large."""
    chosen = []
    for equation in equations:
        found = sizes(equation, operands)
        _, right = parts(equation)
        if found is not None and prod(found.get(name, 1) for name in right) <= MAX_ELEMENTS:
            chosen.append(equation)
    return tuple(chosen)


def _drawn(d: Draw, names: str, known: Sizes, room: int) -> tuple[int, ...]:
    shape = []
    known = dict(known)
    for name in names:
        if name not in known:
            known[name] = draw_dim(d, max(1, min(room, 9)))
            room //= max(1, known[name])
        shape.append(known[name])
    return tuple(shape)


def _first(equations: Sequence[str], dtypes: Sequence[str]) -> Slot:
    def fresh(d: Draw, earlier: Types) -> TensorType:
        (names, *_), _ = parts(d.choice(equations))
        return TensorType(draw_dtype(d, dtypes), _drawn(d, names, {}, 256))

    return Slot(lambda type_, earlier: type_.dtype in dtypes and bool(fitting(equations, (type_,))), fresh)


def _accepts_second(type_: TensorType, earlier: Types) -> bool:
    return type_.dtype == earlier[0].dtype and bool(fitting(PAIRS, (*earlier, type_)))


def _fresh_second(d: Draw, earlier: Types) -> TensorType:
    equation = d.choice(fitting(PAIRS, earlier))
    (_, names), _ = parts(equation)
    room = MAX_ELEMENTS // max(1, earlier[0].size)
    return TensorType(earlier[0].dtype, _drawn(d, names, sizes(equation, earlier) or {}, room))


def _type(equations: Sequence[str], operands: Types, attrs: Attrs) -> TensorType:
    equation = attrs["equation"]
    if equation not in equations or not isinstance(equation, str):
        raise TypeRuleError(f"unknown equation {equation!r}")
    found = sizes(equation, operands)
    if found is None:
        raise TypeRuleError(f"{', '.join(map(str, operands))} do not fit {equation}")
    return TensorType(same_dtype(operands), tuple(found[name] for name in parts(equation)[1]))


def _terms(call: Call) -> int:
    """How many products make up one element: the size of what is summed away."""
    equation = str(call.attrs["equation"])
    found = sizes(equation, call.operands) or {}
    return prod(size for name, size in found.items() if name not in parts(equation)[1])


def _single(args: Sequence[Bounded], call: Call) -> Bounded:
    return summed(args[0], partial(np.einsum, str(call.attrs["equation"])), _terms(call))


def _pair(args: Sequence[Bounded], call: Call) -> Bounded:
    contract = partial(np.einsum, str(call.attrs["equation"]))
    a, b = args
    return bilinear(contract, a, b, _terms(call)) if a.floating else bilinear_integer(contract, a, b)


einsum_single = OpSpec(
    "einsum_single", "linalg",
    (_first(SINGLE, FLOATS),), partial(_type, SINGLE), _single,
    attrs={"equation": lambda d, operands, attrs: d.choice(fitting(SINGLE, operands))},
    torch="torch.einsum({equation}, {0})", tensorflow="tf.einsum({equation}, {0})",
    jax="jnp.einsum({equation}, {0})", relax="relax.op.einsum(({0},), {equation})",
    onnx='g.op("Einsum", {0}, equation={equation})',
)  # fmt: skip

einsum = OpSpec(
    "einsum", "linalg", (_first(PAIRS, NUMBERS), Slot(_accepts_second, _fresh_second)), partial(_type, PAIRS), _pair,
    attrs={"equation": lambda d, operands, attrs: d.choice(fitting(PAIRS, operands))},
    torch="torch.einsum({equation}, {0}, {1})", tensorflow="tf.einsum({equation}, {0}, {1})",
    jax="jnp.einsum({equation}, {0}, {1})", relax="relax.op.einsum(({0}, {1}), {equation})",
    onnx='g.op("Einsum", {0}, {1}, equation={equation})',
)  # fmt: skip

OPERATORS: tuple[OpSpec, ...] = (einsum_single, einsum)
