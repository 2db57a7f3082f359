"""Numbers at which kernels change their formula, or near which a step of theirs overflows, vanishes or is no longer
exact: sweeps take elements from beside them, with both signs.

From the sources of fdlibm (and glibc, which goes on from it), SLEEF, Eigen, XLA, PyTorch and TensorFlow where a line
says so; the rest follows from the dtypes: float16 (11 bits, up to 65504), bfloat16 and float32 (8 and 24 bits, up to
3.4e38), float64 (53 bits, up to 1.8e308), and the ends of integers."""

from __future__ import annotations

import math

LARGEST = (65504.0, 3.3895313892515355e38, 3.4028234663852886e38, 1.7976931348623157e308)
TINY = (2.0**-14, 2.0**-126, 2.0**-1022)
LEAST = (2.0**-24, 2.0**-149, 2.0**-1074)
WHOLE = (2.0**8, 2.0**11, 2.0**24, 2.0**53)
"""Up to these all whole numbers are exact, in bfloat16, float16, float32 and float64."""
HALVES = (0.5, 1.5, 2.5, 0.49999997, 0.49999999999999994, *(power / 2 for power in WHOLE), *WHOLE)
INTEGER_ENDS = (127.0, 128.0, 255.0, 256.0, 32767.0, 32768.0, 65535.0, 2.0**31 - 1, 2.0**31, 2.0**32, 2.0**63, 2.0**64)
ROOTS = tuple(math.sqrt(number) for number in (*LARGEST, *TINY))
"""Beyond these squares overflow, or vanish."""
INTEGER_ROOTS = tuple(float(math.isqrt(2**bits)) for bits in (7, 8, 15, 16, 31, 32, 63, 64))
"""The same of integers."""

EXP = (
    *(math.log(number) for number in (*LARGEST, *TINY)),
    *(power * math.log(2) for power in (-25, -150, -1075)),  # of half the least subnormal number
    math.log(2) / 2,  # where the range is reduced (fdlibm)
    1.5 * math.log(2),
    88.0,  # SLEEF, Eigen
    -88.0,
    104.0,
    *(2.0**power for power in (-8, -11, -24, -28, -53)),  # below half of the unit roundoff exp(x) is 1
)
TWO_EXP = tuple(math.log(number) + math.log(2) for number in LARGEST)
"""exp(x) / 2 overflows beyond these: sinh, cosh."""
LOG = (1.0, math.sqrt(0.5), math.sqrt(2), 2 / 3, 4 / 3, *TINY, *LEAST, *LARGEST)
LOG1P = (math.sqrt(2) - 1, math.sqrt(0.5) - 1, -1.0, 2.0**-29, 2.0**-54, 2.0**-24, 2.0**53, 0.375, *TINY)
SOFTPLUS = (
    20.0,  # PyTorch's and TVM's threshold
    40.0,
    *(math.log(unit) + 2 for unit in (2.0**-10, 2.0**-7, 2.0**-23, 2.0**-52)),  # TensorFlow's
    *EXP,
)
TANH = (1.0, 22.0, 9.0, 2.0**-28, 2.0**-55, 0.0004, 7.99881172180175781, 7.90531110763549805, 0.625)  # fdlibm, Eigen
WAVES = (
    *(quarter * math.pi / 4 for quarter in range(1, 9)),
    *(1e5 * math.pi, 2.0**19 * math.pi, 2.0**20 * math.pi / 2),  # the last step before Payne and Hanek's (fdlibm)
    *(39000.0, 71476.0625, 105615.0, 117435.992),  # CUDA, Eigen
    *(125.0, 15.0, 1e14),  # SLEEF
    *(2.0**power for power in (-12, -27, 13, 18, 24, 31)),
)
ERF = (
    *(0.84375, 1.25, 1 / 0.35, 6.0, 28.0),  # fdlibm
    *(0.921875, 4.0, 3.832506856900711, 3.925724783138660),  # glibc, Eigen, XLA
    *(1.0, 0.5, 2.0, 8.0, 9.19, 10.06, 26.54, 27.23),  # where erfc vanishes in float32 and float64
    *(2.0**-28, *TINY),
)
GELU = (*(number * math.sqrt(2) for number in ERF), 1.0, 3.0, 5.0, 5.5, 9.0, 10.0, 13.0)
GAMMA = (
    *(0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 7.0, 8.0, 10.0, 12.0, 13.0),  # fdlibm, Cephes
    *(1.4616321449683623, 1.23164, 1.73163, 0.7316321449683623),  # the least value, and fdlibm's pieces around it
    *(2.0**-20, 2.0**17, 2.0**58, 35.04, 171.62, 4085003421.0),
)
POWER = (
    *(1.0, 2.0, 3.0, 0.5, 1 / 3, 31.0, 64.0, *TINY, *LEAST, *LARGEST),
    *(15.0, 16.0, 24.0, 25.0, 126.0, 127.0, 128.0, 149.0, 150.0, 1022.0, 1023.0, 1024.0, 1074.0, 1075.0),
    *(2.0**24 - 1, 2.0**24 + 2, 2.0**53 - 1, *WHOLE, *INTEGER_ENDS),  # odd exponents up to these
)
ACCUMULATORS = (
    *(1.0, *WHOLE, *(power + 2 for power in WHOLE), 2.0**31 - 1, 2.0**63, *LARGEST, *(n / 2 for n in LARGEST)),
    *(2.0**-12, 2.0**-24, 2.0**-53, 127.0, 255.0, 32767.0),  # what is lost beside 1
)
"""What a sum keeps only in a wider format than the dtype's."""
ORDER = (*WHOLE, *(power + 1 for power in WHOLE), 0.0, 2.0**31 - 1, 2.0**31, 2.0**63, *TINY, *LEAST, *LARGEST)
"""What is equal, or turned around, once it is read as another dtype."""

