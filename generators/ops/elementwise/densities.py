"""Densities and probabilities of distributions, and their logarithms, as jax.scipy.stats and torch.distributions have
them: 0, and -infinity, outside of the support.

Each is a sum of terms that are computed one by one here. Libraries arrange them otherwise (log(2 pi s^2) for 2 log s
and a constant; a quotient of squares for a square of quotients), so that each term is allowed a few roundings more
(`_sum`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from generators.bounds.bounded import PRECISION, Bounded, add, divide, monotone, multiply
from generators.graph import TensorType
from generators.ops.composed import chosen, compute, given, magnitude, negated, undetermined
from generators.ops.elementwise.exponential import OPERATORS as EXPONENTIAL
from generators.ops.elementwise.incomplete import NO_TENSORFLOW, mostly
from generators.ops.elementwise.records import NO_ONNX, NO_RELAX
from generators.ops.elementwise.references import certainly_nan, constant, spread_out
from generators.ops.elementwise.special import OPERATORS as SPECIAL
from generators.ops.elementwise.trigonometric import OPERATORS as TRIGONOMETRIC
from generators.ops.slots import broadcast, broadcastable, floating, one_of
from generators.ops.spec import Attrs, Call, OpSpec, Slot, TypeRuleError, Types, Unsupported

Array = np.ndarray

_BY_NAME = {spec.name: spec for spec in (*EXPONENTIAL, *SPECIAL)}
_COSINE = next(spec for spec in TRIGONOMETRIC if spec.name == "cos")
FEW = 8
"""Roundings of each term by which arrangements differ."""


def _f(name: str, *args: Bounded) -> Bounded:
    return compute(_BY_NAME[name], *args)


def _sum(*terms: Bounded) -> Bounded:
    total, size = terms[0], np.abs(terms[0].value)
    with np.errstate(all="ignore"):
        for term in terms[1:]:
            total, size = add(total, term), size + np.abs(term.value)
        further = FEW * PRECISION[total.dtype].unit * np.where(np.isfinite(size), size, 0.0)
    return Bounded(total.value, total.error + further, total.dtype)


def _by(x: Bounded, number: float) -> Bounded:
    return multiply(x, given(number, x.dtype))


def _plus(x: Bounded, number: float) -> Bounded:
    return add(x, given(number, x.dtype))


# ---- distributions ------------------------------------------------------------------------------------


def _everywhere(x: Array, *parameters: Array) -> Array:
    return np.ones(x.shape, bool)


def _nowhere(x: Array, *parameters: Array) -> Array:
    return np.zeros(x.shape, bool)


def _between(x: Array, s: Array) -> Array:
    return (x >= 0) & (x <= s)


def _at_end(x: Array, s: Array) -> Array:
    return x == s


@dataclass(frozen=True)
class Distribution:
    """value: of x and parameters; proper: which parameters are meant, of their values; inside: the support, of x and
    parameters; edge: where it ends, and libraries differ about whether the end belongs to it. jax: the function of
    jax.scipy.stats; torch: the distribution, without its last argument."""

    value: Callable[..., Bounded]
    jax: str
    torch: str = ""
    proper: Callable[..., Array] = lambda p, *q: p > 0
    inside: Callable[..., Array] = _everywhere
    edge: Callable[..., Array] = _nowhere


def _whole(x: Array) -> Array:
    return np.asarray((x >= 0) & (x == np.rint(x)))


def _standard(x: Bounded, m: Bounded, s: Bounded) -> Bounded:
    return divide(add(x, m, -1.0), s)


def _normal(x: Bounded, m: Bounded, s: Bounded) -> Bounded:
    y = _standard(x, m, s)
    return _sum(_by(multiply(y, y), -0.5), negated(_f("log", s)), constant(-0.5 * math.log(2 * math.pi), s))


def _laplace(x: Bounded, m: Bounded, s: Bounded) -> Bounded:
    return _sum(negated(magnitude(_standard(x, m, s))), negated(_f("log", s)), constant(-math.log(2.0), s))


def _cauchy(x: Bounded, m: Bounded, s: Bounded) -> Bounded:
    y = _standard(x, m, s)
    return _sum(negated(_f("log1p", multiply(y, y))), negated(_f("log", s)), constant(-math.log(math.pi), s))


def _logistic(x: Bounded, m: Bounded, s: Bounded) -> Bounded:
    y = magnitude(_standard(x, m, s))
    return _sum(negated(y), _by(_f("log1p", _f("exp", negated(y))), -2.0), negated(_f("log", s)))


def _exponential(x: Bounded, s: Bounded) -> Bounded:
    return _sum(negated(divide(x, s)), negated(_f("log", s)))


def _gamma(x: Bounded, a: Bounded) -> Bounded:
    return _sum(_f("xlogy", _plus(a, -1.0), x), negated(x), negated(_f("lgamma", a)))


def _chi2(x: Bounded, n: Bounded) -> Bounded:
    """Of two degrees of freedom the power is 0 however it is computed, and the density at 0 is 1/2."""
    half = _by(n, 0.5)
    none = given(np.zeros(n.value.shape), n.dtype)
    power = _f("xlogy", chosen((n.error == 0) & (n.value == 2), none, _plus(half, -1.0)), x)
    return _sum(power, _by(x, -0.5), negated(_f("lgamma", half)), multiply(half, constant(-math.log(2.0), half)))


def _pareto(x: Bounded, b: Bounded) -> Bounded:
    return _sum(_f("log", b), negated(multiply(_plus(b, 1.0), _f("log", x))))


def _student(x: Bounded, n: Bounded) -> Bounded:
    more = _by(_plus(n, 1.0), 0.5)
    tail = multiply(more, _f("log1p", divide(multiply(x, x), n)))
    scale = _by(add(_f("log", n), constant(math.log(math.pi), n)), -0.5)
    return _sum(negated(tail), scale, negated(_f("lgamma", _by(n, 0.5))), _f("lgamma", more))


def _poisson(k: Bounded, m: Bounded) -> Bounded:
    return _sum(_f("xlogy", k, m), negated(_f("lgamma", _plus(k, 1.0))), negated(m))


def _bernoulli(k: Bounded, p: Bounded) -> Bounded:
    rest = _f("xlogy", add(given(1.0, k.dtype), k, -1.0), add(given(1.0, p.dtype), p, -1.0))
    return _sum(_f("xlogy", k, p), rest)


def _geometric(k: Bounded, p: Bounded) -> Bounded:
    """Of the first success, k = 1 and on; PyTorch counts the failures before it."""
    log = _f("log1p", negated(p))
    return _sum(
        chosen(k.value == 1, given(np.zeros(k.value.shape), k.dtype), multiply(_plus(k, -1.0), log)), _f("log", p)
    )


def _von_mises(x: Bounded, k: Bounded) -> Bounded:
    """On a circle: exp(k cos(x)) / (2 pi I_0(k)), even all around where k is 0."""
    turned = multiply(k, _plus(compute(_COSINE, x), -1.0))
    scale = monotone(special.i0e, k, 16)
    return _sum(turned, negated(_f("log", scale)), constant(-math.log(2 * math.pi), k))


def _uniform(x: Bounded, s: Bounded) -> Bounded:
    return chosen(np.ones(x.value.shape, bool), negated(_f("log", s)), x)


def _share(p: Array) -> Array:
    return (p > 0) & (p < 1)


_PLACED: Mapping[str, Distribution] = {
    "normal": Distribution(_normal, "norm.logpdf({0}, {1}, {2})", "Normal({1}, {2}, ", lambda m, s: s > 0),
    "laplace": Distribution(_laplace, "laplace.logpdf({0}, {1}, {2})", "Laplace({1}, {2}, ", lambda m, s: s > 0),
    "cauchy": Distribution(_cauchy, "cauchy.logpdf({0}, {1}, {2})", "Cauchy({1}, {2}, ", lambda m, s: s > 0),
    "logistic": Distribution(_logistic, "logistic.logpdf({0}, {1}, {2})", "", lambda m, s: s > 0),
}
"""By a place and a scale."""
_SHAPED: Mapping[str, Distribution] = {
    "exponential": Distribution(
        _exponential, "expon.logpdf({0}, 0, {1})", "Exponential(1 / {1}, ", inside=lambda x, s: x >= 0
    ),
    "gamma": Distribution(
        _gamma, "gamma.logpdf({0}, {1})", "Gamma({1}, torch.ones_like({1}), ", inside=lambda x, a: x >= 0
    ),
    "chi2": Distribution(_chi2, "chi2.logpdf({0}, {1})", "Chi2({1}, ", inside=lambda x, n: x >= 0),
    "pareto": Distribution(_pareto, "pareto.logpdf({0}, {1})", "", inside=lambda x, b: x >= 1),
    "student_t": Distribution(_student, "t.logpdf({0}, {1})", "StudentT({1}, "),
    "poisson": Distribution(_poisson, "poisson.logpmf({0}, {1})", "Poisson({1}, ", inside=lambda k, m: _whole(k)),
    "bernoulli": Distribution(
        _bernoulli,
        "bernoulli.logpmf({0}, {1})",
        "Bernoulli({1}, ",
        lambda p: _share(p),
        lambda k, p: (k == 0) | (k == 1),
    ),
    "geometric": Distribution(
        _geometric, "geom.logpmf({0}, {1})", "", lambda p: _share(p), lambda k, p: _whole(k) & (k >= 1)
    ),
    "von_mises": Distribution(_von_mises, "vonmises.logpdf({0}, {1})", "", lambda k: k >= 0),
    "uniform": Distribution(
        _uniform, "uniform.logpdf({0}, 0, {1})", "Uniform(torch.zeros_like({1}), {1}, ", inside=_between, edge=_at_end
    ),
}
"""By one number: a scale, a shape, a probability."""


# ---- records ------------------------------------------------------------------------------------------


def _density(
    distributions: Mapping[str, Distribution], name: str, logarithm: bool, first: Slot, *further: Slot
) -> OpSpec:
    def result(operands: Types, attrs: Attrs) -> TensorType:
        if attrs["kind"] not in distributions:
            raise TypeRuleError(f"no distribution {attrs['kind']!r}")
        return broadcast()(operands, attrs)

    def reference(args: Sequence[Bounded], call: Call) -> Bounded:
        """Open where a parameter is none, where a number that is not exact may be outside, and at infinities."""
        one = distributions[str(call.attrs["kind"])]
        x, *parameters = (spread_out(arg, call) for arg in args)
        values = [p.value for p in parameters]
        nan = np.logical_or.reduce([certainly_nan(arg) for arg in (x, *parameters)])
        with np.errstate(all="ignore"):
            proper = one.proper(*values) & np.logical_and.reduce([np.isfinite(v) for v in (x.value, *values)])
            inside = one.inside(x.value, *values)
            edge = one.edge(x.value, *values)
            moves = np.logical_or.reduce([p.error > 0 for p in (x, *parameters)])
            # stand-ins where there is none, so that nothing of them is taken
            kept = [
                chosen(proper & inside, arg, given(np.ones(arg.value.shape), arg.dtype)) for arg in (x, *parameters)
            ]
            if call.attrs["kind"] in ("bernoulli", "geometric"):
                half = given(np.full(x.value.shape, 0.5), x.dtype)
                kept[1] = chosen(proper & inside, parameters[0], half)
            found = one.value(*kept)
            found = found if logarithm else _f("exp", found)
        outside = Bounded(np.full(x.value.shape, -np.inf if logarithm else 0.0), np.zeros(x.value.shape), x.dtype)
        found = chosen(proper & ~inside, outside, found)
        always = one.inside is _everywhere
        open_ = ~proper | (moves & (not always)) | edge
        value = np.where(nan, np.nan, np.where(open_, 0.0, found.value))
        return undetermined(Bounded(value, np.where(nan, 0.0, found.error), x.dtype), open_ & ~nan)

    def jax(call: Call) -> str:
        text = distributions[str(call.attrs["kind"])].jax
        return f"jax.scipy.stats.{text if logarithm else text.replace('.log', '.')}"

    def torch(call: Call) -> str | Unsupported:
        text = distributions[str(call.attrs["kind"])].torch
        if not text:
            return Unsupported("it is none there, or a transformed one")
        found = f"log_density(torch.distributions.{text}validate_args=False), {{0}})"
        return found if logarithm else f"torch.exp({found})"

    return OpSpec(
        name, "special", (first, *further), result, reference, attrs={"kind": one_of(*distributions)}, torch=torch,
        tensorflow=NO_TENSORFLOW, jax=jax, relax=NO_RELAX, onnx=NO_ONNX,
    )  # fmt: skip


_PLACES = (floating(), broadcastable(0), mostly(broadcastable(0), 0, 4))
_SHAPES = (mostly(floating(), 0, 9), mostly(broadcastable(0), 0, 4))
OPERATORS: tuple[OpSpec, ...] = (
    _density(_PLACED, "placed_log_density", True, *_PLACES),
    _density(_SHAPED, "log_density", True, *_SHAPES),
    _density(_PLACED, "placed_density", False, *_PLACES),
    _density(_SHAPED, "density", False, *_SHAPES),
)
