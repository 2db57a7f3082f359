"""Incomplete gamma and beta functions, polygamma and Hurwitz' zeta function.

The float64 values are scipy's. Kernels multiply a sum by a prefactor, exp(t_1 + t_2 + ...), whose exponent loses u
times the sum of the magnitudes of its terms: that is the relative error of whichever of P and 1 - P is computed, and
the absolute one of the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy import special

from generators.bounds.bounded import PRECISION, U64, Bounded, add, monotone, rounded, spread
from generators.graph import TensorType
from generators.ops.composed import compute
from generators.ops.elementwise.records import NO_ONNX, NO_RELAX
from generators.ops.elementwise.references import certainly_nan, corners, spread_out, unit_of
from generators.ops.elementwise.special import OPERATORS as SPECIAL
from generators.ops.slots import broadcast, broadcastable, floating, int_of, like, one_of, same_as
from generators.ops.spec import Attrs, Call, OpSpec, Reference, Slot, TypeRuleError, Types, unsupported

Array = np.ndarray

SUM = 32
"""Roundings of the sums, and of scipy's value: terms of one sign, most of them far smaller than the first."""
_digamma = next(spec for spec in SPECIAL if spec.name == "digamma")
_log_gamma = next(spec for spec in SPECIAL if spec.name == "lgamma")


def _incomplete_gamma(upper: bool) -> Reference:
    """P(a, x) or Q(a, x) = 1 - P(a, x), of a, x <= 10^12, as far as the prefactor's exponent leaves digits: scipy has
    Temme's expansion where both are large and near each other, of which series want thousands of terms. The prefactor
    is x^a exp(-x) / Gamma(a), and relative to what is computed, the lesser of both, but up to x = 1 always P, of a
    small a next to 1, and Q is 1 - P, however small it is (XLA). P rises in x and falls in a.
    Undetermined outside of the domain, where frameworks have NaN or 1, on its edge a = 0, and for infinities."""

    def reference(args: Sequence[Bounded], call: Call) -> Bounded:
        a, x = (spread_out(arg, call) for arg in args)
        f, other = (special.gammaincc, special.gammainc) if upper else (special.gammainc, special.gammaincc)
        coarse = PRECISION[x.dtype].unit > PRECISION["float32"].unit
        with np.errstate(all="ignore"):
            nan = certainly_nan(a) | certainly_nan(x)
            inside = (a.value - a.error > PRECISION[a.dtype].tiny) & (x.value - x.error >= 0)
            inside &= (a.value < 1e12) & (x.value < 1e12)
            p, q = np.where(inside, a.value, 1.0), np.where(inside, x.value, 1.0)
            terms = np.abs(p * np.log(np.maximum(q, PRECISION[x.dtype].tiny))) + q + np.abs(special.gammaln(p)) + p
            value, rest = f(p, q), other(p, q)
            computed = np.where(q <= 1.1, rest if upper else value, np.minimum(value, rest))
            own = SUM * value + (SUM + 4 * terms + 4 * np.sqrt(p)) * computed
            own += SUM * ((q <= 1.1) if upper else 0.0)
            error = corners(f, a, x, f(a.value, x.value)) + unit_of(x) * own
            # the prefactor may vanish before the result does
            error += np.where(np.minimum(value, rest) > 0, PRECISION[x.dtype].tiny * (1 + q), 0.0)
            lost = 4 * terms * unit_of(x) > 0.125
            # a probability still, but in formats of few bits, whose prefactors overflow
            error = np.where(lost, np.inf if coarse else 1.0, error)
        value = np.where(nan, np.nan, value)
        return rounded(value, np.where(nan, 0.0, np.where(inside, error, np.inf)), x.dtype, 1)

    return reference


