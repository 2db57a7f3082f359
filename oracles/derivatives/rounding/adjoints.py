"""The formulas that frameworks write down for gradients of softmax, reductions and losses, which work on whole
adjoints, with running error bounds: PyTorch's `derivatives.yaml` and `FunctionsManual.cpp`, TensorFlow's
`math_grad.py` and `nn_grad.py`, JAX' `nn/functions.py` and `ops/special.py`, TVM's `_op_gradient.py`, and the chain
rule of compositions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import numpy as np

from generators.ops.reduce.corrected import factor
from generators.ops.reduce.records import axes_in
from generators.ops.slots import normalized
from generators.ops.spec import Call
from oracles.derivatives.rounding.elementwise import sigmoid_slope
from oracles.derivatives.rounding.normalised import NORMALISED, Adjoint
from oracles.derivatives.rounding.running import Number, chosen, exactly

Array = np.ndarray
Ways = Sequence[Number]

# ---- softmax ------------------------------------------------------------------------------------------


def _raised(x: Number, axes: tuple[int, ...]) -> tuple[Number, Number]:
    """exp(x - max x), and the sum of it."""
    found = (x - x.max(axes)).f("exp")
    return found, found.sum(axes)


def _softmax(x: Sequence[Number], y: Number, position: int, call: Call) -> Adjoint:
    axes = normalized(call.attrs["axis"], call.result.rank)

    def ways(g: Number) -> Ways:
        """(g - sum(g y)) y; JAX transposes y t - y sum(y t)."""
        product = g * y
        total = product.sum(axes)
        return (g - total) * y, product - total * y

    return ways


def _of_logarithm(x: Number, y: Number, axes: tuple[int, ...], g: Number) -> Ways:
    """g - exp(y) sum(g) of the logarithm y of softmax, or with exp(x - max) / sum for exp(y)."""
    raised, total = _raised(x, axes)
    sum_ = g.sum(axes)
    return g - y.f("exp") * sum_, g - raised * (sum_ / total), g - (raised / total) * sum_


def _log_softmax(x: Sequence[Number], y: Number, position: int, call: Call) -> Adjoint:
    axes = normalized(call.attrs["axis"], call.result.rank)
    return lambda g: _of_logarithm(x[0], y, axes, g)


# ---- reductions ---------------------------------------------------------------------------------------


def _kept(call: Call) -> Callable[[Number], Number]:
    """A result with the axes that a reduction leaves out."""
    axes = axes_in(call)
    shape = tuple(1 if i in axes else size for i, size in enumerate(call.operands[0].shape))
    return lambda value: value.map(lambda a: a.reshape(shape))


def _logsumexp(x: Sequence[Number], y: Number, position: int, call: Call) -> Adjoint:
    kept = _kept(call)
    raised, total = _raised(x[0], axes_in(call))
    return lambda g: ((x[0] - kept(y)).f("exp") * kept(g), raised * (kept(g) / total))


def _l2_norm(x: Sequence[Number], y: Number, position: int, call: Call) -> Adjoint:
    """x (g / y), or x / (y / g), which has another quotient, or x twice the half of it."""
    kept = _kept(call)
    return lambda g: (x[0] * (kept(g) / kept(y)), (x[0] * (kept(g) / kept(y))) / 1.0)


def _squares(x: Number, call: Call, g: Number, apart: bool = False) -> Ways:
    """2 (x - mean) g / n; what the mean hands back, the sum of these, is zero but for their errors; TVM takes the mean
    from x afterwards."""
    axes, count = axes_in(call), float(prod(call.operands[0].shape[axis] for axis in axes_in(call)))
    found = ((x - x.mean(axes)) * (g / count)) * 2.0
    ways = [found, found - found.mean(axes)]
    return [*ways, (x * (2 / count) - x.sum(axes) * (2 / count / count)) * g] if apart else ways


def _variance(x: Sequence[Number], y: Number, position: int, call: Call) -> Adjoint:
    kept = _kept(call)
    return lambda g: _squares(x[0], call, kept(g), apart=True)


def _variance_corrected(x: Sequence[Number], y: Number, position: int, call: Call) -> Adjoint:
    """Scaled by a rounded factor; a quotient by n - correction loses less."""
    kept, scale = _kept(call), factor(call)
    return lambda g: _squares(x[0], call, kept(g) * scale, apart=True)


def _std_corrected(x: Sequence[Number], y: Number, position: int, call: Call) -> Adjoint:
    kept, scale = _kept(call), factor(call)
    return lambda g: _squares(x[0], call, ((kept(g) / kept(y)) * 0.5) * scale)


def _std(x: Sequence[Number], y: Number, position: int, call: Call) -> Adjoint:
    kept = _kept(call)
    return lambda g: _squares(x[0], call, (kept(g) / kept(y)) * 0.5)


# ---- losses -------------------------------------------------------------------------------------------


def _each(g: Number, call: Call, shape: tuple[int, ...]) -> Number:
    """The adjoint of each loss: of the mean, a quotient."""
    given = g / float(prod(shape)) if call.attrs["reduction"] == "mean" else g
    return given.map(lambda a: np.broadcast_to(a, shape))


Elements = Callable[[Sequence[Number], int, Call, Number], Ways]
"""Operands, position, call, adjoints of each loss -> those of the operand, but for the sign."""


def _loss(elements: Elements) -> Callable[..., Adjoint]:
    """Of a loss of elements."""

    def found(x: Sequence[Number], y: Number, position: int, call: Call) -> Adjoint:
        return lambda g: elements(x, position, call, _each(g, call, x[0].shape))

    return found


def _mse(x: Sequence[Number], position: int, call: Call, g: Number) -> Ways:
    return (((x[0] - x[1]) * g) * (2.0 if position == 0 else -2.0),)


def _l1(x: Sequence[Number], position: int, call: Call, g: Number) -> Ways:
    sign = np.sign(x[0].value.value - x[1].value.value) * (1 if position == 0 else -1)
    return (g * exactly(sign, g.value.dtype),)


def _quadratic_near_zero(limit: str, steep: bool) -> Elements:
    """d g of a difference below the limit, where it is steep, else d g / limit; beyond it its sign with limit g, or g.
    The limit is a power of two, or 0: that is `_l1`."""

    def elements(x: Sequence[Number], position: int, call: Call, g: Number) -> Ways:
        size = call.number(limit)
        if not size:
            return _l1(x, position, call, g)
        d = x[position] - x[1 - position]
        near = np.abs(d.value.value) < size
        sign = exactly(np.sign(d.value.value), g.value.dtype)
        ways = ((d * g) * (1 if steep else 1 / size), d * (g * (1 if steep else 1 / size)))
        return [chosen(near, way, sign * (g * (size if steep else 1))) for way in ways]

    return elements


def _hinge(x: Sequence[Number], position: int, call: Call, g: Number) -> Ways:
    counts = 1 - x[0].value.value * x[1].value.value > 0
    return (chosen(counts, -(x[1 - position] * g), exactly(np.zeros(g.shape), g.value.dtype)),)


def _kl_div(x: Sequence[Number], position: int, call: Call, g: Number) -> Ways:
    """By the target log t + t / t - x."""
    scores, target = x
    if position == 0:
        return (-(target * g),)
    logarithm = target.f("log")
    return ((logarithm + 1.0) - scores) * g, (logarithm * g + g) - scores * g, (logarithm * g - scores * g) + g


def _bce_with_logits(x: Sequence[Number], position: int, call: Call, g: Number) -> Ways:
    """sigmoid(x) - t, or the parts of max(x, 0) - x t + log(1 + exp(-|x|)), of which two have a kink at 0: from 0 to 1,
    and by 1/2 to either side. By the target -x, or the difference of the logarithms of both probabilities."""
    scores, target = x
    if position == 1:
        return -(scores * g), ((-scores).f("log_sigmoid") - scores.f("log_sigmoid")) * g
    s = scores.f("sigmoid").off_by((scores.value.value == 0) * 1.0)
    raised = (-abs(scores)).f("exp")
    part, above = raised / (1.0 + raised), scores.value.value > 0
    outside = target * g
    composed = chosen(above, (g - outside) - part * g, part * g - outside)
    other = chosen(above, (g - part * g) - outside, part * g - outside)
    return (s - target) * g, s * g - outside, composed, other


def _at_classes(x: Number, classes: Number) -> Array:
    """Where the class of each row is."""
    places = np.zeros(x.shape, bool)
    np.put_along_axis(places, np.expand_dims(classes.value.value.astype(int), 1), True, 1)
    return places


def _to_classes(x: Sequence[Number], call: Call, g: Number) -> Number:
    shape = (x[0].shape[0], *x[0].shape[2:])
    each = _each(g, call, shape).map(lambda a: np.expand_dims(a, 1))
    return -(each * exactly(_at_classes(x[0], x[1]) * 1.0, g.value.dtype))


def _nll(x: Sequence[Number], y: Number, position: int, call: Call) -> Adjoint:
    return lambda g: (_to_classes(x, call, g),)


def _cross_entropy(x: Sequence[Number], y: Number, position: int, call: Call) -> Adjoint:
    """log_softmax's formulas, and (softmax - 1 at the class) g."""
    raised, total = _raised(x[0], (1,))
    scores = (x[0] - x[0].max((1,))) - total.f("log")
    there = exactly(_at_classes(x[0], x[1]) * 1.0, x[0].value.dtype)

    def ways(g: Number) -> Ways:
        given = _to_classes(x, call, g)
        each = -given.sum((1,))  # one of them is not zero
        return *_of_logarithm(x[0], scores, (1,), given), (raised / total - there) * each

    return ways


