"""What correct formulas of derivatives lose: where they subtract numbers that nearly cancel, the error is of the size
of these numbers, not of the slope. In units of u, by operator; docs/gradients.md derives each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np
from scipy import special

from generators.bounds.bounded import PRECISION, Bounded
from generators.ops import OPS
from generators.ops.spec import Call
from oracles.derivatives.complex_pairs import exact, paired, sizes
from oracles.derivatives.rounding import matrix_first_derivatives

Array = np.ndarray

SUMS_OF_ONE = 16
"""Formulas such as 1 - y * y (tanh), y * (1 - y) (sigmoid), y + 1 (expm1, elu), Phi + x phi (gelu) add terms of at most
about one, each with the few ulps of its function."""
_GATED = ("silu", "gelu", "gelu_tanh", "mish", "hard_swish", "swish")
_UNIT = ("tanh", "expm1", "logaddexp", "sigmoid", "erfc")


_UNDERIVED = """
    fmod_scalar remainder_scalar scalar_remainder reduce_precision floor_divide_scalar round_decimals rint
    condition_number eigh_product householder_product ldl_solve least_squares lu_product lu_solve
    lu_unpacked_product matrix_exp ormqr_product qr_product svd_product rgb_to_hsv hsv_to_rgb adjust_saturation
    cumsum_to cumprod_to prod_to l2_norm_to kept_cumprod ldexp_mixed addmm_bias baddbmm_bias
    complex_sin complex_cos complex_tan complex_sinh complex_cosh complex_tanh complex_rsqrt complex_pow
    complex_sigmoid complex_log1p complex_expm1 complex_asin complex_acos complex_atan complex_asinh complex_acosh
    complex_atanh
    nanprod nancumprod nanquantile tridiagonal_eigenvalues ctc_loss eigenvalue_sum atan2_mixed
"""
UNDERIVED = frozenset(_UNDERIVED.split())
"""Operators of which nobody has written down what the formulas of their derivatives lose (matrices by their factors;
colours, whose quotients are of differences; scans in another dtype, whose adjoints PyTorch casts to that of the operand
before it adds them; products of rows that a mask chooses; atan2 of two dtypes, each of which PyTorch squares in
its own; remainders by a number, of which steps meet many), or what frameworks take for the slope beside a step."""

_FINITE = """
    xlog1py xdivy xlogy_scalar scalar_xlogy xlog1py_scalar scalar_xlog1py
    bessel_j bessel_y modified_bessel_i bessel_k spherical_bessel_j0 airy_ai igamma igammac betainc
    gamma_function beta_function rising_factorial relative_entropy kullback_leibler
    polygamma zeta mvlgamma ndtr log_ndtr ndtri erfcx dawsn expint fresnel spence chebyshev
    orthogonal_polynomial pow_scalar scalar_pow zeta_scalar scalar_zeta chebyshev_scalar
    orthogonal_polynomial_scalar float_power angle expn trigonometric_integral log_density placed_log_density
    polynomial placed_density density interpolate placed_distribution_function distribution_function
    placed_distribution_quantile distribution_quantile cdist_of_order