def _incomplete_beta(args: Sequence[Bounded], call: Call) -> Bounded:
    """I_x(a, b), of a, b <= 10^3. The prefactor is x^a (1 - x)^b / (a B(a, b)); beyond x = (a + 1) / (a + b + 2) it is
    1 - I_(1-x)(b, a) (Press et al., *Numerical Recipes*, 6.4, and JAX), or beyond a / (a + b), and there only where
    the power series does not serve, b x > 1 or x > 0.95 (Cephes' incbet, and Eigen). What the logarithms of the
    prefactor lose is relative to that of both which is computed, also where it is the greater one: of a small a,
    which is next to 1. Rises in x and b, falls in a. NaN outside of the domain; undetermined on its edge, and where
    gradients of a kernel start."""
    a, b, x = args
    with np.errstate(all="ignore"):
        outside = (x.value - x.error > 1) | np.logical_or.reduce([v.value + v.error < 0 for v in args])
        outside |= np.logical_or.reduce([certainly_nan(v) for v in args])
        inside = (a.value - a.error > 1e-4) & (b.value - b.error > 1e-4) & (a.value < 1e3) & (b.value < 1e3)
        inside &= (x.value - x.error >= 0) & (x.value + x.error <= 1)
        p, q = np.where(inside, a.value, 1.0), np.where(inside, b.value, 1.0)
        z = np.where(inside, x.value, 0.5)
        tiny = PRECISION[x.dtype].tiny
        logs = p * np.abs(np.log(np.maximum(z, tiny))) + q * np.abs(np.log1p(-np.minimum(z, 1 - U64)))
        # what each of the three logarithms of gamma functions is allowed, as an operator of its own
        gammas = sum((1 + v) * np.log(v + 7) + np.abs(np.log(v)) for v in (p, q, p + q))
        lost_terms = 8 * logs + 16 * gammas
        value, rest = special.betainc(p, q, z), special.betainc(q, p, 1 - z)
        switches = np.stack([(p + 1) / (p + q + 2), p / (p + q)])
        swapped = z > 0.99 * np.min(switches, axis=0)
        direct = (z < 1.01 * np.max(switches, axis=0)) | (q * z <= 1.01) & (z <= 0.96)
        computed = np.maximum(np.where(direct, value, 0.0), np.where(swapped, rest, 0.0))
        steps = 4 * np.sqrt(np.maximum(p, q))  # so many has the continued fraction, times a constant
        own = SUM * value + (3 * SUM + steps + lost_terms) * computed + SUM * swapped
        (a0, b0, x0), (a1, b1, x1) = ([v.value + s * v.error for v in args] for s in (-1, 1))
        moved = spread(value, special.betainc(a0, b1, x1), special.betainc(a1, b0, x0))
        moved = np.where(a.error + b.error + x.error > 0, moved, 0.0)
        error = moved + unit_of(x) * own + np.where((value > 0) & (rest > 0), 4 * tiny, 0.0)
        lost = ~inside | (lost_terms * unit_of(x) > 0.125)
    value = np.where(outside, np.nan, value)
    return rounded(value, np.where(outside, 0.0, np.where(lost, np.inf, error)), x.dtype, 1)


def _polygamma(args: Sequence[Bounded], call: Call) -> Bounded:
    """n = 0 is digamma, else n! zeta(n + 1, x) up to a sign: powers of 16 ulp, a factorial that is exp(lgamma(n + 1)),
    of terms up to 7. Of 2^-20 <= x <= 10^6, as digamma; undetermined elsewhere."""
    n, x = int(call.number("n")), args[0]
    if n == 0:
        return compute(_digamma, x)
    with np.errstate(all="ignore"):
        known = (x.value - x.error >= 2.0**-20) & (x.value < 1e6)
        inside = Bounded(np.where(known, x.value, 1.0), np.where(known, x.error, 0.0), x.dtype)
        result = monotone(lambda v: special.polygamma(n, v), inside, 96)
        # the factors may leave the range before the result does
        large, least = PRECISION[x.dtype].largest / 1e4, PRECISION[x.dtype].tiny * 1e4
        known &= (np.abs(result.value) < large) & (np.abs(result.value) > least)
    nan = certainly_nan(x)
    return Bounded(
        np.where(nan, np.nan, result.value), np.where(nan, 0.0, np.where(known, result.error, np.inf)), x.dtype
    )


def _zeta(args: Sequence[Bounded], call: Call) -> Bounded:
    """The sum of (k + q)^-s, s > 1 and q > 0: falling in q, convex in s (a sum of exponentials), so that the spread
    over an interval is at most twice that of its ends. Powers have 16 ulp. 0 of an infinite q; undetermined
    elsewhere."""
    s, q = (spread_out(arg, call) for arg in args)
    p = PRECISION[s.dtype]
    with np.errstate(all="ignore"):
        nan = certainly_nan(s) | certainly_nan(q)
        inside = (s.value - s.error > 1) & (q.value - q.error >= 2.0**-20) & (s.value < 100) & (q.value < 1e6)
        value = special.zeta(np.where(inside, s.value, 2.0), np.where(inside, q.value, 1.0))
        error = 2 * corners(special.zeta, s, q, special.zeta(s.value, q.value))
        inside &= (value < p.largest / 1e4) & (value > 1e4 * p.tiny)
        vanished = ~nan & (s.value - s.error > 1) & (s.value < np.inf) & (q.value == np.inf) & (q.error == 0)
    error = np.where(nan | vanished, 0.0, np.where(inside, error, np.inf))
    result = rounded(np.where(nan, np.nan, np.where(vanished, 0.0, value)), error, s.dtype, 80)
    return replace(result, error=np.where(vanished, 0.0, result.error))


