"""Which operators are differentiated twice, and what correct formulas of second derivatives lose, in units of the unit
roundoff: terms that cancel inside them, as `backward` has them for first derivatives."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from generators.bounds.bounded import Bounded
from generators.ops.reduce.records import axes_in
from generators.ops.spec import Call
from oracles.decompositions.derivatives import SECOND_ORDER_RULES
from oracles.derivatives.rounding import matrix_first_derivatives, matrix_second_derivatives
from oracles.derivatives.rounding.first_derivatives import SUMS_OF_ONE
from oracles.derivatives.rounding.linear import words

Array = np.ndarray


_ONE = words("""tanh sigmoid expm1 erf erfc logaddexp logaddexp2 softplus log_sigmoid elu celu selu logit tanhshrink""")
_GATED = words("silu gelu gelu_tanh mish")
_DIVIDING = words("atan2 cbrt div hypot log log10 log2 pow prod reciprocal rsqrt sinc sqrt xlogy")
_OVER_AN_AXIS = words("softmax log_softmax")
_STANDARDISED = words("layer_norm rms_norm")
_FUNCTIONS = words(
    """acos acosh asin asinh atan atanh copysign cos cosh exp exp2 hard_swish huber_loss log1p relu_squared sin sinh
    smooth_l1_loss softsign square tan"""
)
_PRODUCTS = words("grid_sample lerp mse_loss prelu prelu_broadcast squared_difference sum_of_squares")
FACTORS = dict.fromkeys(
    words(
        """conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d cross depthwise_conv2d dot einsum
        addmm baddbmm kron linear matmul mul outer tensordot vecdot matrix_vector vector_matrix"""
    ),
    (0, 1),
) | {"addcmul": (1, 2), "embedding_bag_weighted": (0, 2)}
"""Products: linear in each of two operands, so that the slope by one is that at the tangent of the other. Further ones
are added."""
ELEMENTWISE = frozenset((*_ONE, *_GATED, *_DIVIDING, *_FUNCTIONS)) - {"prod", "huber_loss", "smooth_l1_loss"}
PERIODIC = words("cos sin sinc tan")
"""Functions of angles: steps of whole periods show nothing, or anything."""
LINEAR = words(
    """abs adaptive_avg_pool2d adaptive_max_pool2d add affine_grid avg_pool1d avg_pool2d avg_pool3d block_diag
    broadcast_to cast channel_shuffle clip concat cummax cummin cumsum cumulative_sum deg2rad depth_to_space
    diag_embed diagonal diff einsum_single embedding embedding_bag embedding_bag_offsets embedding_padded fft fft2
    flatten flatten_2d flip fmax fmin fmod fold frac frexp_mantissa gather gather_nd global_avg_pool hard_sigmoid
    hardshrink hardtanh identity index_add index_put irfft kth_value l1_loss l1_norm ldexp leaky_relu linf_norm
    masked_fill max max_pool1d max_pool2d max_pool3d max_unpool2d maximum mean mean_abs meshgrid min minimum moveaxis
    nan_to_num nanmean nanmedian nansum neg pad pad_crop pad_edge pad_reflect pad_wrap pixel_shuffle pixel_unshuffle
    positive ptp quantile rad2deg relu relu6 remainder repeat reshape resize_antialias resize_area resize_cubic
    resize_linear resize_nearest rfft roll roll_axes rot90 scatter scatter_add scatter_max scatter_min scatter_nd
    segment_sum slice slice_backwards slice_update softshrink sort space_to_depth split squeeze stack sub sum swapaxes
    take threshold tile topk trace transpose trapezoid tril triu unflatten unfold unsqueeze unstack upsample_nearest
    where ceil floor floor_divide heaviside round sign trunc take_from_end take_flat_from_end gather_from_end
    gather_nd_from_end scatter_from_end scatter_nd_from_end pick take_crossed add_multiple sub_multiple rsub_multiple
    clip_one_side slice_update_front dropout_off clip_crossed l0_norm masked_infinity kept_cumsum kept_roll kept_flip
    sum_nowhere mean_nowhere max_nowhere min_nowhere prod_nowhere"""
)
"""Linear, or made of linear or constant pieces: no second derivative but at the ends of these, where there is no first
one."""
_WHOLE = frozenset(
    (
        *(*_ONE, *_GATED, *_DIVIDING, *_OVER_AN_AXIS, *_STANDARDISED, *_FUNCTIONS, *_PRODUCTS, *FACTORS, *LINEAR),
        *("logsumexp", *matrix_first_derivatives.OPERATORS),
    )
)
"""Smooth functions and products, matrices, and what is linear that stands between them."""
OPERATORS = _WHOLE | SECOND_ORDER_RULES.keys()
"""Those and what is made of them. What is not here has a second derivative that frameworks compose of steps whose
losses nobody has written down."""

_NUDGE = 2.0**-10


def noise(
    op: str,
    operands: Sequence[Bounded],
    position: int,
    result: Bounded,
    call: Call,
    g: Array,
    tangents: Sequence[Array],
) -> Array:
    """What each element of `sum_i g_i d/de J_ij(x + e t)` may be off by, in units of u, flat like the operand.

    g, tangents: magnitudes of the result's adjoint and of the operands' tangents, shaped like these"""
    x = operands[position].value
    found = np.zeros(x.shape)
    with np.errstate(all="ignore"):
        if op in (*_ONE, *_GATED):
            wide = reduced(g * _size(op, operands) * sum(tangents), x.shape)
            found = wide * np.ones(x.shape)
        elif op == "prod":
            found = _product(operands[0].value, result, call, g, tangents[0])
        elif op in _DIVIDING:
            relative = sum(np.where(t > 0, t / np.abs(o.value), 0.0) for o, t in zip(operands, tangents, strict=True))
            steep = 1 + np.abs(operands[1].value) if op == "pow" else 1.0
            found = reduced(g * relative * steep * _magnitude(op, operands, position, result), x.shape)
            if op == "sinc":  # a formula of its own at 0, whose series begins with 1 - (pi x)^2 / 6
                found = np.where(x == 0, g * sum(tangents) * np.pi**2, found)
        elif op in (*_OVER_AN_AXIS, "logsumexp"):
            found = _over_an_axis(op, operands[0].value, call, g, tangents[0])
        elif op in _STANDARDISED and position < 2:
            found = _through_deviation(op, operands, position, call, g, tangents)
        elif op in matrix_first_derivatives.OPERATORS:
            found = matrix_second_derivatives.noise(op, operands, position, result, call, g, tangents)
        elif op == "copysign" and position == 0:  # y / x, as a constant of which PyTorch does not know
            found = reduced(g * tangents[0] / np.abs(x), x.shape)
        elif op == "grid_sample":
            found = _between_pixels(operands, position, g, tangents)
    return SUMS_OF_ONE * np.nan_to_num(found, nan=np.inf, posinf=np.inf).ravel()


def reduced(values: Array, shape: tuple[int, ...]) -> Array:
    """Summed over the axes along which an operand of this shape was broadcast."""
    extra = values.ndim - len(shape)
    values = values.sum(axis=tuple(range(extra)))
    return values.sum(axis=tuple(i for i, n in enumerate(shape) if n == 1 and values.shape[i] != 1), keepdims=True)


def _size(op: str, operands: Sequence[Bounded]) -> Array:
    """The terms of the second derivative, such as y (1 - y) (1 - 2 y) of sigmoid or sech(u)^2 (u'' - 2 tanh(u) u'^2) x
    of gelu_tanh with u' of about 1 + x^2 / 8, where sech(u)^2 = 1 - tanh(u)^2 is off by u."""
    x = np.abs(operands[0].value)
    if op == "logit":  # (2 x - 1) / (x (1 - x))^2
        return 1 / np.square(x * (1 - x))
    if op == "gelu":
        return 1 + np.square(x)
    if op == "gelu_tanh":
        return (1 + x) * np.square(1 + np.square(x) / 8)
    return 1 + x if op in _GATED else np.ones(x.shape)


def _magnitude(op: str, operands: Sequence[Bounded], position: int, result: Bounded) -> Array:
    """How steep an operator is by one operand, the terms of its slope taken without their signs. Each derivative of
    these operators divides by an operand, so that terms of the second one are this times t / x."""
    a, y = [np.abs(o.value) for o in operands], np.abs(result.value)
    if op in ("log", "log2", "log10"):
        return 2 / a[0]
    if op == "sinc":  # (cos(pi x) - sinc(x)) / x
        return (1 + y) / a[0] + np.pi**2 * a[0]
    if op == "atan2":  # 1 / r^2 times either operand
        return a[1 - position] / (np.square(a[0]) + np.square(a[1]))
    if op == "hypot":
        return a[position] / y + a[1 - position] ** 2 / (a[position] * y)
    if op == "xlogy":
        return (np.abs(np.log(a[1])) + 1) if position == 0 else a[0] / a[1]
    if op == "pow" and position == 1:
        return y * (1 + np.abs(np.log(a[0])))
    return (1 + (a[1] if op == "pow" else 0.0)) * y / a[position]


def _product(x: Array, result: Bounded, call: Call, g: Array, t: Array) -> Array:
    """y / x_i (sum_j t_j / x_j), with t_i / x_i in and out again."""
    axes = axes_in(call)
    given = g * np.abs(result.value)
    if not call.attrs["keepdims"]:
        given = np.expand_dims(given, axes)
    relative = np.where(t > 0, t / np.abs(x), 0.0)
    return given / np.abs(x) * (np.sum(relative, axes, keepdims=True) + relative)


def _between_pixels(operands: Sequence[Bounded], position: int, g: Array, tangents: Sequence[Array]) -> Array:
    """A derivative by a place is half a side times a difference of pixels, one by both places half of both sides times
    a difference of differences; all pixels as great as the greatest."""
    x, grid = operands[0].value, operands[1].value
    sides = np.array([x.shape[3], x.shape[2]]) / 2
    along = np.sum(tangents[1] * sides, axis=-1)
    if position == 0:
        return np.sum(g * along[:, None], (2, 3), keepdims=True) * np.ones(x.shape)
    most, moved = (4 * np.max(a, (2, 3), keepdims=True) for a in (np.abs(x), tangents[0]))
    each = np.sum(g * (most * along[:, None] + moved), axis=1)
    return each[..., None] * sides * np.ones(grid.shape)


def _over_an_axis(op: str, x: Array, call: Call, g: Array, t: Array) -> Array:
    """p' = p (t - sum(p t)), p the softmax, in: p (g - sum(g p)) of softmax, g - p sum(g) of log_softmax, g p of
    logsumexp. The exponential of x - max has a relative error of as many u as this is great."""
    if op == "logsumexp":
        axes = call.attrs["axes"]
        axis: int | tuple[int, ...] = tuple(axes) if isinstance(axes, tuple) else int(axes)  # type: ignore[arg-type]
        if not call.attrs.get("keepdims"):
            g = np.expand_dims(g, axis) if x.ndim else g
    else:
        axis = int(call.attrs["axis"])  # type: ignore[arg-type]
    top = np.max(x, axis, keepdims=True)
    p = np.exp(x - top)
    p = p / np.sum(p, axis, keepdims=True)
    worn = p * (1 + np.abs(x - top) + (np.abs(top) if op != "softmax" else 0.0))
    along = worn * (t + np.sum(p * t, axis, keepdims=True)) + p * np.sum(worn * t, axis, keepdims=True)
    if op == "softmax":
        inner = g + np.sum(g * p, axis, keepdims=True)
        return along * inner + p * np.sum(g * along, axis, keepdims=True)
    return along * np.sum(g, axis, keepdims=True) if op == "log_softmax" else along * g


def _through_deviation(
    op: str, operands: Sequence[Bounded], position: int, call: Call, g: Array, tangents: Sequence[Array]
) -> Array:
    """Of b = r (h - mean(h) - z mean(h z)), h = scale g, and of sum(g z) by the scale, the derivative along the
    tangents: z' = r (t - mean(t) - z mean(t z)), r' = -r^2 mean(t z), h' = scale' g. All terms taken without their
    signs; z is off by its own cancellation, (|x| + |mean|) r, r by that of the variance."""
    x, scale = operands[0].value, np.abs(operands[1].value)
    axes = tuple(range(x.ndim - scale.ndim, x.ndim))
    mean = lambda v: np.mean(v, axes, keepdims=True)  # noqa: E731
    center = mean(x) if op == "layer_norm" else np.zeros(())
    r = 1 / np.sqrt(mean((x - center) ** 2) + call.number("epsilon"))
    worn = (np.abs(x) + np.abs(center)) * r
    t, h, turned = tangents[0], scale * g, tangents[1] * g

    def terms(z: Array) -> Array:
        moved = r * (t + mean(t) + z * mean(t * z))
        if position == 1:
            return g * moved
        back = lambda v: r * (v + mean(v) + z * mean(v * z))  # noqa: E731
        bent = r * (moved * mean(h * z) + z * mean(h * moved))
        return r * mean(t * z) * back(h) + back(turned) + bent

    z = np.abs(x - center) * r
    size = terms(z)
    found = size * (1 + mean(z * worn)) + (terms(z + _NUDGE * worn) - size) / _NUDGE
    return found if position == 0 else np.sum(found, tuple(range(x.ndim - scale.ndim)))
