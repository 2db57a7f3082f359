"""Choices, comparisons and limits."""

from __future__ import annotations

from typing import Any

from generators.baits.bait import BOOLEAN, FLOATING, NUMBERS, Bait, Guard, Pattern

_XLA = "xla/algsimp"


def _not_where(p: Pattern, negations: int, shape: tuple[int, ...]) -> str:
    """where(not c, a, b), which is where(c, b, a)."""
    condition = p.input(*shape, dtype="bool")
    for _ in range(negations):
        condition = p.logical_not(condition)
    return p.where(condition, p.input(2, 3), p.input(2, 3))


def _constant_condition(p: Pattern, condition: Any, branches: str) -> str:
    x, y = p.input(2, 3), p.input(3)
    known = p.constant(condition, dtype="bool")
    return p.where(known, x, x if branches == "same" else y)


def _of_comparison(p: Pattern, comparison: str, swapped: str) -> str:
    """where(x < y, x, y): the lesser, but for NaN and zeros of two signs."""
    x, y = p.input(2, 3), p.input(2, 3)
    return p.where(p.apply(comparison, x, y), *((x, y) if swapped == "straight" else (y, x)))


def _negated_comparison(p: Pattern, comparison: str) -> str:
    """not (x < y), which is x >= y but for NaN."""
    return p.logical_not(p.apply(comparison, p.input(2, 3), p.input(3)))


def _logical(p: Pattern, operator: str, value: bool) -> str:
    return p.apply(operator, p.input(2, 3, dtype="bool"), p.constant(value, dtype="bool"))


def _de_morgan(p: Pattern, operator: str, negated: str) -> str:
    x, y = p.input(2, 3), p.input(2, 3)
    other = p.logical_not(y) if negated == "both" else y
    return p.logical_not(p.apply(operator, p.logical_not(x), other))


def _relu_clip(p: Pattern, low: float, high: float, order: str) -> str:
    x = p.input(2, 3)
    if order == "relu first":
        return p.clip(p.relu(x), min=low, max=high)
    return p.relu(p.clip(x, min=low, max=high))


def _clip_clip(p: Pattern, first: tuple[float, float], second: tuple[float, float]) -> str:
    return p.clip(p.clip(p.input(2, 3), min=first[0], max=first[1]), min=second[0], max=second[1])


def _limits(p: Pattern, inner: str, low: Any, high: Any) -> str:
    """max(min(x, high), low): a clip, where low is not above high."""
    outer = "maximum" if inner == "minimum" else "minimum"
    a, b = p.constant(high), p.constant(low, 3)
    first, second = (a, b) if inner == "minimum" else (b, a)
    return p.apply(outer, p.apply(inner, p.input(2, 3), first), second)


def _compared_with_limit(p: Pattern, comparison: str, value: Any, order: str) -> str:
    x, c = p.input(2, 3), p.constant(value)
    return p.apply(comparison, *((x, c) if order == "right" else (c, x)))


def _shifted_comparison(p: Pattern, comparison: str, added: Any, against: Any) -> str:
    """x + a < b, which is x < b - a where nothing overflows."""
    return p.apply(comparison, p.add(p.input(2, 3), p.constant(added)), p.constant(against))


def _where_of_zero(p: Pattern, value: float, operator: str) -> str:
    """where(c, x, 0) y: the zero takes no part, unless y is not finite."""
    chosen = p.where(p.input(2, 3, dtype="bool"), p.input(2, 3), p.constant(value))
    return p.apply(operator, chosen, p.input(2, 3))


def _nested(p: Pattern, condition: str) -> str:
    c, x, y = p.input(2, 3, dtype="bool"), p.input(2, 3), p.input(2, 3)
    other = c if condition == "same" else p.input(2, 3, dtype="bool")
    return p.where(c, p.where(other, x, y), p.input(2, 3))


def _is_itself(p: Pattern, operator: str) -> str:
    return p.apply(operator, p.exp(p.input(2, 3)))


