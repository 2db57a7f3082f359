"""What a known formula of a derivative may be off by, its operands taken as exact.

Three kinds of operators are known. Those that move, negate or choose elements have slopes of 1, -1 or 0, which no
formula rounds. Those that are linear in an operand have a slope that is another operand or a constant. Of elementwise
functions the formulas that frameworks write down are evaluated with running error bounds, and the greatest counts:
PyTorch's `derivatives.yaml`, TensorFlow's `math_grad.py` and `nn_grad.py`, JAX' `lax.py` and `nn/functions.py`, TVM's
`_op_gradient.py`, in the releases that docs/gradients.md names. TensorFlow's were compared line by line with its 2.21:
its functions of one kernel (SqrtGrad, TanhGrad, …) are those of Eigen, and gelu, silu, log2, hypot and logaddexp are
composed by its Python code. Those of functions that PyTorch's kernels compose were not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log, pi, sqrt

import numpy as np

from generators.bounds import bounded
from generators.bounds.bounded import PRECISION, U64, Bounded
from generators.graph import TensorType
from generators.ops import OPS
from generators.ops.spec import Call
from oracles.derivatives.complex_pairs import exact

Array = np.ndarray


def words(text: str) -> tuple[str, ...]:
    """Names of operators."""
    return tuple(text.split())


MOVING = frozenset(
    words(
        """abs adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d add add_n add_scalar approx_top_k
    approximate_topk batch_to_space block_diag broadcast_to cast channel_shuffle clip clip_max clip_min
    clip_tensors concat copysign_scalar cummax cummin cumsum cumulative_sum depth_to_space diag_embed diagonal
    diagonal_scatter diff dynamic_stitch dynamic_update_slice einsum_single embedding embedding_padded flatten
    flatten_2d flip fmax fmin fold frac gather gather_nd global_max_pool hardshrink hardtanh identity
    image_patches index_add index_fill index_put kth_value l1_norm linf_norm masked_fill masked_scatter
    matrix_diag matrix_diag_part matrix_set_diag max max_along max_pool1d max_pool1d_ceil max_pool1d_same
    max_pool2d max_pool2d_ceil max_pool2d_same max_pool3d max_pool3d_ceil max_pool_with_argmax max_unpool1d
    max_unpool2d max_unpool3d max_whole maximum median_along median_whole meshgrid min min_along min_pool2d
    min_whole minimum moveaxis nan_to_num nanmedian nanmedian_whole nansum neg nth_element pad pad_crop pad_edge
    pad_reflect pad_wrap pixel_shuffle pixel_unshuffle positive ptp put relu relu6 repeat reshape resize_nearest
    resize_nearest_line resize_nearest_scaled resize_nearest_volume reverse_sequence roll roll_axes rot90
    scalar_sub scalar_where scatter scatter_add scatter_nd scatter_rows scatter_value segment_max segment_min
    segment_sum select_scatter slice slice_backwards slice_update sliding_windows softshrink sort
    sorted_segment_max sorted_segment_min sorted_segment_sum space_to_batch space_to_depth split squeeze stack
    sub sub_scalar sum swapaxes take take_flat tensor_diag tensor_diag_part threshold tile topk trace transpose
    tril triu unflatten unfold unsqueeze unstack upsample_nearest volume_patches where where_scalar"""
    )
)
"""Each slope is 1, -1 or 0: what reaches an element is a sum of adjoints."""

SCALED = frozenset(
    words(
        "deg2rad div_scalar global_avg_pool hard_sigmoid hard_sigmoid_linear leaky_relu mean mean_abs mul_scalar "
        "rad2deg"
    )
)
"""Each slope is a constant: what is divided by a number, 2.5 ulp in OpenCL, or multiplied by one that is rounded."""
SCALING = 5

FACTORS = {
    **dict.fromkeys(words("batch_matmul cross dot kron linear matmul mul outer tensordot vecdot"), (0, 1)),
    **dict.fromkeys(words("conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d"), (0, 1)),
    **dict.fromkeys(words("conv1d_same conv2d_same depthwise_conv2d"), (0, 1)),
}
"""Positions at which the slope is an element of the other operand, as it is; direct algorithms, as for the values."""


@dataclass(frozen=True)
class Known:
    """error: of the slopes, by result, absolute; relative: to the slope, in units of roundoff, the product with the
    adjoint included; whole: is each slope 1, -1 or 0? size: what the formulas say in float64, without sign, where
    differences may see less (the slope of softsign at 1e14)"""

    error: Array
    relative: float
    whole: bool = False
    size: Array | None = None


def known(op: str, operands: Sequence[Bounded], position: int, result: Bounded, call: Call) -> Known | None:
    """None where no formula is known: `first_derivatives.py` says what is then allowed for."""
    x = operands[position]
    if x.complex or result.complex:
        return None
    nothing = np.zeros(result.value.size)
    if op in MOVING:
        return Known(nothing, float(PRECISION[x.dtype].unit > PRECISION[result.dtype].unit), whole=True)
    if op in SCALED:
        return Known(nothing, SCALING)
    if op in FACTORS:  # what is added to the product (a bias) is moved
        return Known(nothing, 1.0 if position in FACTORS[op] else 0.0, position not in FACTORS[op])
    if op not in FORMULAS:
        return None
    with np.errstate(all="ignore"):
        given = [Number(exact(o, o.value)) for o in operands]
        y = Number(OPS[op].reference([n.value for n in given], call))
        found = [formula.value for formula in FORMULAS[op](given, y, position)]
        shape = result.value.shape
        errors = [np.broadcast_to(slope.error, shape).ravel() for slope in found]
        sizes = [np.broadcast_to(np.abs(slope.value), shape).ravel() for slope in found]
    return Known(np.max(errors, axis=0), 1.0, size=np.median(sizes, axis=0))


NEAR = 2.0**-8
"""So near a whole number a slope that is one shows."""


def taken_as_whole(value: Array, error: Array, moved: Array) -> tuple[Array, Array, Array]:
    """Slopes that are 1, -1 or 0 and look it, exact: value, error and how far they move."""
    near = np.rint(value)
    sure = (np.abs(near) <= 1) & (np.abs(value - near) + error + moved < NEAR)
    return np.where(sure, near, value), np.where(sure, 0.0, error), np.where(sure, 0.0, moved)


class Number:
    """An array with a running error bound that formulas are written with."""

    def __init__(self, value: Bounded) -> None:
        self.value = value

    def _lifted(self, other: Number | float) -> Bounded:
        return other.value if isinstance(other, Number) else constant(other, self.value.dtype).value

    def __add__(self, other: Number | float) -> Number:
        return Number(bounded.add(self.value, self._lifted(other)))

    def __sub__(self, other: Number | float) -> Number:
        return Number(bounded.add(self.value, self._lifted(other), -1.0))

    def __mul__(self, other: Number | float) -> Number:
        if isinstance(other, float) and abs(other) in (0.5, 1.0, 2.0):  # no rounding
            return Number(self.value.map(lambda a: a * abs(other)))
        return Number(bounded.multiply(self.value, self._lifted(other)))

    def __truediv__(self, other: Number | float) -> Number:
        return Number(bounded.divide(self.value, self._lifted(other)))

    def __radd__(self, other: float) -> Number:
        return self + other

    def __rsub__(self, other: float) -> Number:
        return Number(bounded.add(self._lifted(other), self.value, -1.0))

    def __rmul__(self, other: float) -> Number:
        return self * other

    def __rtruediv__(self, other: float) -> Number:
        return Number(bounded.divide(self._lifted(other), self.value))

    def __neg__(self) -> Number:
        return Number(Bounded(-self.value.value, self.value.error, self.value.dtype))

    def __abs__(self) -> Number:
        return Number(Bounded(np.abs(self.value.value), self.value.error, self.value.dtype))

    def at_most(self, most: float) -> Number:
        return Number(Bounded(np.minimum(self.value.value, most), self.value.error, self.value.dtype))

    def f(self, name: str) -> Number:
        """A function of one number, by the name of the operator."""
        type_ = TensorType(self.value.dtype, self.value.value.shape)
        return Number(OPS[name].reference([self.value], Call((type_,), {}, type_)))


def constant(number: float, dtype: str) -> Number:
    """With its own rounding, unless the number is exact in the dtype."""
    whole = number == int(number) or number * 2 == int(number * 2)
    error = 0.0 if whole and abs(number) < 256 else (PRECISION[dtype].unit + U64) * abs(number)
    return Number(Bounded(np.asarray(float(number)), np.asarray(error), dtype))


Formula = Callable[[Sequence[Number], Number, int], Sequence[Number]]
"""Operands, result of the operator, position of the operand -> the ways in which the slope is computed, but for its
sign."""


def _exp2(x: Sequence[Number], y: Number, _: int) -> Sequence[Number]:
    two = constant(2.0, y.value.dtype)
    return y * log(2), two.f("log") * y


def _logarithm(base: float) -> Formula:
    def slopes(x: Sequence[Number], y: Number, _: int) -> Sequence[Number]:
        scale = constant(base, y.value.dtype).f("log")  # TensorFlow and JAX compute it
        return 1.0 / (x[0] * log(base)), (1.0 / x[0]) / scale, (1.0 / scale) / x[0]

    return slopes


def _tan(x: Sequence[Number], y: Number, _: int) -> Sequence[Number]:
    secant = 1.0 / x[0].f("cos")
    return 1.0 + y * y, secant * secant


def _inside_one(x: Sequence[Number], y: Number, _: int) -> Sequence[Number]:
    square = 1.0 - x[0] * x[0]
    return square.f("rsqrt"), 1.0 / square.f("sqrt")


def _division(x: Sequence[Number], y: Number, position: int) -> Sequence[Number]:
    a, b = x
    if position == 0:
        return (1.0 / b,)
    return a / (b * b), (a / b) / b, a * (1.0 / (b * b)), y / b


def _atan2(x: Sequence[Number], y: Number, position: int) -> Sequence[Number]:
    square, other = x[0] * x[0] + x[1] * x[1], x[1 - position]
    return other / square, other * (1.0 / square)


def _hypot(x: Sequence[Number], y: Number, position: int) -> Sequence[Number]:
    return x[position] / y, (0.5 / y) * (2.0 * x[position])


def _softplus(x: Sequence[Number], y: Number, _: int) -> Sequence[Number]:
    grown = x[0].at_most(20.0).f("exp")  # PyTorch's threshold
    return grown / (grown + 1.0), 1.0 / ((-x[0]).f("exp") + 1.0), (x[0] - y).f("exp"), x[0].f("sigmoid")


def _log_sigmoid(x: Sequence[Number], y: Number, _: int) -> Sequence[Number]:
    shrunk = (-abs(x[0])).f("exp")
    part = shrunk / (1.0 + shrunk)
    chosen = Bounded(part.value.value, np.where(x[0].value.value < 0, (1.0 - part).value.error, part.value.error), "")
    return Number(chosen), (-x[0]).f("sigmoid"), (y - x[0]).f("exp")


def _silu(x: Sequence[Number], y: Number, _: int) -> Sequence[Number]:
    s = x[0].f("sigmoid")
    rest = 1.0 - s
    return s * (1.0 + x[0] * rest), s + y * rest, s + x[0] * (s * rest)


def _gelu(x: Sequence[Number], y: Number, _: int) -> Sequence[Number]:
    u = x[0] * sqrt(0.5)
    density = (-(0.5 * (x[0] * x[0]))).f("exp") * (1 / sqrt(2 * pi))
    composed = ((0.5 * x[0]) * ((-(u * u)).f("exp") * (2 / sqrt(pi)))) * sqrt(0.5)
    return (
        0.5 * (1.0 + u.f("erf")) + x[0] * density,
        0.5 * (-u).f("erfc") + composed,
        0.5 * (1.0 + u.f("erf")) + composed,
    )


def _softsign(x: Sequence[Number], y: Number, _: int) -> Sequence[Number]:
    d = 1.0 + abs(x[0])
    return 1.0 / (d * d), 1.0 / d - abs(x[0]) / (d * d), 1.0 / d - abs(y) / d


def _logaddexp(x: Sequence[Number], y: Number, position: int) -> Sequence[Number]:
    a, b = x[position], x[1 - position]
    e = (-abs(a - b)).f("exp")
    part = e * (1.0 / (1.0 + e))
    return 1.0 / (1.0 + (b - a).f("exp")), (a - y).f("exp"), part, 1.0 - part


FORMULAS: dict[str, Formula] = {
    "exp": lambda x, y, _: (y,),
    "exp2": _exp2,
    "expm1": lambda x, y, _: (y + 1.0, x[0].f("exp")),
    "log": lambda x, y, _: (1.0 / x[0],),
    "log1p": lambda x, y, _: (1.0 / (x[0] + 1.0),),
    "log2": _logarithm(2.0),
    "log10": _logarithm(10.0),
    "sqrt": lambda x, y, _: (0.5 / y, 0.5 * x[0].f("rsqrt")),
    "rsqrt": lambda x, y, _: (0.5 * ((y * y) * y), 0.5 * (y / x[0])),
    "reciprocal": lambda x, y, _: (y * y, 1.0 / (x[0] * x[0])),
    "square": lambda x, y, _: (2.0 * x[0],),
    "squared_difference": lambda x, y, _: (2.0 * (x[0] - x[1]),),
    "sin": lambda x, y, _: (x[0].f("cos"),),
    "cos": lambda x, y, _: (x[0].f("sin"),),
    "tan": _tan,
    "asin": _inside_one,
    "acos": _inside_one,
    "atan": lambda x, y, _: (1.0 / (1.0 + x[0] * x[0]),),
    "sinh": lambda x, y, _: (x[0].f("cosh"),),
    "cosh": lambda x, y, _: (x[0].f("sinh"),),
    "tanh": lambda x, y, _: (1.0 - y * y, (1.0 + y) * (1.0 - y)),
    "asinh": lambda x, y, _: ((x[0] * x[0] + 1.0).f("rsqrt"), 1.0 / y.f("cosh")),
    "acosh": lambda x, y, _: ((x[0] * x[0] - 1.0).f("rsqrt"), 1.0 / y.f("sinh")),
    "atanh": lambda x, y, _: (1.0 / (1.0 - x[0] * x[0]), (1.0 / (1.0 + x[0])) * (1.0 / (1.0 - x[0]))),
    "erf": lambda x, y, _: ((-(x[0] * x[0])).f("exp") * (2 / sqrt(pi)),),
    "erfc": lambda x, y, _: ((-(x[0] * x[0])).f("exp") * (2 / sqrt(pi)),),
    "sigmoid": lambda x, y, _: (y * (1.0 - y),),
    "log_sigmoid": _log_sigmoid,
    "softplus": _softplus,
    "softsign": _softsign,
    "silu": _silu,
    "gelu": _gelu,
    "div": _division,
    "atan2": _atan2,
    "hypot": _hypot,
    "logaddexp": _logaddexp,
}
"""By operator. Signs are left out: they are exact."""
