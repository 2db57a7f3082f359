"""A value that is added up in a loop, as long as a counter compares with a limit: compilers work out from start, step
and limit how often that is, and unroll the loop, or leave it out."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence

import numpy as np

from generators.bounds.bounded import Bounded
from generators.graph import TensorType
from generators.ops.composed import compute, stacked
from generators.ops.reduce.reductions import sum_
from generators.ops.slots import NUMBERS, int_of, one_of, tensor
from generators.ops.spec import Attrs, Call, Draw, OpSpec, TypeRuleError, Types, unsupported

MOST = 12
"""Trips."""
COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "not_equal": operator.ne,
}


def _trips(attrs: Attrs) -> int:
    """How often the loop runs. Raises TypeRuleError where that is more than MOST."""
    comparison, step = attrs["comparison"], int_of(attrs, "step")
    counter, limit = int_of(attrs, "start"), int_of(attrs, "limit")
    if comparison not in COMPARISONS:
        raise TypeRuleError(f"no loop while {comparison!r}")
    for trip in range(MOST + 1):
        if not COMPARISONS[str(comparison)](counter, limit):
            return trip
        counter += step
    raise TypeRuleError(f"from {attrs['start']} in steps of {step}, {comparison} {limit}: more than {MOST} times")


def _type(operands: Types, attrs: Attrs) -> TensorType:
    _trips(attrs)
    return operands[0]


def _limit(d: Draw, operands: Types, attrs: Attrs) -> int:
    """As far as a few steps go, or a little less or more, or none."""
    start, step = int_of(attrs, "start"), int_of(attrs, "step")
    if attrs["comparison"] == "not_equal":
        return start + step * d.choice((1, 0, 2, 3, MOST))
    up = str(attrs["comparison"]).startswith("less")
    if up != (step > 0):  # it would not end: it does not begin
        return start - d.choice((1, 2)) * (1 if up else -1)
    return start + step * d.choice((1, 0, 2, 4)) + d.choice((0, 1, -1, 2))


def _added_up(args: Sequence[Bounded], call: Call) -> Bounded:
    x, trips = args[0], _trips(call.attrs)
    if not trips:
        zeros = np.zeros(x.value.shape)
        return Bounded(zeros.astype(x.value.dtype), zeros, x.dtype)
    return compute(sum_, stacked(*[x] * trips, axis=0), axes=(0,), keepdims=False)


_TEXT = "while_sum({0}, {start}, {limit}, {step}, {comparison})"
_NONE = unsupported("it has no loop with a comparison for its end")

OPERATORS: tuple[OpSpec, ...] = (
    OpSpec(
        "while_sum", "scan", (tensor(NUMBERS),), _type, _added_up,
        attrs={
            "comparison": one_of(*COMPARISONS), "start": one_of(0, 1, -2, 3), "step": one_of(1, 2, 3, -1, -2),
            "limit": _limit,
        },
        torch=_TEXT, tensorflow=_TEXT, jax=_TEXT, relax=_NONE, onnx=_NONE,
    ),
)  # fmt: skip