def _multivariate(args: Sequence[Bounded], call: Call) -> Bounded:
    """p (p - 1) / 4 log(pi) + the sum of lgamma(x - j / 2), j < p (James 1964), of x > (p - 1) / 2."""
    p, x = int(call.number("p")), args[0]
    shape = x.value.shape

    def given(value: float) -> Bounded:
        return Bounded(np.full(shape, value), np.zeros(shape), x.dtype)

    total = rounded(np.full(shape, p * (p - 1) / 4 * np.log(np.pi)), np.zeros(shape), x.dtype, 4)
    for j in range(p):
        total = add(total, compute(_log_gamma, add(x, given(j / 2), -1.0)))
    return total


def mostly(slot: Slot, low: int, high: int) -> Slot:
    """Of numbers of the function's domain, which seldom are among those that are drawn otherwise."""
    return replace(slot, span=(low, high))


def _degree(operands: Types, attrs: Attrs) -> TensorType:
    if not 0 <= int_of(attrs, "n") <= 5:
        raise TypeRuleError(f"no polygamma function of order {attrs['n']}")
    return operands[0]


_SHAPE_AND_PLACE = (mostly(floating(), 0, 30), broadcastable(0))
_LARGE = (2e4, 1e6, 1e8, 1e10)
"""Where both are near each other: kernels run out of the terms of their series."""
NO_TENSORFLOW = unsupported("TensorFlow has no such function")

OPERATORS: tuple[OpSpec, ...] = (
    OpSpec(
        "igamma", "special", _SHAPE_AND_PLACE, broadcast(), _incomplete_gamma(upper=False),
        torch="torch.special.gammainc({0}, {1})", tensorflow="tf.math.igamma({0}, {1})",
        jax="jax.scipy.special.gammainc({0}, {1})", relax=NO_RELAX, onnx=NO_ONNX, thresholds=_LARGE,
    ),
    OpSpec(
        "igammac", "special", _SHAPE_AND_PLACE, broadcast(), _incomplete_gamma(upper=True),
        torch="torch.special.gammaincc({0}, {1})", tensorflow="tf.math.igammac({0}, {1})",
        jax="jax.scipy.special.gammaincc({0}, {1})", relax=NO_RELAX, onnx=NO_ONNX, thresholds=_LARGE,
    ),
    OpSpec(
        "betainc", "special", (mostly(floating(), 0, 20), mostly(like(0), 0, 20), mostly(like(0), 0, 1)),
        same_as(0), _incomplete_beta,
        torch=unsupported("PyTorch has no such function"), tensorflow="tf.math.betainc({0}, {1}, {2})",
        jax="jax.scipy.special.betainc({0}, {1}, {2})", relax=NO_RELAX, onnx=NO_ONNX,
    ),
    OpSpec(
        "polygamma", "special", (floating(),), _degree, _polygamma, attrs={"n": one_of(1, 0, 2, 3, 5)},
        torch="torch.polygamma({n}, {0})",
        tensorflow="tf.math.polygamma(tf.fill(tf.shape({0}), tf.constant({n}, {dtype})), {0})",
        jax="jax.lax.polygamma(jnp.full({shape}, {n}, {dtype}), {0})", relax=NO_RELAX, onnx=NO_ONNX,
    ),
    OpSpec(
        "zeta", "special", (mostly(floating(), 1, 8), mostly(broadcastable(0), 0, 20)), broadcast(), _zeta,
        torch="torch.special.zeta({0}, {1})",
        tensorflow="tf.math.zeta({0}, {1})", jax="jax.scipy.special.zeta({0}, {1})", relax=NO_RELAX, onnx=NO_ONNX,
    ),
    OpSpec(
        "mvlgamma", "special", (replace(floating(), domain=lambda _: (1, 12)),), same_as(0), _multivariate,
        attrs={"p": one_of(2, 1, 3)},
        torch="torch.mvlgamma({0}, {p})", tensorflow=NO_TENSORFLOW,
        jax="jax.scipy.special.multigammaln({0}, {p})", relax=NO_RELAX, onnx=NO_ONNX,
    ),
)  # fmt: skip