"""
FINITE = frozenset(_FINITE.split())
"""Special functions, of which nobody has written down what the formulas of their derivatives lose, either, since their
slopes are differences of neighbours, quotients and products with powers: asked is whether the derivative is a number
where the function has one."""


_COUNTS = ("bernoulli", "geometric", "poisson")
"""Distributions of whole numbers, between which there is no slope."""


def any_number(op: str, operands: Sequence[Bounded], position: int, result: Bounded, call: Call) -> float:
    """What a share of a derivative may be off by beside its bound: of `FINITE` anything as far as the power 3/4 of the
    greatest number, where operands are exact and have as many bits as float32; else it is left open, and so are slopes
    along whole numbers. Slopes that are known are below the root of it (`_out_of_range`)."""
    if op not in FINITE:
        return 0.0
    narrow = min(PRECISION[x.dtype].largest for x in (result, *operands) if x.floating)
    coarse = max(PRECISION[x.dtype].unit for x in (result, *operands) if x.floating) > PRECISION["float32"].unit
    moved = any((x.error > 0).any() for x in operands if x.floating)
    counted = position == 0 and call.attrs.get("kind") in _COUNTS
    return float(np.inf if coarse or moved or counted else narrow**0.75)


BUFFERS = {("batch_norm", 3), ("batch_norm", 4)}
"""(operator, position) of operands that are statistics, which frameworks do not train: a leaf that counts only as such
is not asked for."""

_BREAKS: dict[str, tuple[str, ...]] = {
    "clip": ("min", "max"),
    "hardtanh": ("min", "max"),
    "hardshrink": ("lambd",),
    "softshrink": ("lambd",),
    "threshold": ("threshold",),
    "thresholded_relu": ("alpha",),
}

_BETWEEN = ("clip", "hardtanh")


def at_a_break(op: str, operands: Sequence[Bounded], position: int, call: Call) -> Array:
    """Elements of an operand at which an operator is defined by pieces that an attribute, or another operand, bounds.
    Frameworks differentiate one of the pieces, even where both happen to continue each other (hardshrink with lambd =
    0; a number between two bounds that are equal to it, where TensorFlow's chain rule takes 1 and 1, and JAX' gives a
    quarter to the lower bound)."""
    x = operands[position]
    found = np.zeros(x.value.size, bool)
    if op == "clip_tensors" and position < 2:
        numbers = np.arange(x.value.size).reshape(x.value.shape)
        given, low, high, number = np.broadcast_arrays(*(operand.value for operand in operands), numbers)
        found[number[(given == low) & (low == high)]] = True
        return found
    if op == "softshrink" and call.number("lambd") > 0:
        return found
    if (
        op in _BETWEEN
        and None not in (call.attrs["min"], call.attrs["max"])
        and call.number("min") < call.number("max")
    ):
        return found  # between the slopes of both sides, which differ
    for name in _BREAKS.get(op, ()):
        if call.attrs.get(name) is not None:
            found |= np.abs(x.value.ravel()) == abs(call.number(name))
    if op == "softplus_scaled":
        found |= x.value.ravel() * call.number("beta") == call.number("threshold")
    if op == "frac":  # integers, among them all numbers so large that no step in float64 shows a slope
        found |= x.value.ravel() == np.rint(x.value.ravel())
    return found


def singular(op: str, operands: Sequence[Bounded], position: int, result: Bounded) -> Array:
    """Results at which the chain rule meets infinity times 0, which some frameworks make NaN: the square root of 0 in
    the deviation of one element, y x^(y - 1) at 0^0, x / y at 0 log 0, and x^y log x of a negative base, which is 0
    times NaN where the exponent is so large that differences meet even numbers only; sinc where the square that
    pi x cos(pi x) - sin(pi x) is divided by is lost; gelu_tanh where the cube overflows, beside a tanh without a
    slope."""
    zero = np.zeros(result.value.shape, bool)
    if op in ("std", "std_corrected"):
        zero = result.value == 0
    elif op == "pow":
        base, exponent = (operand.value for operand in operands)
        zero = zero | ((base == 0) & (exponent == 0)) | ((base < 0) & (position == 1))
    elif op == "xlogy":
        zero = zero | ((operands[0].value == 0) & (operands[1].value == 0))
    elif op == "sinc":
        square = (np.pi * operands[0].value) ** 2
        zero = (operands[0].value != 0) & (square < PRECISION[operands[0].dtype].tiny)
    elif op == "gelu_tanh":
        zero = np.abs(operands[0].value) ** 3 > PRECISION[operands[0].dtype].largest
    return zero.ravel()


_FROM_RESULT = ("acosh", "asinh")


def overflowing_gates(op: str, x: Bounded, call: Call, adjoint: Array) -> Array:
    """Elements at which the chain rule of x gate(x) may meet infinity times 0: it multiplies the adjoint by x, which
    may overflow, and then by the gate's slope, which is 0 there. Inside the gate x may be multiplied by alpha."""
    if op not in _GATED:
        return np.zeros(x.value.size, bool)
    inner = abs(call.number("alpha")) if op == "swish" else 1.0
    return np.abs(x.value.ravel()) * np.maximum(np.abs(adjoint), inner) > PRECISION[x.dtype].largest


def formula_error(op: str, operands: Sequence[Bounded], result: Bounded, call: Call, most: float) -> Array:
    """The relative error of an operator alone, its operands taken as exact, at most `most`: what its derivative's
    functions may have, too. Of derivatives that are computed as 1 / sinh(y) or 1 / cosh(y) it is the absolute one,
    since d log sinh(y) = dy coth(y), and y is greater than 1 where that matters."""
    own, size = own_error(op, operands, call).ravel(), sizes(result).ravel()
    relative = np.where(size > 0, own / size, 0.0)
    relative = np.minimum(np.nan_to_num(relative, nan=most, posinf=most), most)
    return relative + (np.nan_to_num(own, posinf=0.0) if op in _FROM_RESULT else 0.0)


