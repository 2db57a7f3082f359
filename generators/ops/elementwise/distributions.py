"""Distribution functions: the probability of at most a number (cdf) and of more than it (sf), their logarithms, and the
number that a probability belongs to (ppf, isf), as scipy.stats, jax.scipy.stats and torch.distributions have them.

Both probabilities are to be right to a few roundings of themselves, however small they are: that is what there are two
functions for, and what scipy.stats computes. Only Pareto's and the generalised normal distribution are allowed a
rounding of 1, since scipy takes them from 1, too; so are logarithms, which may be those of a rounded probability."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import special

from generators.bounds.bounded import PRECISION, U64, Bounded, add, divide, ends, monotone, multiply
from generators.graph import Attr, TensorType
from generators.ops.composed import chosen, compute, given, magnitude, negated, undetermined
from generators.ops.elementwise.activations import OPERATORS as ACTIVATIONS
from generators.ops.elementwise.exponential import OPERATORS as EXPONENTIAL
from generators.ops.elementwise.incomplete import NO_TENSORFLOW, mostly
from generators.ops.elementwise.incomplete import OPERATORS as INCOMPLETE
from generators.ops.elementwise.normal import OPERATORS as NORMAL
from generators.ops.elementwise.powers import OPERATORS as POWERS
from generators.ops.elementwise.records import NO_ONNX, NO_RELAX
from generators.ops.elementwise.references import certainly_nan, constant, exactly, spread_out
from generators.ops.elementwise.special import OPERATORS as SPECIAL
from generators.ops.elementwise.trigonometric import OPERATORS as TRIGONOMETRIC
from generators.ops.slots import broadcast, broadcastable, floating
from generators.ops.spec import Attrs, Call, Draw, OpSpec, Slot, TypeRuleError, Types, Unsupported

Array = np.ndarray
Rule = Callable[..., Bounded]

_BY_NAME = {
    spec.name: spec for spec in (*ACTIVATIONS, *EXPONENTIAL, *INCOMPLETE, *NORMAL, *POWERS, *SPECIAL, *TRIGONOMETRIC)
}
ATAN_ULPS = 6
"""OpenCL C 3.0, 7.4: atanpi, atan2pi."""


def _f(name: str, *args: Bounded, **attrs: Attr) -> Bounded:
    return compute(_BY_NAME[name], *args, **attrs)


def _by(x: Bounded, number: float) -> Bounded:
    return multiply(x, given(number, x.dtype))


def _plus(x: Bounded, number: float) -> Bounded:
    return add(x, given(number, x.dtype))


def _rest(x: Bounded) -> Bounded:
    return add(exactly(1.0, x), x, -1.0)


def _standard(x: Bounded, m: Bounded, s: Bounded) -> Bounded:
    return divide(add(x, m, -1.0), s)


# ---- distributions ------------------------------------------------------------------------------------


def _unbounded(*parameters: Array) -> tuple[float, float]:
    return -math.inf, math.inf


def _positive(*parameters: Array) -> tuple[float, float]:
    return 0.0, math.inf


@dataclass(frozen=True)
class Distribution:
    """lower, upper: the probabilities, of x and parameters. log_lower, log_upper: where these are not the logarithms.
    quantile: of a probability and parameters, counted from below or from above; ends: where it starts and ends;
    proper: which parameters are meant. jax: the call of jax.scipy.stats, `f` in place of the function, and the
    functions that it has; torch: the distribution, without its last argument, and its functions."""

    lower: Rule
    upper: Rule
    jax: str
    outputs: str
    torch: str = ""
    there: str = "cdf ppf"
    quantile: Callable[..., Bounded] | None = None
    log_lower: Rule | None = None
    log_upper: Rule | None = None
    ends: Callable[..., tuple[Array | float, Array | float]] = _unbounded
    proper: Callable[..., Array] = lambda p, *q: np.asarray(p > 0)


def _of_standard(f: Callable[[Bounded], Bounded]) -> Rule:
    return lambda x, m, s: f(_standard(x, m, s))


def _placed(f: Callable[[Bounded, bool], Bounded]) -> Callable[..., Bounded]:
    return lambda q, upper, m, s: add(multiply(f(q, upper), s), m)


def _symmetric(f: Callable[[Bounded], Bounded], jax: str, torch: str, outputs: str, **fields: Any) -> Distribution:
    """f: the lower probability of a standard number."""
    return Distribution(
        _of_standard(f), _of_standard(lambda z: f(negated(z))), f"{jax}.f({{0}}, {{1}}, {{2}})", outputs,
        f"{torch}({{1}}, {{2}}, " if torch else "", proper=lambda m, s: s > 0, **fields,
    )  # fmt: skip


def _turned(f: Callable[[Bounded], Bounded]) -> Callable[[Bounded, bool], Bounded]:
    """The quantile of a distribution that is symmetric."""
    return lambda q, upper: negated(f(q)) if upper else f(q)


def _laplace(z: Bounded) -> Bounded:
    tail = _by(_f("exp", negated(magnitude(z))), 0.5)
    return chosen(z.value <= 0, tail, _rest(tail))


def _laplace_quantile(q: Bounded) -> Bounded:
    low = _f("log", _by(q, 2.0))
    return chosen(q.value <= 0.5, low, negated(_f("log", _by(_rest(q), 2.0))))


def _cauchy(z: Bounded) -> Bounded:
    return monotone(lambda v: np.arctan2(1.0, -v) / math.pi, z, ATAN_ULPS)


def _cauchy_quantile(q: Bounded) -> Bounded:
    """tan(pi (q - 1 / 2)): its angle from 1/2 has the roundings of pi, of a product and of a difference."""

    def f(v: Array) -> Array:
        near = np.tan(math.pi * (v - 0.5))
        far = -1 / np.tan(math.pi * np.where(v < 0.5, v, 1 - v)) * np.where(v < 0.5, 1.0, -1.0)
        found = np.where(np.abs(v - 0.5) < 0.25, near, far)
        found = np.where(v == 0, -np.inf, np.where(v == 1, np.inf, found))
        return np.where((v >= 0) & (v <= 1), found, np.nan)

    found = monotone(f, q, 12)
    close = np.abs(q.value - 0.5) < 0.375  # where the angle's roundings are of the size of 1
    more = np.where(close & np.isfinite(found.value), 8 * PRECISION[q.dtype].unit * (1 + found.value**2), 0.0)
    return replace(found, error=found.error + more)


def _doubly(z: Bounded) -> Bounded:
    return _f("exp", negated(_f("exp", negated(z))))


def _once(z: Bounded) -> Bounded:
    return negated(_f("expm1", negated(_f("exp", negated(z)))))


def _gumbel_quantile(q: Bounded, upper: bool) -> Bounded:
    """-log(-log(q)), or of 1 - q."""
    log = _f("log1p", negated(q)) if upper else _f("log", q)
    return negated(_f("log", negated(log)))


def _power(x: Bounded, b: Bounded, sign: float) -> Bounded:
    """x^(sign b), which may be exp(sign b log(x))."""
    found = _f("pow", x, b if sign > 0 else negated(b))
    with np.errstate(all="ignore"):
        exponent = np.abs(b.value * np.log(x.value))
        more = 4 * (PRECISION[x.dtype].unit + U64) * exponent * np.abs(found.value)
    return replace(found, error=found.error + np.where(np.isfinite(more), more, 0.0))


def _general(x: Bounded, beta: Bounded) -> Bounded:
    shape = divide(exactly(1.0, beta), beta)
    return _by(_f("igammac", shape, _f("pow", magnitude(x), beta)), 0.5)


def _counted(k: Bounded) -> Bounded:
    """floor(k) + 1 of a certain k."""
    low, high = (np.floor(end) for end in ends(k))
    return _plus(Bounded(np.floor(k.value), np.where(low == high, 0.0, np.inf), k.dtype), 1.0)


def _half(k: Bounded) -> Bounded:
    return _by(k, 0.5)


def _scaled(x: Bounded, s: Bounded) -> Bounded:
    return divide(x, multiply(s, constant(math.sqrt(2), s)))


PLACED: Mapping[str, Distribution] = {
    "normal": _symmetric(
        lambda z: _f("ndtr", z), "norm", "Normal", "cdf sf logcdf logsf ppf isf",
        quantile=_placed(_turned(lambda q: _f("ndtri", q))), log_lower=_of_standard(lambda z: _f("log_ndtr", z)),
        log_upper=_of_standard(lambda z: _f("log_ndtr", negated(z))),
    ),
    "laplace": _symmetric(_laplace, "laplace", "Laplace", "cdf ppf", quantile=_placed(_turned(_laplace_quantile))),
    "cauchy": _symmetric(
        _cauchy, "cauchy", "Cauchy", "cdf sf logcdf logsf ppf isf", quantile=_placed(_turned(_cauchy_quantile))
    ),
    "logistic": _symmetric(
        lambda z: _f("sigmoid", z), "logistic", "", "cdf sf ppf isf",
        quantile=_placed(_turned(lambda q: _f("logit", q, eps=None))),
    ),
    "gumbel_r": Distribution(
        _of_standard(_doubly), _of_standard(_once), "gumbel_r.f({0}, {1}, {2})", "cdf sf logcdf logsf ppf",
        "Gumbel({1}, {2}, ", "cdf", quantile=_placed(_gumbel_quantile),
        log_lower=_of_standard(lambda z: negated(_f("exp", negated(z)))), proper=lambda m, s: s > 0,
    ),
    "gumbel_l": Distribution(
        _of_standard(lambda z: _once(negated(z))), _of_standard(lambda z: _doubly(negated(z))),
        "gumbel_l.f({0}, {1}, {2})", "cdf sf logcdf logsf ppf",
        quantile=_placed(lambda q, upper: negated(_gumbel_quantile(q, not upper))),
        log_upper=_of_standard(lambda z: negated(_f("exp", z))), proper=lambda m, s: s > 0,
    ),
}  # fmt: skip
"""By a place and a scale."""
SHAPED: Mapping[str, Distribution] = {
    "exponential": Distribution(
        lambda x, s: negated(_f("expm1", negated(divide(x, s)))), lambda x, s: _f("exp", negated(divide(x, s))),
        "expon.f({0}, 0, {1})", "cdf sf logcdf logsf ppf", "Exponential(1 / {1}, ",
        quantile=lambda q, upper, s: multiply(negated(_f("log1p", negated(q))), s),
        log_upper=lambda x, s: negated(divide(x, s)), ends=_positive,
    ),
    "gamma": Distribution(
        lambda x, a: _f("igamma", a, x), lambda x, a: _f("igammac", a, x), "gamma.f({0}, {1})",
        "cdf sf logcdf logsf", "Gamma({1}, torch.ones_like({1}), ", "cdf", ends=_positive,
    ),
    "chi2": Distribution(
        lambda x, n: _f("igamma", _half(n), _half(x)), lambda x, n: _f("igammac", _half(n), _half(x)),
        "chi2.f({0}, {1})", "cdf sf logcdf logsf", "Chi2({1}, ", "cdf", ends=_positive,
    ),
    "pareto": Distribution(
        lambda x, b: _rest(_power(x, b, -1)), lambda x, b: _power(x, b, -1), "pareto.f({0}, {1})",
        "cdf sf logcdf logsf ppf",
        quantile=lambda q, upper, b: _power(_rest(q), divide(exactly(1.0, b), b), -1),
        log_upper=lambda x, b: negated(multiply(b, _f("log", x))), ends=lambda b: (1.0, math.inf),
    ),
    "general_normal": Distribution(
        lambda x, b: chosen(x.value < 0, _general(x, b), _rest(_general(x, b))),
        lambda x, b: chosen(x.value > 0, _general(x, b), _rest(_general(x, b))), "gennorm.f({0}, {1})", "cdf",
    ),
    "poisson": Distribution(
        lambda k, m: _f("igammac", _counted(k), m), lambda k, m: _f("igamma", _counted(k), m),
        "poisson.f({0}, {1})", "cdf", ends=_positive,
    ),
    "bernoulli": Distribution(
        lambda k, p: chosen(k.value >= 1, exactly(1.0, k), _rest(p)),
        lambda k, p: chosen(k.value >= 1, exactly(0.0, k), p), "bernoulli.f({0}, {1})", "cdf",
        ends=lambda p: (0.0, 1.0), proper=lambda p: (p >= 0) & (p <= 1),
    ),
    "uniform": Distribution(
        lambda x, s: divide(x, s), lambda x, s: _rest(divide(x, s)), "uniform.f({0}, 0, {1})", "cdf ppf",
        "Uniform(torch.zeros_like({1}), {1}, ", quantile=lambda q, upper, s: multiply(q, s),
        ends=lambda s: (0.0, s),
    ),
    "half_normal": Distribution(
        lambda x, s: _f("erf", _scaled(x, s)), lambda x, s: _rest(_f("erf", _scaled(x, s))), "", "cdf ppf",
        "HalfNormal({1}, ", ends=_positive,
        quantile=lambda q, upper, s: multiply(_f("ndtri", _by(_plus(q, 1.0), 0.5)), s),
    ),
    "half_cauchy": Distribution(
        lambda x, s: monotone(lambda v: np.arctan(v) * 2 / math.pi, divide(x, s), ATAN_ULPS),
        lambda x, s: monotone(lambda v: np.arctan2(1.0, v) * 2 / math.pi, divide(x, s), ATAN_ULPS), "", "cdf ppf",
        "HalfCauchy({1}, ", ends=_positive,
        quantile=lambda q, upper, s: multiply(_cauchy_quantile(_by(_plus(q, 1.0), 0.5)), s),
    ),
}  # fmt: skip
"""By one number: a scale, a shape, a probability."""


# ---- records ------------------------------------------------------------------------------------------


def _outputs(distributions: Mapping[str, Distribution], kind: object, inverse: bool) -> list[str]:
    return [name for name in distributions[str(kind)].outputs.split() if name.endswith(("ppf", "isf")) == inverse]


def _probability(one: Distribution, output: str, x: Bounded, parameters: Sequence[Bounded]) -> Bounded:
    """May be computed as the exponential of its logarithm, which loses u times that."""
    found = one.lower(x, *parameters) if output.endswith("cdf") else one.upper(x, *parameters)
    with np.errstate(all="ignore"):
        further = -2 * (PRECISION[x.dtype].unit + U64) * special.xlogy(np.abs(found.value), np.abs(found.value))
        further = np.where(np.isfinite(found.value) & (further > 0), further, 0.0)
    found = replace(found, error=found.error + further)
    if not output.startswith("log"):
        return found
    own = one.log_lower if output == "logcdf" else one.log_upper
    return own(x, *parameters) if own else _f("log", found)


def _function(distributions: Mapping[str, Distribution], name: str, inverse: bool, *operands: Slot) -> OpSpec:
    kinds = [kind for kind in distributions if _outputs(distributions, kind, inverse)]

    def kind_of(d: Draw, types: Types, attrs: Attrs) -> str:
        return d.choice(kinds)

    def output_of(d: Draw, types: Types, attrs: Attrs) -> str:
        return d.choice(_outputs(distributions, attrs["kind"], inverse))

    def result(types: Types, attrs: Attrs) -> TensorType:
        if attrs["kind"] not in kinds or attrs["output"] not in _outputs(distributions, attrs["kind"], inverse):
            raise TypeRuleError(f"no {attrs['output']!r} of a distribution {attrs['kind']!r}")
        return broadcast()(types, attrs)

    def probability(one: Distribution, output: str, x: Bounded, parameters: Sequence[Bounded]) -> Bounded:
        x_low, x_high = ends(x)
        moved = [one.ends(*values) for values in zip(*(ends(p) for p in parameters), strict=True)]
        (low, high), (low_too, high_too) = moved
        below = (x_high < np.minimum(low, low_too)) | (x.value == -np.inf)
        above = (x_low > np.maximum(high, high_too)) | (x.value == np.inf)
        moves = np.logical_or.reduce([p.error > 0 for p in (x, *parameters)])
        crossed = (x_low <= np.maximum(low, low_too)) & ~below | (x_high >= np.minimum(high, high_too)) & ~above
        crossed &= moves
        outside = below | above
        start = np.broadcast_to(np.where(np.isfinite(low), low, 0.5), x.value.shape)
        within = Bounded(start, np.zeros(start.shape), x.dtype)  # whatever stands there: it is replaced
        kept = [chosen(~outside, x, within), *(chosen(~outside, p, exactly(0.5, p)) for p in parameters)]
        found = _probability(one, output, kept[0], kept[1:])
        nothing = below if output.endswith("cdf") else above
        edge = np.where(nothing, 0.0, 1.0)
        edge = np.log(edge) if output.startswith("log") else edge
        return undetermined(chosen(outside, Bounded(edge, np.zeros(edge.shape), x.dtype), found), crossed)

    def quantile(one: Distribution, output: str, q: Bounded, parameters: Sequence[Bounded]) -> Bounded:
        (low, high), (q_low, q_high) = one.ends(*(p.value for p in parameters)), ends(q)
        certain = q.error == 0
        below, above = (q.value == 0) & certain, (q.value == 1) & certain
        none, crossed = (q_high < 0) | (q_low > 1), ~certain & ((q_low <= 0) | (q_high >= 1))
        special_ = below | above | none | crossed
        assert one.quantile is not None
        found = one.quantile(chosen(~special_, q, exactly(0.5, q)), output == "isf", *parameters)
        least, most = (high, low) if output == "isf" else (low, high)
        edge = np.where(none, np.nan, np.where(below, least, most))
        zeros = np.zeros(edge.shape)
        return undetermined(chosen(special_, Bounded(edge, zeros, q.dtype), found), crossed & ~none)

    def reference(args: Sequence[Bounded], call: Call) -> Bounded:
        """Open where a parameter is none, and where a number that is not exact may be outside."""
        one, output = distributions[str(call.attrs["kind"])], str(call.attrs["output"])
        x, *parameters = (spread_out(arg, call) for arg in args)
        nan = certainly_nan(x)
        with np.errstate(all="ignore"):
            values = [p.value for p in parameters]
            proper = one.proper(*values) & np.logical_and.reduce([np.isfinite(v) for v in values])
            proper &= ~np.logical_or.reduce([p.undetermined for p in parameters])
            kept = [chosen(proper, p, exactly(0.5, p)) for p in parameters]
            kept_x = chosen(~nan & ~x.undetermined, x, exactly(0.5, x))
            found = (quantile if inverse else probability)(one, output, kept_x, kept)
        open_ = (~proper & ~nan) | x.undetermined
        # a parameter that is NaN makes everything so; one that is none may make anything of NaN
        value = np.where(nan, np.nan, found.value)
        error = np.where(nan, 0.0, found.error)
        return undetermined(Bounded(value, error, x.dtype), open_ | (~proper & nan))

    def jax(call: Call) -> str | Unsupported:
        text = distributions[str(call.attrs["kind"])].jax
        output = str(call.attrs["output"])
        if not text or (call.attrs["kind"] == "laplace" and output != "cdf"):
            return Unsupported("jax.scipy.stats has no such function")
        if call.attrs["kind"] == "normal" and call.result.dtype in ("float16", "bfloat16"):
            return Unsupported("jax.scipy.special.ndtr takes float32 and float64")
        return f"jax.scipy.stats.{text.replace('.f(', f'.{output}(')}"

    def torch(call: Call) -> str | Unsupported:
        one, output = distributions[str(call.attrs["kind"])], call.attrs["output"]
        if not one.torch or output not in one.there.split():
            return Unsupported("torch.distributions has no such function")
        function = "distribution_function" if output == "cdf" else "distribution_quantile"
        return f"{function}(torch.distributions.{one.torch}validate_args=False), {{0}})"

    return OpSpec(
        name, "special", operands, result, reference, attrs={"kind": kind_of, "output": output_of}, torch=torch,
        tensorflow=NO_TENSORFLOW, jax=jax, relax=NO_RELAX, onnx=NO_ONNX,
    )  # fmt: skip


_SCALE = mostly(broadcastable(0), 0, 4)
_NUMBER, _SHARE = mostly(floating(), 0, 9), mostly(floating(), 0, 1)
OPERATORS: tuple[OpSpec, ...] = (
    _function(PLACED, "placed_distribution_function", False, floating(), broadcastable(0), _SCALE),
    _function(SHAPED, "distribution_function", False, _NUMBER, _SCALE),
    _function(PLACED, "placed_distribution_quantile", True, _SHARE, broadcastable(0), _SCALE),
    _function(SHAPED, "distribution_quantile", True, _SHARE, _SCALE),
)
