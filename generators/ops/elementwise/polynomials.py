"""Orthogonal polynomials, which PyTorch has: of Chebyshev (four kinds, and shifted to [0, 1]), Hermite, Laguerre and
Legendre.

All satisfy p_(k+1) = A_k(x) p_k - B_k p_(k-1) (Abramowitz and Stegun 22.7). The recurrence loses at each step a few
roundings of its terms, d_k, which go on to p_n by the solution of the recurrence that starts there from 0 and 1: the
bound is the sum of |d_k| times these. Beyond n = 6 PyTorch takes Chebyshev's from cos(n acos(x)) and the like for
|x| < 1, which lose n times what acos does, over the sine that divides."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from generators.bounds.bounded import PRECISION, U64, Bounded, rounded
from generators.graph import TensorType
from generators.ops.elementwise.records import NO_ONNX, NO_RELAX, NO_TENSORFLOW
from generators.ops.elementwise.references import spread_out
from generators.ops.slots import broadcast_shape, broadcastable, floating, one_of
from generators.ops.spec import Attrs, Call, OpSpec, TypeRuleError, Types, unsupported

Array = np.ndarray
MOST = 12
"""The greatest degree; the least is -1, of which every polynomial is 0."""
ROUNDINGS = 8
"""Of a step: two products, a sum, and in A_k a sum and a division of 2.5 ulp; of a kernel and of the value here."""


@dataclass(frozen=True)
class Family:
    """first: the slope and the constant of p_1. a, b: A_k as (slope, constant), and B_k. shifted: of 2 x - 1.
    sines: is the formula beyond n = 6 a quotient?"""

    function: str
    first: tuple[float, float]
    a: Callable[[int], tuple[float, float]]
    b: Callable[[int], float]
    shifted: bool = False
    sines: bool = False
    angles: bool = True


def _chebyshev(letter: str, first: tuple[float, float], shifted: bool) -> Family:
    name = f"{'shifted_' if shifted else ''}chebyshev_polynomial_{letter}"
    return Family(name, first, lambda k: (2.0, 0.0), lambda k: 1.0, shifted, letter != "t")


_FIRST = {"t": (1.0, 0.0), "u": (2.0, 0.0), "v": (2.0, -1.0), "w": (2.0, 1.0)}
CHEBYSHEV = {
    f"{'shifted ' if shifted else ''}{letter}": _chebyshev(letter, first, shifted)
    for shifted in (False, True)
    for letter, first in _FIRST.items()
}
OTHERS = {
    "hermite h": Family("hermite_polynomial_h", (2.0, 0.0), lambda k: (2.0, 0.0), lambda k: 2.0 * k, angles=False),
    "hermite he": Family("hermite_polynomial_he", (1.0, 0.0), lambda k: (1.0, 0.0), lambda k: float(k), angles=False),
    "laguerre": Family(
        "laguerre_polynomial_l", (-1.0, 1.0), lambda k: (-1 / (k + 1), (2 * k + 1) / (k + 1)), lambda k: k / (k + 1),
        angles=False,
    ),
    "legendre": Family(
        "legendre_polynomial_p", (1.0, 0.0), lambda k: ((2 * k + 1) / (k + 1), 0.0), lambda k: k / (k + 1), angles=False
    ),
}  # fmt: skip
FAMILIES = {**CHEBYSHEV, **OTHERS}


def _tables(family: Family, y: Array, reach: Array, unit: float) -> tuple[Array, Array, Array, Array]:
    """Of all degrees up to `MOST`: the values, what the recurrence loses, the slopes, and what the second derivatives
    are at most where |x| <= reach."""
    p, slope = [np.ones_like(y)], [np.zeros_like(y)]
    most: list[list[Array]] = [[np.ones_like(y), np.zeros_like(y), np.zeros_like(y)]]
    lost = [np.zeros_like(y)]
    for k in range(MOST):
        (rise, constant), b = (family.first, 0.0) if k == 0 else (family.a(k), family.b(k))
        a, bound = rise * y + constant, abs(rise) * reach + abs(constant)
        before = (p[k - 1], slope[k - 1], most[k - 1]) if k else (0.0, 0.0, [0.0] * 3)
        p.append(a * p[k] - b * before[0])
        slope.append(a * slope[k] + rise * p[k] - b * before[1])
        m = most[k]
        most.append(
            [
                bound * m[0] + b * before[2][0],
                bound * m[1] + abs(rise) * m[0] + b * before[2][1],
                bound * m[2] + 2 * abs(rise) * m[1] + b * before[2][2],
            ]
        )
        lost.append(ROUNDINGS * unit * ((np.abs(rise * y) + abs(constant)) * np.abs(p[k]) + b * np.abs(before[0])))
    total = [np.zeros_like(y) for _ in p]
    for start in range(1, MOST + 1):
        here, earlier = np.ones_like(y), np.zeros_like(y)
        for k in range(start, MOST + 1):
            total[k] = total[k] + np.abs(here) * lost[start]
            (rise, constant), b = family.a(k), family.b(k)
            here, earlier = (rise * y + constant) * here - b * earlier, here
    return np.array(p), np.array(total), np.array(slope), np.array([m[2] for m in most])


def _by_angle(family: Family, y: Array, n: Array, unit: float) -> Array:
    """What the trigonometric formula loses: acos has 4 ulp (an angle up to pi, of up to n + 1 times), sine and cosine 4
    ulp; over the sine of half of the angle, or of all of it, whichever is less."""
    divisor = np.sqrt(np.maximum(1 - y * y, 0.0)) / 2 if family.sines else 1.0
    return np.where(np.abs(y) <= 1, unit * (8 * math.pi * (n + 1) + 16) * (1 + (n + 1) * family.sines) / divisor, 0.0)


def _polynomial(args: Sequence[Bounded], call: Call) -> Bounded:
    x, n = spread_out(args[0], call), np.broadcast_to(args[1].value, call.result.shape)
    if x.dtype != call.result.dtype:
        raise ValueError(f"{x.dtype} is not {call.result.dtype}")
    family, unit = FAMILIES[str(call.attrs["kind"])], PRECISION[x.dtype].unit + U64
    with np.errstate(all="ignore"):
        value = np.where(np.isfinite(x.value), x.value, 0.0)
        y = 2 * value - 1 if family.shifted else value
        error = 2 * x.error + 2 * unit * (2 * np.abs(value) + 1) if family.shifted else x.error
        p, lost, slope, curve = _tables(family, y, np.abs(y) + error, unit)
        degree = np.clip(n, 0, MOST).astype(np.int64)[None]
        p, lost, slope, curve = (np.take_along_axis(table, degree, 0)[0] for table in (p, lost, slope, curve))
        lost = lost + error * (np.abs(slope) + error * curve / 2)
        if family.angles:
            angle = _by_angle(family, y, n, unit)
            near_one = (n > 6) & (np.abs(y) < 1 + 4 * unit + error)
            lost = np.where(near_one, np.maximum(lost, np.where(np.abs(y) <= 1, lost + angle, np.inf)), lost)
        negative, constant = n < 0, n == 0
        p = np.where(negative, 0.0, np.where(constant, 1.0, p))
        lost = np.where(negative | constant, 0.0, np.where(np.isfinite(x.value), lost, np.inf))
        # a step may overflow before the difference does, and before it is divided by its number
        lost = np.where((np.abs(p) + lost) * (4 + 2 * degree[0]) > PRECISION[x.dtype].largest, np.inf, lost)
    # of NaN all are NaN that depend on it; of an infinity two terms may be
    no_number = np.isnan(x.value) & (n > 0)
    error = np.where(args[1].undetermined | x.undetermined | ~(np.isfinite(x.value) | no_number), np.inf, lost)
    return rounded(np.where(no_number, np.nan, p), np.where(no_number & ~args[1].undetermined, 0.0, error), x.dtype)


def _result(operands: Types, attrs: Attrs) -> TensorType:
    shape = broadcast_shape([t.shape for t in operands])
    if shape is None or attrs["kind"] not in FAMILIES:
        raise TypeRuleError(f"no polynomial {attrs['kind']} of {', '.join(map(str, operands))}")
    return TensorType(operands[0].dtype, shape)


def _torch(call: Call) -> str:
    return f"torch.special.{FAMILIES[str(call.attrs['kind'])].function}({{0}}, {{1}})"


_DEGREES = replace(broadcastable(0, ("int64", "int32")), domain=lambda _: (-1, MOST))


def _record(name: str, families: dict[str, Family]) -> OpSpec:
    return OpSpec(
        name, "special", (floating(), _DEGREES), _result, _polynomial, attrs={"kind": one_of(*families)},
        torch=_torch, tensorflow=NO_TENSORFLOW, jax=unsupported("JAX has no such function"), relax=NO_RELAX,
        onnx=NO_ONNX, thresholds=(1.0, 0.5, 0.0),
    )  # fmt: skip


chebyshev, orthogonal = _record("chebyshev", CHEBYSHEV), _record("orthogonal_polynomial", OTHERS)

OPERATORS: tuple[OpSpec, ...] = (chebyshev, orthogonal)