def own_error(op: str, operands: Sequence[Bounded], call: Call) -> Array:
    """The bound on the error of the operator alone, its operands taken as exact."""
    given = [replace(exact(o, o.value), zero_sign=o.zero_sign) for o in operands]
    return paired(OPS[op].reference(given, call)).error


def slope_noise(op: str, operands: Sequence[Bounded], result: Bounded, call: Call, rows: Array, slope: Array) -> Array:
    """What each slope, of that size in that row, may be off by, in units of u."""
    noise = np.zeros(result.value.size)
    if op in _UNIT or OPS[op].family == "activation":
        noise += SUMS_OF_ONE
    if op in _GATED:  # x times the derivative of a gate, which has an error of u, too
        noise += SUMS_OF_ONE * np.nan_to_num(np.abs(operands[0].value), posinf=0.0).ravel()
    if op == "tapered":  # the slope is the window, of which the record says what it may be off by
        noise += 64
    if op == "sinc":  # (cos(pi x) - sinc(x)) / x
        x = np.abs(operands[0].value.ravel())
        noise += np.where(x > 0, SUMS_OF_ONE / np.maximum(x, PRECISION[operands[0].dtype].tiny), 0.0)
        # pi and the angle are rounded: 2 pi |x| u of the cosine, at most 2; shifts by whole periods hide it
        noise += np.where(x > 0, np.minimum(2 * np.pi, 2 / (PRECISION[operands[0].dtype].unit * x)), 0.0)
    if op == "bessel_i":  # I0 - I1 / x and the like: terms of at most 5/2 I0, of functions that have 16 ulp
        scale = special.i0e if call.attrs["scaled"] else special.i0
        noise += 3 * SUMS_OF_ONE * np.nan_to_num(scale(operands[0].value), posinf=0.0).ravel()
    if op in ("logsumexp", "logcumsumexp"):
        # exp(x - y): what y, which has a few ulps, and the difference are off by is a relative error
        far = np.nan_to_num(np.abs(result.value), posinf=0.0).ravel()[rows] - np.log(np.minimum(slope, 1.0))
        return np.where(slope > 0, 8 * (1 + far) * slope, 0.0) + noise[rows]
    return noise[rows]


def adjoint_noise(
    op: str, operands: Sequence[Bounded], position: int, result: Bounded, call: Call, adjoint: Array
) -> Array:
    """What each element of an operand's adjoint may be off by, in units of u, from the magnitudes of the result's."""
    x = operands[position].value
    g = adjoint.reshape(result.value.shape)
    found = np.zeros(x.shape)
    if op in ("softmax", "log_softmax"):
        axis = int(call.attrs["axis"])  # type: ignore[arg-type]
        y = np.abs(result.value)
        if op == "softmax":  # y (g - sum(g y))
            found = y * (g + np.sum(g * y, axis, keepdims=True))
        else:  # g - exp(y) sum(g)
            found = g + np.exp(result.value) * np.sum(g, axis, keepdims=True) * (1 + y)
    elif op in _NORMS and position < 2:
        found = _normalization(op, operands, call, g, position)
    elif op in matrix_first_derivatives.OPERATORS:
        found = matrix_first_derivatives.backwards(op, operands, position, result, call, g)
    elif op == "grid_sample" and position == 1:
        found = np.moveaxis(np.einsum("nk,ncij->nkij", *_between_pixels(operands, g)), 1, -1)
    elif op in ("scatter_max", "scatter_min") and position == 0:  # g - sum(g / n), where one of n numbers is greater
        found = g * (1 + operands[1].value.size / SUMS_OF_ONE)
    return SUMS_OF_ONE * np.nan_to_num(found, nan=np.inf, posinf=np.inf).ravel()


def _normalization(op: str, operands: Sequence[Bounded], call: Call, g: Array, position: int) -> Array:
    """What the adjoint of the standardised operand, or of the scale, loses: sum(g z) holds a z that is off by its own
    cancellation, |x| r."""
    x = operands[0].value
    if position == 0:
        return _through_standardised(op, operands, call, g * _scale(op, operands))
    lost = g * _cancelled(op, operands, call)
    axes = tuple(range(x.ndim - operands[1].value.ndim))
    if op in _PER_CHANNEL:
        axes = tuple(a for a in range(x.ndim) if a != 1)
    return np.sum(lost, axes)