# ---- gates --------------------------------------------------------------------------------------------


def _glu(x: Sequence[Number], y: Number, position: int, call: Call) -> Adjoint:
    axis = normalized(call.attrs["axis"], call.operands[0].rank)[0]
    first, second = (x[0].map(lambda a, i=i: np.split(a, 2, axis)[i]) for i in (0, 1))
    s = second.f("sigmoid")
    slope = sigmoid_slope(s)

    def joined(one: Number, other: Number) -> Number:
        parts = [one.value, other.value]
        value, error = (np.concatenate([getattr(p, name) for p in parts], axis) for name in ("value", "error"))
        return Number(type(parts[0])(value, error, parts[0].dtype))

    return lambda g: (joined(g * s, (g * first) * slope), joined(g * s, g * (first * slope)))


ADJOINTS: dict[str, Callable[[Sequence[Number], Number, int, Call], Adjoint | None]] = {
    **NORMALISED,
    "softmax": _softmax,
    "log_softmax": _log_softmax,
    "logsumexp": _logsumexp,
    "l2_norm": _l2_norm,
    "euclidean_norm": _l2_norm,
    "variance": _variance,
    "std": _std,
    "variance_corrected": _variance_corrected,
    "std_corrected": _std_corrected,
    "mse_loss": _loss(_mse),
    "l1_loss": _loss(_l1),
    "huber_loss": _loss(_quadratic_near_zero("delta", True)),
    "smooth_l1_loss": _loss(_quadratic_near_zero("beta", False)),
    "hinge_loss": _loss(_hinge),
    "kl_div": _loss(_kl_div),
    "bce_with_logits": _loss(_bce_with_logits),
    "nll_loss": _nll,
    "cross_entropy": _cross_entropy,
    "glu": _glu,
}
"""By operator; None where the formula by an operand is not known."""
