"""What the fast modes of back ends allow, each with its source."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from generators.bounds.bounded import PRECISION
from oracles.arithmetic import tvm_mixed_precision
from oracles.arithmetic.fast_math import Approximation, Arithmetic

TVM_FAST = Arithmetic(
    "FastMathTransform",
    functions={
        ("exp", "float32"): Approximation(4.1e-6, PRECISION["float32"].tiny, up_to=88.376),
        **{
            (name, "float32"): Approximation(2.01 * 4.1e-6, 2048 * PRECISION["float32"].tiny)
            for name in ("softmax", "softmax_otherwise")
        },
        ("erf", "float32"): Approximation(0.0, nan=False),
    },
)
"""Polynomials of topi (include/tvm/topi/elemwise.h) in place of exp, tanh, erf and the exponential of softmax. Their
greatest relative errors, measured with TVM 0.27.0.post1 (target llvm, x86-64 without FMA) against float64 on all
float32 numbers from 2**-30 to 128 in magnitude and every 223rd below:
exp    4.08e-6 (at 71.746697) for |x| <= 88.376, beyond which the argument is clamped: what is greater is of no use, and
       what is less than that gives at most the smallest normal number. As both the numerator and the denominator of
       softmax that is 2 r / (1 - r), where arguments are at most 0.
tanh   4.11e-7, inside the ordinary budget of 5 ulp (6.0e-7).
erf    4.68e-7, inside the ordinary budget of 16 ulp (1.9e-6); NaN is clamped, too, and gives 1."""

TVM_REORDERED = Arithmetic("ExpandMatmulOfSum", reassociates=True)
"""x (A + B) becomes x A + x B, and (A B) C is A (B C) where that takes fewer operations (TVM's documentation of
ExpandMatmulOfSum and AdjustMatmulOrder)."""

_OF_EXP = ("bce_with_logits", "celu", "elu", "exp_of_integers", "logcumsumexp", "logsumexp", "scaled_elu", "softmax_to")
TVM_FAST_REFUSES = {
    (operator, "float32"): "composed of an approximated exponential: what it may lose is not derived"
    for operator in _OF_EXP
}

_ULP = 2.0**-23
"""Of float32, relative to the least number of its binade."""
_TINY = PRECISION["float32"].tiny
TVM_CUDA = Arithmetic(
    "--use_fast_math",
    reciprocals=True,
    estimates=True,
    functions={
        ("exp", "float32"): Approximation(2 * _ULP, _TINY, growing=1.173 * _ULP),
        ("log", "float32"): Approximation(3 * _ULP, 2.0**-21.41, subnormals=False),
        ("sin", "float32"): Approximation(0.0, 2.0**-21.41, up_to=np.pi, down_to=-np.pi),
        ("cos", "float32"): Approximation(0.0, 2.0**-21.19, up_to=np.pi, down_to=-np.pi),
        ("tanh", "float32"): Approximation(2.0**-11, _TINY),
        ("sqrt", "float32"): Approximation(_ULP, subnormals=False),
        ("rsqrt", "float32"): Approximation(2.0**-22.9, subnormals=False),
    },
)
"""TVM compiles all kernels of CUDA so (tvm/support/nvcc.py of TVM 0.27: no option of its own turns it off). CUDA C++
Programming Guide, "Intrinsic Functions": __expf 2 + floor(|1.173 x|) ulp; __logf 2**-21.41 on [0.5, 2], else 3 ulp;
__sinf and __cosf 2**-21.41 and 2**-21.19 on [-pi, pi], "larger elsewhere"; division 2 ulp, which the ordinary budget
covers, and nothing for divisors beyond 2**126. Parallel Thread Execution ISA: tanh.approx.f32 2**-11, sqrt.approx.f32
2**-23, rsqrt.approx.f32 2**-22.9, all relative; subnormal operands are taken as zero (.ftz)."""

_OF_APPROXIMATIONS = (
    *(
        "acos",
        "acosh",
        "asin",
        "asinh",
        "atan",
        "atan2",
        "atan2_mixed",
        "atanh",
        "attention",
        "attention_biased",
        "attention_masked",
    ),
    *("bce_pos_weight", "bce_with_logits", "binary_cross_entropy", "celu", "cosh", "cross_entropy"),
    *("cross_entropy_weighted", "elu", "erf", "exp2", "gaussian_nll", "gelu", "gelu_tanh", "global_lp_pool", "glu"),
    *("gru", "gru_cell", "kl_div", "kl_div_log_target", "log10", "log_sigmoid", "log_softmax", "log_softmax_to"),
    *("log_sum", "logaddexp", "logcumsumexp", "logit", "logsumexp", "lstm", "lstm_cell"),
    *("mish", "poisson_nll", "pow", "pow_scalar", "pow_scalar_floating", "rnn", "rnn_cell", "scalar_pow"),
    *("scalar_pow_floating", "scalar_xlogy", "scaled_elu", "selu", "sigmoid", "silu", "sinc", "sinh", "slogdet"),
    *("soft_margin", "softmax", "softmax_to", "softplus", "softplus_scaled", "swish", "tan", "tanhshrink", "tapered"),
    *("vector_norm", "xlogy", "xlogy_scalar"),
    *(f"{name}_otherwise" for name in ("attention", "log_softmax", "silu", "softmax")),
    *(f"{name}_of_integers" for name in ("acos", "acosh", "asin", "asinh", "atan", "cos", "cosh", "erf", "exp", "log")),
    *(f"{name}_of_integers" for name in ("rsqrt", "sigmoid", "sin", "sinh", "sqrt", "tan", "tanh")),
)
TVM_CUDA_REFUSES = {
    (operator, "float32"): "composed of functions of --use_fast_math: what it may lose is not derived"
    for operator in _OF_APPROXIMATIONS
}

TVM_MIXED = {
    sums: Arithmetic(f"ToMixedPrecision({sums!r})", casts=partial(tvm_mixed_precision.casts, sums=sums))
    for sums in ("float32", "float16")
}
"""By the pass' out_dtype, "the output data type of gemm/conv, which is the data type of the accumulator": every value
is computed in float16 or float32, as the casts say, and each dtype has its ordinary roundoff."""

_XLA_FUNCTIONS = {("expm1", "float32"): Approximation(0.0, growing=2.0**-28)}
"""XLA writes expm1 out as sums and products, which are reassociated. Greatest relative error on all float32 from 1 to
88.722, with jaxlib 0.11.2 against float64: 9.53 u (at 88.7217), 6 u of which are the ordinary budget of 3 ulp; what is
beyond it is at most 0.64 * 2**-28 |x|. Without fast math it is the exponential's, 5.6 ulp next to overflow."""