def tangent_noise(
    op: str, operands: Sequence[Bounded], position: int, result: Bounded, call: Call, tangent: Array
) -> Array:
    """What each element of a result's tangent may be off by, in units of u, from the magnitudes of an operand's."""
    t = tangent.reshape(operands[position].value.shape)
    found = np.zeros(result.value.shape)
    if op in ("softmax", "log_softmax"):
        axis = int(call.attrs["axis"])  # type: ignore[arg-type]
        y = np.abs(result.value)
        if op == "softmax":  # y (t - sum(t y))
            found = y * (t + np.sum(t * y, axis, keepdims=True))
        else:  # t - sum(t exp(y)); y is subtracted from its maximum
            found = t + np.sum(t * np.exp(result.value) * (1 + y), axis, keepdims=True)
    elif op in _NORMS and position == 0:
        found = _through_standardised(op, operands, call, t) * _scale(op, operands)
    elif op in _NORMS and position == 1:
        found = _cancelled(op, operands, call) * _by_channel(op, operands, t)
    elif op in matrix_first_derivatives.OPERATORS:
        found = matrix_first_derivatives.forwards(op, operands, position, result, call, t)
    elif op == "grid_sample" and position == 1:
        halves, sizes = _between_pixels(operands, np.ones(result.value.shape))
        found = np.einsum("nk,nijk,ncij->ncij", halves, t, sizes)
    return SUMS_OF_ONE * np.nan_to_num(found, nan=np.inf, posinf=np.inf).ravel()


def _between_pixels(operands: Sequence[Bounded], times: Array) -> tuple[Array, Array]:
    """The derivative by a place is half the side times a difference of pixels: half the sides by sample, and the
    greatest pixel of each channel times something of the result's shape."""
    x = np.where(np.isfinite(operands[0].value), np.abs(operands[0].value), 0.0)
    halves = np.broadcast_to(np.array([x.shape[3], x.shape[2]]) / 2, (x.shape[0], 2))
    return halves, 2 * np.max(x, (2, 3), keepdims=True) * times


_PER_CHANNEL = ("instance_norm", "group_norm")
_NORMS = ("layer_norm", "rms_norm", *_PER_CHANNEL)


def _by_channel(op: str, operands: Sequence[Bounded], values: Array) -> Array:
    """Values of the scale's shape, so that they broadcast with the operand."""
    return values.reshape((-1,) + (1,) * (operands[0].value.ndim - 2)) if op in _PER_CHANNEL else values


def _scale(op: str, operands: Sequence[Bounded]) -> Array:
    return _by_channel(op, operands, np.abs(operands[1].value))


def _grouped(op: str, operands: Sequence[Bounded], call: Call) -> tuple[Array, Array | float, Array]:
    """The operand as (…, …, what is standardised together), its centre, the inverse deviation."""
    x = operands[0].value
    if op in _PER_CHANNEL:
        groups = x.shape[1] if op == "instance_norm" else int(call.attrs["groups"])  # type: ignore[arg-type]
        shape = (x.shape[0], groups, prod(x.shape[1:]) // max(groups, 1))
    else:
        tail = prod(operands[1].value.shape)
        shape = (x.size // max(tail, 1), 1, tail)
    v = x.reshape(shape)
    center = 0.0 if op == "rms_norm" else np.mean(v, 2, keepdims=True)
    return v, center, 1 / np.sqrt(np.mean((v - center) ** 2, 2, keepdims=True) + call.number("epsilon"))


def _cancelled(op: str, operands: Sequence[Bounded], call: Call) -> Array:
    """What the standardised operand is off by: (|x| + |mean|) r."""
    v, center, r = _grouped(op, operands, call)
    return ((np.abs(v) + np.abs(center)) * r).reshape(operands[0].value.shape)


def _through_standardised(op: str, operands: Sequence[Bounded], call: Call, h: Array) -> Array:
    """r (h - mean(h) - z mean(h z)), z the standardised operand, r the inverse deviation: each term is rounded before
    the difference, and mean(z h) holds a z that is off by its own cancellation, |x| r. The same backwards and forwards,
    since the matrix is symmetric."""
    v, center, r = _grouped(op, operands, call)
    h = np.broadcast_to(h, operands[0].value.shape).reshape(v.shape)
    z = np.abs(v - center) * r
    worn = 1 + (np.abs(v) + np.abs(center)) * r
    terms = h + np.mean(h, 2, keepdims=True) + z * np.mean(h * z, 2, keepdims=True)
    moved = worn * np.mean(h * (1 + z), 2, keepdims=True) + z * np.mean(h * worn, 2, keepdims=True)
    return (r * (terms + moved)).reshape(operands[0].value.shape)
