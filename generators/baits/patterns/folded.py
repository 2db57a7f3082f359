"""What an optimiser finds to be a constant, and computes with its own functions: integers less themselves, as numbers
that functions of two operands, or of one, take."""

from __future__ import annotations

from generators.baits.bait import Bait, Guard, Pattern

_XLA, _GRAPPLER = "xla/algsimp", "grappler/arithmetic_optimization"
_REWRITES = (_XLA, _GRAPPLER, "torch-inductor/constant_folding", "tvm/StmtSimplify")
PAIRS = ("atan2", "pow", "hypot", "copysign", "fmod", "remainder", "div", "maximum", "logaddexp", "xlogy")
SINGLE = ("log", "rsqrt", "reciprocal", "sinc", "lgamma", "exp", "cos", "atanh", "erfinv", "sign", "sqrt", "isinf")


def _numbers(p: Pattern, made: str, more: int) -> str:
    """Integers or truth values less themselves, and a number that is added."""
    x = p.input(2, 3, dtype="bool" if made == "logical" else "int32")
    zero = {"xor": p.bitwise_xor, "difference": p.sub, "logical": p.logical_xor}[made](x, x)
    if more:
        zero = p.add(p.cast(zero, to="int32") if made == "logical" else zero, p.constant(more, dtype="int32"))
    return p.cast(zero, to=p.dtype)


def _of_two(p: Pattern, operator: str, made: str, first: int, second: int) -> str:
    return p.apply(operator, _numbers(p, made, first), _numbers(p, made, second))


def _of_one(p: Pattern, operator: str, made: str, first: int) -> str:
    return p.apply(operator, _numbers(p, made, first))


_MADE = Guard(("xor", "difference", "logical"))
_NUMBER = Guard((0,), (-1, 1, 2))

BAITS: tuple[Bait, ...] = (
    Bait(
        "folded-pairs", _REWRITES, _of_two,
        {"operator": Guard(PAIRS), "made": _MADE, "first": _NUMBER, "second": _NUMBER},
    ),
    Bait(
        "folded-numbers", _REWRITES, _of_one, {"operator": Guard(SINGLE), "made": _MADE, "first": _NUMBER},
    ),
)  # fmt: skip