XLA_FAST = Arithmetic("xla_cpu_enable_fast_math", signed_zeros=False, reassociates=True, functions=_XLA_FUNCTIONS)
"""LLVM's flags reassoc, nsz and contract (GetCpuFastMathFlags of xla/service/cpu: fast, of which the switches
xla_cpu_fast_math_honor_nans, _infs, _division and _functions, all true by default, take nnan, ninf, arcp and afn back).
LLVM's Language Reference, "Fast-Math Flags": reassoc may change results dramatically, nsz makes the signs of zeros
insignificant."""

XLA_FASTEST = Arithmetic(
    "xla_cpu_enable_fast_math without xla_cpu_fast_math_honor_*",
    nans=False,
    infinities=False,
    signed_zeros=False,
    reassociates=True,
    reciprocals=True,
    estimates=True,
    functions=_XLA_FUNCTIONS,
)
"""The same and nnan, ninf (a result that is or comes from a NaN or an infinity is a poison value), arcp and afn: for
functions no other accuracy is documented than the ordinary one, which is asked. With both LLVM divides float32 by an
estimate and one step of Newton's (BuildDivEstimate of DAGCombiner.cpp)."""

INDUCTOR_FAST = Arithmetic(
    "-funsafe-math-optimizations", signed_zeros=False, invalid=False, reassociates=True, reciprocals=True
)
"""cpp.enable_unsafe_math_opt_flag of inductor: the C++ compiler's -funsafe-math-optimizations, which is
-fno-signed-zeros, -fno-trapping-math, -fassociative-math and -freciprocal-math (GCC's manual, "Options That Control
Optimization"); with cpp.enable_floating_point_contract_flag also -ffp-contract=fast. NaN and infinities are honoured
(-fno-finite-math-only, torch/_inductor/cpp_builder.py), but arguments are assumed to be valid: sqrt(x) ** 2 is x."""

NCNN_FAST = replace(XLA_FASTEST, name="-ffast-math", functions={})
"""ncnn's releases are compiled with -Ofast and -ffast-math (src/CMakeLists.txt), which are -funsafe-math-optimizations,
-ffinite-math-only and -fno-signed-zeros (GCC's manual, "Options That Control Optimization")."""

_PRODUCTS = (
    "addbmm",
    "addmm",
    "baddbmm",
    "batch_matmul",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
)
_PRODUCTS += ("conv1d_same", "conv2d_same")
_PRODUCTS += ("depthwise_conv2d", "dot", "einsum", "linear", "matmul", "matrix_vector", "tensordot", "vecdot")
_PRODUCTS += ("vector_matrix",)
TORCH_TF32 = Arithmetic("TF32", operand_unit=2.0**-11, products=frozenset(_PRODUCTS), accumulators=2.0)
"""torch.backends.cuda.matmul.allow_tf32 and torch.backends.cudnn.allow_tf32: operands of matrix products and
convolutions are rounded to 10 bits of mantissa (NVIDIA A100 Tensor Core GPU Architecture, "TF32"), their exact
products added in float32. Tensor cores truncate sums (Fasi, Higham, Mikaitis, Pranesh, Numerical behavior of NVIDIA
tensor cores, PeerJ CS 2021, section 3): each addition may lose 2**-23, twice the unit roundoff."""

TF32_REFUSES = (
    {
        (
            operator,
            "float32",
        ): "products of products in TF32: what lies between them is rounded, too, and is not derived"
        for operator in (
            "affine_grid",
            "attention",
            "attention_biased",
            "attention_masked",
            "cdist",
            "corrcoef",
            "cov",
            "gru",
            "gru_cell",
            "lstm",
            "lstm_cell",
            "matrix_power",
            "multi_dot",
            "rnn",
            "rnn_cell",
        )
    }
    | {
        (operator, "float32"): "which products of a decomposition are made in TF32 is not documented"
        for operator in (
            *(
                "cholesky",
                "cholesky_inverse",
                "cholesky_solve",
                "condition_number",
                "det",
                "eigenvalues",
                "eigh_product",
            ),
            *("householder_product", "inverse", "ldl_solve", "least_squares", "lu_product", "lu_solve"),
            *("lu_unpacked_product", "matrix_exp", "matrix_rank", "ormqr_product", "pseudo_inverse", "qr_factor"),
            *("qr_product", "reflections", "singular_values", "slogdet", "solve", "spectral_norm", "svd_product"),
            *("least_squares_regularized", "triangular_solve"),
        )
    }
    | {("*", "complex64"): "how products of complex numbers are made of TF32 is not documented"}
)