_SUMS = """
sum mean cumsum cumulative_sum prod cumprod variance std l1_norm l2_norm sum_of_squares mean_abs ptp nansum nanmean
vector_norm trapezoid cov matmul linear dot segment_sum scatter_add index_add avg_pool2d global_avg_pool
"""
_ORDERED = """
max min argmax argmin sort argsort topk topk_indices kth_value cummax cummin maximum minimum fmax fmin less less_equal
greater greater_equal equal not_equal clip quantile nanmedian bucketize searchsorted isin unique_inverse
"""

THRESHOLDS: dict[str, tuple[float, ...]] = {
    "exp": EXP,
    "exp2": (15.0, 16.0, 14.0, 24.0, 25.0, 126.0, 127.0, 128.0, 149.0, 150.0, 1022.0, 1023.0, 1024.0, 1074.0, 0.5),
    "expm1": (*EXP, 0.5 * math.log(2), 1.5 * math.log(2), 27 * math.log(2), 56 * math.log(2), 0.5, 2.0**-54),  # fdlibm
    "log": LOG,
    "log2": (*LOG, 2.0, 8.0, 0.125),
    "log10": (*LOG, 10.0, 1000.0, 1e15, 1e-5),
    "log1p": LOG1P,
    "logit": (0.5, 1.0, *TINY, 1 - 2.0**-24, 1 - 2.0**-11, 1 - 2.0**-53),
    "logaddexp": EXP,
    "logaddexp2": (24.0, 25.0, 53.0, 127.0, 128.0, 1024.0),
    "xlogy": (*LOG, *LARGEST),
    **dict.fromkeys(("sin", "cos", "tan"), WAVES),
    "sinc": (*(float(n) for n in range(1, 6)), *HALVES, 2.0**-13, 2.0**-27),
    **dict.fromkeys(("asin", "acos"), (0.5, 1.0, 0.975, 0.625, 1 - 2.0**-24, 1 - 2.0**-11, 2.0**-27, 2.0**-57, *TINY)),
    "atan": (7 / 16, 11 / 16, 19 / 16, 39 / 16, math.sqrt(2) - 1, math.sqrt(2) + 1, 2.0**-29, 2.0**34, 2.0**66),
    "atan2": (1.0, 2.0**26, 2.0**60, 2.0**-60, *TINY, *LEAST, *LARGEST),
    "sinh": (*EXP, *TWO_EXP, 1.0, 22.0, 2.0**-28),
    "cosh": (*EXP, *TWO_EXP, 22.0, 2.0**-28),
    "tanh": TANH,
    "tanhshrink": (*TANH, 2.0**-9),
    "asinh": (2.0, 0.5, 2.0**28, 2.0**-28, *ROOTS, *LARGEST),
    "acosh": (1.0, 2.0, 2.0**28, *ROOTS, *LARGEST),
    "atanh": (0.5, 1.0, 1 - 2.0**-24, 1 - 2.0**-11, 2.0**-28, *TINY),
    "sigmoid": (9.0, 18.0, 16.0, 17.0, *EXP),
    "silu": (9.0, 18.0, *EXP, *LARGEST),
    "hard_sigmoid": (3.0, *LARGEST),
    "hard_swish": (3.0, *ROOTS, *LARGEST),
    "softplus": SOFTPLUS,
    "log_sigmoid": SOFTPLUS,
    "mish": (*SOFTPLUS, *TANH),
    **dict.fromkeys(("elu", "selu", "celu"), EXP),
    "gelu": GELU,
    "gelu_tanh": (1.0, 3.0, 5.0, 5.5, 9.0, 10.0, *(x ** (1 / 3) for x in (*LARGEST, *TINY))),
    "relu6": (6.0, *LARGEST),
    "softsign": (1.0, *LARGEST, *TINY),
    **dict.fromkeys(("erf", "erfc"), ERF),
    "erfinv": (0.5, 0.7, 0.75, 1.0, 0.9375, math.sqrt(1 - math.exp(-5)), 1 - 2.0**-24, 1 - 2.0**-53, 2.0**-27, *TINY),
    **dict.fromkeys(("lgamma", "gamma_function", "log_beta", "beta_function"), GAMMA),
    "digamma": GAMMA,
    "bessel_i0": (3.75, 7.75, 8.0, *EXP, 91.9, 713.98),  # Abramowitz and Stegun, Boost, Cephes
    "pow": POWER,
    "sqrt": (1.0, 2.0, 4.0, 9.0, *WHOLE, *TINY, *LEAST, *LARGEST),
    "rsqrt": (1.0, 4.0, *TINY, *LEAST, *LARGEST),
    "cbrt": (1.0, 8.0, 27.0, *TINY, *LEAST, *LARGEST),
    **dict.fromkeys(("square", "squared_difference"), (*ROOTS, *INTEGER_ROOTS, *LARGEST, *LEAST)),
    **dict.fromkeys(("hypot", "relu_squared"), (*ROOTS, *LARGEST, *LEAST)),
    "reciprocal": (1.0, *(1 / x for x in LARGEST), *(1 / x for x in TINY), *TINY, *LARGEST),
    "div": (1.0, 3.0, *TINY, *LEAST, *LARGEST, *ROOTS),
    "mul": (1.0, *ROOTS, *INTEGER_ROOTS, *LARGEST, *LEAST, *INTEGER_ENDS),
    **dict.fromkeys(("add", "sub"), (*WHOLE, *(n / 2 for n in LARGEST), *LARGEST, *LEAST, *INTEGER_ENDS)),
    **dict.fromkeys(("floor", "ceil", "round", "trunc", "frac"), (*HALVES, *INTEGER_ENDS, *TINY)),
    **dict.fromkeys(("floor_divide", "remainder", "fmod", "trunc_divide"), (1.0, 3.0, *WHOLE, *INTEGER_ENDS, *TINY)),
    "line_between": LARGEST,
    **dict.fromkeys(("gcd", "lcm", "left_shift", "right_shift"), INTEGER_ENDS),
    "cast": (*HALVES, *INTEGER_ENDS, 65519.0, 65520.0, *LARGEST, *TINY, *LEAST, 2.0**24 + 1, 2.0**53 + 1),
    **dict.fromkeys(("frexp_mantissa", "frexp_exponent", "nextafter"), (1.0, *TINY, *LEAST, *LARGEST)),
    **dict.fromkeys(_SUMS.split(), ACCUMULATORS),
    **dict.fromkeys(("softmax", "log_softmax", "logsumexp", "logcumsumexp"), EXP),
    **dict.fromkeys(_ORDERED.split(), ORDER),
}
