"""The gamma function and what is made of it: the beta function, its logarithm, rising factorials; and terms of relative
entropies. JAX composes them of lgamma, exp and xlogy; so do their references, of positive numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from generators.bounds.bounded import Bounded, add
from generators.ops.composed import chosen, compute
from generators.ops.elementwise.exponential import OPERATORS as EXPONENTIAL
from generators.ops.elementwise.incomplete import NO_TENSORFLOW, mostly
from generators.ops.elementwise.records import NO_ONNX, NO_RELAX
from generators.ops.elementwise.references import certainly_nan, spread_out
from generators.ops.elementwise.special import OPERATORS as SPECIAL
from generators.ops.slots import broadcast, broadcastable, floating, same_as
from generators.ops.spec import Call, OpSpec, Reference, Spelling, unsupported

_BY_NAME = {spec.name: spec for spec in (*SPECIAL, *EXPONENTIAL)}
_NO_TORCH = unsupported("PyTorch has no such function")


def _log_gamma(x: Bounded) -> Bounded:
    return compute(_BY_NAME["lgamma"], x)


def _exp(x: Bounded) -> Bounded:
    return compute(_BY_NAME["exp"], x)


def _gamma(args: Sequence[Bounded], call: Call) -> Bounded:
    return _exp(_log_gamma(args[0]))


def _log_beta(args: Sequence[Bounded], call: Call) -> Bounded:
    x, y = (spread_out(arg, call) for arg in args)
    return add(add(_log_gamma(x), _log_gamma(y)), _log_gamma(add(x, y)), -1.0)


def _beta(args: Sequence[Bounded], call: Call) -> Bounded:
    return _exp(_log_beta(args, call))


def _rising(args: Sequence[Bounded], call: Call) -> Bounded:
    """Gamma(x + m) / Gamma(x)."""
    x, m = (spread_out(arg, call) for arg in args)
    return _exp(add(_log_gamma(add(x, m)), _log_gamma(x), -1.0))


def _relative_entropy(args: Sequence[Bounded], call: Call) -> Bounded:
    """p log(p / q), as scipy.special.rel_entr: 0 of p = 0 and q >= 0, infinite of an infinite p, of negative
    numbers, and where q alone is 0."""
    p, q = (spread_out(arg, call) for arg in args)
    log = _BY_NAME["xlogy"]
    inside = add(compute(log, p, p), compute(log, p, q), -1.0)
    with np.errstate(invalid="ignore"):
        exact = (p.error == 0) & (q.error == 0)
        positive, zero = (p.value > 0) & (q.value > 0), (p.value == 0) & (q.value >= 0)
        nan = certainly_nan(p) | certainly_nan(q)
        sure = positive & (p.value > p.error) & (q.value > q.error) & np.isfinite(p.value)
        exact &= ~((p.value == np.inf) & (q.value == np.inf))
    plain = np.where(zero, 0.0, np.where(nan, np.nan, np.inf))
    outside = Bounded(plain, np.where(exact | nan, 0.0, np.inf), p.dtype)
    return chosen(sure, inside, outside)


def _divergence(args: Sequence[Bounded], call: Call) -> Bounded:
    """p log(p / q) - p + q; of p = 0, q."""
    p, q = (spread_out(arg, call) for arg in args)
    entropy = _relative_entropy(args, call)
    return chosen(np.isfinite(entropy.value), add(add(entropy, p, -1.0), q), entropy)


def _record(
    name: str, reference: Reference, jax: str, low: int, high: int, tensorflow: Spelling = NO_TENSORFLOW
) -> OpSpec:
    pair = "{1}" in jax
    first = mostly(floating(), low, high)
    return OpSpec(
        name, "special", (first, mostly(broadcastable(0), low, high)) if pair else (first,),
        broadcast() if pair else same_as(0), reference,
        torch=_NO_TORCH, tensorflow=tensorflow, jax=jax, relax=NO_RELAX, onnx=NO_ONNX,
    )  # fmt: skip


_STACKED = "tf.stack([tf.broadcast_to({0}, {shape}), tf.broadcast_to({1}, {shape})], axis=-1)"

OPERATORS: tuple[OpSpec, ...] = (
    _record("gamma_function", _gamma, "jax.scipy.special.gamma({0})", 0, 30),
    _record("log_beta", _log_beta, "jax.scipy.special.betaln({0}, {1})", 0, 30, f"tf.math.lbeta({_STACKED})"),
    _record("beta_function", _beta, "jax.scipy.special.beta({0}, {1})", 0, 20),
    _record("rising_factorial", _rising, "jax.scipy.special.poch({0}, {1})", 0, 20),
    _record("relative_entropy", _relative_entropy, "jax.scipy.special.rel_entr({0}, {1})", 0, 4),
    _record("kullback_leibler", _divergence, "jax.scipy.special.kl_div({0}, {1})", 0, 4),
)
