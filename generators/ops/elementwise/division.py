"""Division with a remainder, and common divisors. `floor_divide` and `remainder` round the quotient down, as Python
does, `trunc_divide` and `fmod` towards zero, as C does.

The divisors of integers are leaves without 0 (frameworks raise, return anything, or die) and without -1 (the least
integer overflows, which kills a process on x86). A domain is an interval, so that it lies on one side of 0."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from generators.bounds.bounded import PRECISION, U64, Bounded, add, divide, ends, exact, multiply, spread
from generators.graph import INTEGERS
from generators.ops.elementwise.records import NO_ONNX, NO_RELAX, NO_TENSORFLOW
from generators.ops.elementwise.references import wrapping
from generators.ops.slots import broadcast, broadcastable, numeric, tensor
from generators.ops.spec import Call, Domain, OpSpec, Reference, Slot, Spelling, Types

Array = np.ndarray
Function = Callable[[Array, Array], Array]
Round = Callable[[Array], Array]


def _divisors(earlier: Types) -> Domain | None:
    """Integers: positive for a dividend of even rank, negative (if it is signed) for one of odd rank. Any floating
    number."""
    if earlier[0].dtype not in INTEGERS:
        return None
    return (1, 40) if earlier[0].rank % 2 == 0 or np.iinfo(earlier[0].dtype).min == 0 else (-40, -2)


PAIR = (numeric(), replace(broadcastable(0), domain=_divisors))
INTEGER_PAIR = (tensor(INTEGERS), PAIR[1])


def _trunc_divide(x: Array, y: Array) -> Array:
    """numpy has the floor only, which is one less where there is a remainder and the signs differ."""
    return np.floor_divide(x, y) + ((np.remainder(x, y) != 0) & ((x < 0) != (y < 0)))


def _quotient(x: Bounded, y: Bounded, to_integer: Round) -> Bounded:
    """The rounded quotient: where the interval of the quotient holds an integer, so that a correct evaluation may
    find it on either side, the results differ by the spread of the ends. Without division by 0 and infinities,
    see `_floor_divide`."""
    q = divide(x, y)
    with np.errstate(all="ignore"):
        value = to_integer(q.value)
        error = spread(value, *(to_integer(end) for end in ends(q)))
        # an infinite dividend, any infinite divisor, a divisor that is 0
        special = ~np.isfinite(x.value) | ~np.isfinite(y.value) | (y.value == 0) | q.undetermined
        error = np.where(_flushed(x, y), np.maximum(error, 1.0), error)
    nan = _nan(x, y)
    value = np.where(nan, np.nan, value)
    return Bounded(value, np.where(nan, 0.0, np.where(special, np.inf, error)), x.dtype)


def _flushed(x: Bounded, y: Bounded) -> Array:
    """Where what is left is subnormal, on either side of the quotient: a back end that takes it for zero finds that the
    division has no remainder."""
    left = np.abs(np.fmod(x.value, y.value))
    tiny = PRECISION[x.dtype].tiny
    return ((left > 0) & (left < tiny)) | (np.abs(y.value) - left < tiny) & (left > 0)


def _nan(x: Bounded, y: Bounded) -> Array:
    """Where an operand is NaN for certain."""
    return np.isnan(x.value) & (x.error == 0) | np.isnan(y.value) & (y.error == 0)


def _floor_divide(args: Sequence[Bounded], call: Call) -> Bounded:
    """floor(x / y), or (x - remainder) / y as Python and numpy have it: 2 roundings, less than the 2.5 ulp of the
    division. They differ for infinities (floor(inf / 1) is infinite, the other way gives NaN; floor(-1 / inf) is
    -0, the other way -1) and nothing is said of division by 0: undetermined."""
    x, y = args
    if not x.floating:
        with np.errstate(divide="ignore"):
            found = np.floor_divide(x.value, y.value)
        return exact(found, x.dtype, x.undetermined | y.undetermined | (y.value == 0))
    return _quotient(x, y, np.floor)


def _left_over(f: Function, to_integer: Round) -> Reference:
    """What division leaves. C's fmod is exact; PyTorch documents x - q y, q the rounded quotient, which errs by
    |y| where the quotient is close to an integer, and by the roundings of q y. NaN for an infinite dividend and
    for a divisor 0 in both ways (C Annex F.10.7.1); for an infinite divisor x, y or NaN: undetermined, but for fmod,
    which all document as C's: x (F.10.7.1). Of finite numbers that is never infinite nor NaN, also where the quotient
    overflows: less than y, with the sign of x (C17 7.12.10.1)."""

    def reference(args: Sequence[Bounded], call: Call) -> Bounded:
        x, y = args
        with np.errstate(all="ignore"):
            value = np.asarray(f(x.value, y.value))
            if not x.floating:
                return exact(value, x.dtype, x.undetermined | y.undetermined)
            q = _quotient(x, y, to_integer)
            naive = add(x, multiply(q, y), -1.0)
            own = 4 * U64 * (np.abs(x.value) + np.abs(y.value))  # of the reference's x - q y
            error = naive.error + spread(value, naive.value) + np.where(naive.error > 0, own, 0.0)
            error = np.where(_flushed(x, y), np.maximum(error, np.abs(y.value) + PRECISION[x.dtype].tiny), error)
            error = np.where(q.undetermined | ~np.isfinite(error), np.inf, error)
            undefined = np.isinf(x.value) & ~x.undetermined & ~y.undetermined
            undefined |= (y.value == 0) & (y.error == 0) & ~x.undetermined
            if f is np.fmod:
                inside = np.isfinite(x.value) & np.isfinite(y.value) & (x.error == 0) & (y.error == 0)
                inside &= np.abs(y.value) >= PRECISION[x.dtype].tiny
                error = np.where(inside, np.minimum(error, np.abs(y.value)), error)
                whole = np.isinf(y.value) & ~y.undetermined & np.isfinite(x.value) & ~x.undetermined
                small = np.where(np.abs(x.value) < PRECISION[x.dtype].tiny, np.abs(x.value), 0.0)
                error = np.where(whole, x.error + small, error)
            nan = _nan(x, y) | undefined
        return Bounded(np.where(nan, np.nan, value), np.where(nan, 0.0, error), x.dtype)

    return reference


def _division(
    name: str,
    reference: Reference,
    *,
    torch: Spelling,
    tensorflow: Spelling,
    jax: Spelling,
    relax: Spelling,
    onnx: Spelling,
    operands: tuple[Slot, ...] = PAIR,
) -> OpSpec:
    return OpSpec(
        name, "division", operands, broadcast(), reference,
        torch=torch, tensorflow=tensorflow, jax=jax, relax=relax, onnx=onnx,
    )  # fmt: skip


def _by_kind(floats: str, integers: str) -> Spelling:
    return lambda call: integers if call.result.dtype in INTEGERS else floats


# ---- divisors -----------------------------------------------------------------------------------------


def _gcd(args: Sequence[Bounded], call: Call) -> Bounded:
    """Never negative; undetermined for the least integer, whose magnitude wraps."""
    x, y = args
    return exact(np.gcd(*np.broadcast_arrays(x.value, y.value)), x.dtype, _least(x) | _least(y))


def _lcm(args: Sequence[Bounded], call: Call) -> Bounded:
    """|x / gcd| |y|; undetermined where that overflows."""
    x, y = np.broadcast_arrays(args[0].value, args[1].value)
    with np.errstate(all="ignore"):
        divisor = np.maximum(np.gcd(x, y).astype(np.float64), 1.0)
        size = np.abs(x.astype(np.float64)) / divisor * np.abs(y.astype(np.float64))
        over = size > np.iinfo(x.dtype).max * (1 - 2.0**-50)
        return exact(np.lcm(x, y), args[0].dtype, over | _least(args[0]) | _least(args[1]))


def _least(x: Bounded) -> np.ndarray:
    info = np.iinfo(x.dtype)
    return x.undetermined | ((x.value == info.min) & (info.min < 0))


def _divisor(name: str, reference: Reference) -> OpSpec:
    return OpSpec(
        name, "numerals", (tensor(INTEGERS), broadcastable(0)), broadcast(), reference,
        torch=f"torch.{name}({{0}}, {{1}})", tensorflow=NO_TENSORFLOW, jax=f"jnp.{name}({{0}}, {{1}})",
        relax=NO_RELAX, onnx=NO_ONNX,
    )  # fmt: skip


OPERATORS: tuple[OpSpec, ...] = (
    _division(
        "floor_divide", _floor_divide,
        torch="torch.floor_divide({0}, {1})", tensorflow="tf.math.floordiv({0}, {1})",
        jax="jnp.floor_divide({0}, {1})", relax="relax.op.floor_divide({0}, {1})",
        onnx=_by_kind('g.op("Floor", g.op("Div", {0}, {1}))', "floor_divide(g, {0}, {1}, {name})"),
    ),
    _division(
        "remainder", _left_over(np.remainder, np.floor),
        torch="torch.remainder({0}, {1})", tensorflow="tf.math.floormod({0}, {1})",
        jax="jnp.remainder({0}, {1})", relax="relax.op.floor_mod({0}, {1})",
        onnx=_by_kind("remainder(g, {0}, {1}, {name})", 'g.op("Mod", {0}, {1})'),
    ),
    _division(
        "fmod", _left_over(np.fmod, np.trunc),
        torch="torch.fmod({0}, {1})", tensorflow="tf.truncatemod({0}, {1})",
        jax="jnp.fmod({0}, {1})", relax="relax.op.mod({0}, {1})", onnx='g.op("Mod", {0}, {1}, fmod=1)',
    ),
    _division(
        "trunc_divide", lambda args, call: wrapping(_trunc_divide, args[0], args[1]), operands=INTEGER_PAIR,
        torch='torch.div({0}, {1}, rounding_mode="trunc")', tensorflow="tf.truncatediv({0}, {1})",
        jax="jax.lax.div(*jnp.broadcast_arrays({0}, {1}))", relax="relax.op.divide({0}, {1})",
        onnx='g.op("Div", {0}, {1})',
    ),
    _divisor("gcd", _gcd),
    _divisor("lcm", _lcm),
)  # fmt: skip