_COMPARISONS = Guard(("less", "greater"), ("less_equal", "greater_equal", "equal", "not_equal"))
BAITS = (
    Bait(
        "where-of-not",
        ("onnxruntime/NotWhereFusion", _XLA),
        _not_where,
        {"negations": Guard((1, 2), (0, 3)), "shape": Guard(((2, 3),), ((3,), (), (4, 2, 3)))},
        NUMBERS,
    ),
    Bait(
        "where-of-constant",
        ("grappler/constant_folding", _XLA),
        _constant_condition,
        {
            "condition": Guard((True, False), ([True, True, False],)),
            "branches": Guard(("same",), ("different",)),
        },
        NUMBERS,
    ),
    Bait(
        "where-of-comparison",
        (_XLA, "tvm/StmtSimplify"),
        _of_comparison,
        {"comparison": _COMPARISONS, "swapped": Guard(("straight", "swapped"))},
        NUMBERS,
    ),
    Bait(
        "not-of-comparison",
        ("grappler/SimplifyLogicalNot", _XLA, "tvm/StmtSimplify"),
        _negated_comparison,
        {"comparison": _COMPARISONS},
        NUMBERS,
    ),
    Bait(
        "logical-constant",
        ("grappler/constant_folding", _XLA, "tvm/StmtSimplify"),
        _logical,
        {"operator": Guard(("logical_and", "logical_or"), ("logical_xor",)), "value": Guard((True, False))},
        BOOLEAN,
    ),
    Bait(
        "de-morgan",
        (_XLA, "tvm/StmtSimplify"),
        _de_morgan,
        {"operator": Guard(("logical_and", "logical_or"), ("logical_xor",)), "negated": Guard(("both",), ("one",))},
        BOOLEAN,
    ),
    Bait(
        "relu-and-clip",
        ("onnxruntime/FuseReluClip", _XLA),
        _relu_clip,
        {
            "low": Guard((0.0, -1.0), (0.5, -0.0, -2.0)),
            "high": Guard((6.0,), (0.25, 1e30)),
            "order": Guard(("relu first",), ("clip first",)),
        },
    ),
    Bait(
        "clip-of-clip",
        (_XLA,),
        _clip_clip,
        {
            "first": Guard(((-1.0, 1.0),), ((0.0, 0.25), (-1e30, 1e30))),
            "second": Guard(((-0.5, 2.0),), ((0.5, 3.0), (-3.0, -2.0))),
        },
    ),
    Bait(
        "maximum-of-minimum",
        ("onnxruntime/ClipFusion", _XLA, "tvm/StmtSimplify"),
        _limits,
        {
            "inner": Guard(("minimum", "maximum")),
            "low": Guard((0, -1), ("min", 3, 7)),
            "high": Guard((6,), ("max", 2, 0, -1)),
        },
        NUMBERS,
    ),
    Bait(
        "compared-with-limit",
        (_XLA, "tvm/StmtSimplify"),
        _compared_with_limit,
        {
            "comparison": _COMPARISONS,
            "value": Guard(("min", "max"), (0, -1, 1)),
            "order": Guard(("right", "left")),
        },
        Guard(("int32", "int64", "float32"), ("int8", "uint8", "uint16", "uint32", "float16")),
    ),
    Bait(
        "comparison-of-sum",
        (_XLA, "tvm/StmtSimplify"),
        _shifted_comparison,
        {
            "comparison": _COMPARISONS,
            "added": Guard((1, -1), ("max", "min")),
            "against": Guard((3, 0), ("max", "min")),
        },
        Guard(("int32", "int64"), ("int8", "uint8", "float32")),
    ),
    Bait(
        "product-of-masked",
        (_XLA,),
        _where_of_zero,
        {"value": Guard((0.0,), (-0.0, 1.0, float("inf"))), "operator": Guard(("mul",), ("add", "maximum"))},
        FLOATING,
    ),
    Bait("where-of-where", (_XLA,), _nested, {"condition": Guard(("same",), ("another",))}, NUMBERS),
    Bait(
        "sign-of-exponential",
        (_XLA,),
        _is_itself,
        {"operator": Guard(("abs", "relu", "sign"), ("neg", "isnan", "isinf"))},
        FLOATING,
    ),
)
