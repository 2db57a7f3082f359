"""The formulas that frameworks write down for gradients of normalisations, with running error bounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import numpy as np

from generators.bounds.sums import variance_of
from generators.ops.spec import Call
from oracles.derivatives.rounding.running import Number

Array = np.ndarray
Adjoint = Callable[[Number], Sequence[Number]]
"""The adjoint of the result -> that of the operand, in each of the ways in which it is computed."""


def _onto(found: Number, shape: tuple[int, ...]) -> Number:
    """Summed over what a parameter was broadcast along; shape: with axes of size 1 there."""
    axes = tuple(i for i, size in enumerate(shape) if size == 1 and found.shape[i] != 1)
    return found.sum(axes) if axes else found


def _inverse(variance: Number, call: Call) -> Number:
    """1 / sqrt(variance + epsilon), a quotient of a root; rsqrt needs less."""
    return 1.0 / (variance + call.number("epsilon")).f("sqrt")


def _of_groups(x: Sequence[Number], position: int, call: Call, per_channel: bool) -> Adjoint:
    """Layer, group and instance normalisation: what is standardised together stands in the last axis, a parameter
    beside it."""
    whole, rank = x[0].shape, len(x[0].shape)
    groups = int(call.attrs.get("groups", whole[1] if per_channel else 1))  # type: ignore[arg-type]
    wide = (1, -1, *[1] * (rank - 2)) if per_channel else (1,) * (rank - len(x[1].shape)) + x[1].shape
    scale = x[1].map(lambda a: a.reshape(wide))
    size = prod(whole[1:]) // max(groups, 1) if per_channel else prod(x[1].shape)
    split = lambda value: value.map(lambda a: np.broadcast_to(a, whole).reshape(-1, size))  # noqa: E731
    joined = lambda value: value.map(lambda a: a.reshape(whole))  # noqa: E731
    v, axes = split(x[0]), (1,)
    mean = v.mean(axes)
    d, r = v - mean, _inverse(Number(variance_of(v.value, axes, True)), call)

    def by_operand(g: Number) -> Sequence[Number]:
        h = split(g * scale)
        cube = (r * r) * r
        # the chain rule: the adjoint of r, of the variance, of the deviations, of the mean
        spread = ((h * d).sum(axes) * cube) / float(size)
        by_deviation = h * r - d * spread
        # TensorFlow: x r + (-mean r). PyTorch: a h + b x + c, with a = r
        both, one = (h * v).sum(axes), h.sum(axes)
        outer = ((both - one * mean) * cube) / float(size)
        moved = (h * r - v * outer) + (outer * mean - (one * r) / float(size))
        apart = (h * r - d * outer) - (one * r) / float(size)
        return [joined(way) for way in (by_deviation - by_deviation.mean(axes), moved, apart)]

    def by_scale(g: Number) -> Sequence[Number]:
        by_row = split(g)
        ways = [joined(way) for way in ((by_row * d) * r, by_row * (d * r), by_row * (v * r - mean * r))]
        return [_onto(way, scale.shape) for way in ways]

    return {0: by_operand, 1: by_scale, 2: lambda g: [_onto(g, scale.shape)]}[position]


def _root_mean_square(x: Sequence[Number], y: Number, position: int, call: Call) -> Adjoint:
    v, scale = x
    axes = tuple(range(len(v.shape) - len(scale.shape), len(v.shape)))
    wide = scale.map(lambda a: a.reshape((1,) * (len(v.shape) - a.ndim) + a.shape))
    r = _inverse((v * v).mean(axes), call)

    def by_operand(g: Number) -> Sequence[Number]:
        h = g * wide
        outer = ((h * v).sum(axes) * ((r * r) * r)) / float(prod(scale.shape))
        z = v * r
        return h * r - v * outer, (h - z * (h * z).mean(axes)) * r

    return by_operand if position == 0 else lambda g: [_onto((g * v) * r, wide.shape), _onto(g * (v * r), wide.shape)]


def _given_statistics(x: Sequence[Number], y: Number, position: int, call: Call) -> Adjoint:
    """(x - mean) r scale + bias, or x (r scale) + (bias - mean (r scale))."""
    v, wide = x[0], (1, -1, *[1] * (len(x[0].shape) - 2))
    scale, _, mean, variance = (one.map(lambda a: a.reshape(wide)) for one in x[1:])
    r, d = _inverse(variance, call), v - mean
    onto = lambda found: _onto(found, scale.shape)  # noqa: E731

    def by_inverse(g: Number) -> Sequence[Number]:
        """What the chain rule has for r scale."""
        return onto(g * d), onto(g * v) - onto(g) * mean

    ways: dict[int, Adjoint] = {
        0: lambda g: ((g * scale) * r, g * (scale * r)),
        1: lambda g: (onto((g * d) * r), onto(g * (d * r)), *(one * r for one in by_inverse(g))),
        2: lambda g: (onto(g),),
        3: lambda g: (-onto((g * scale) * r), -(onto(g) * (scale * r))),
        4: lambda g: [((one * scale) * ((r * r) * r)) * -0.5 for one in (*by_inverse(g), onto(g * d))],
    }
    return ways[position]


NORMALISED: dict[str, Callable[[Sequence[Number], Number, int, Call], Adjoint | None]] = {
    "layer_norm": lambda x, y, position, call: _of_groups(x, position, call, False),
    **dict.fromkeys(("instance_norm", "group_norm"), lambda x, y, position, call: _of_groups(x, position, call, True)),
    "rms_norm": _root_mean_square,
    "batch_norm": _given_statistics,
}
"""By operator."""
