"""TensorFlow: eager, tf.function with grappler, and tf.function compiled by XLA."""

from __future__ import annotations

from generators.graph import DTYPES
from harness.backends.programs import (
    control_flow,
    dynamic_gradient,
    hessian,
    jvp,
    state,
    tangent_gradient,
    tangent_tangent,
    vmap,
)
from harness.backends.programs.gradient import TENSORFLOW_EAGER, tensorflow_function
from harness.backends.target import passes
from harness.backends.target.target import Level, Target
from harness.dialects import TENSORFLOW

REFUSES: dict[tuple[str, str], str] = {
    ("max_pool3d", "float64"): "MaxPool3D takes float at most",
    ("avg_pool3d", "float64"): "AvgPool3D has a CPU kernel for float only",
    ("image_patches", "bool"): "ExtractImagePatches takes numbers",
    ("spectral_norm", "bfloat16"): "Svd takes no bfloat16",
    ("spectral_norm", "float16"): "Svd has no kernel for half",
    ("tensor_diag", "bool"): "Diag takes numbers",
    ("tensor_diag_part", "bool"): "DiagPart takes numbers",
}
"""(operator, dtype) that the dialect can say and TensorFlow has no kernel for."""

_NOT_IN_XLA = {
    "det": "MatrixDeterminant",
    "slogdet": "LogMatrixDeterminant",
    "bessel_i": "BesselI0",
    "bessel_i0": "BesselI0",
    "bessel_j": "BesselJ0",
    "bessel_k": "BesselK0",
    "bessel_y": "BesselY0",
    "dawsn": "Dawsn",
    "expint": "Expint",
    "fresnel": "FresnelSin",
    "lu_product": "Lu",
    "lu_solve": "Lu",
    "spence": "Spence",
    "resize_antialias": "ScaleAndTranslate",
    "resize_cubic": "ResizeBicubic",
    "resize_area": "ResizeArea",
    "banded_triangular_solve": "BandedTriangularSolve",
    "crop_and_resize": "CropAndResize",
    "dilation2d": "Dilation2D",
    "eigenvalue_sum": "Eig",
    "euclidean_norm": "EuclideanNorm",
    "histogram_fixed_width": "HistogramFixedWidth",
    "in_top_k k=3": "InTopK",
    "least_squares": "MatrixSolveLs",
    "least_squares_regularized": "MatrixSolveLs",
    "matrix_square_root": "MatrixSquareRoot",
    "max_pool_with_argmax": "MaxPoolWithArgmax",
    "nth_element": "NthElement",
    "segment_sum_otherwise spelling=1": "SparseSegmentSum",
    "sorted_segment_max": "SegmentMax",
    "sorted_segment_mean": "SegmentMean",
    "sorted_segment_min": "SegmentMin",
    "sorted_segment_prod": "SegmentProd",
    "sorted_segment_sum": "SegmentSum",
    "unravel_index": "UnravelIndex",
    "volume_patches": "ExtractVolumePatches",
}
XLA_REFUSES: dict[tuple[str, str], str] = {
    (operator, dtype): f"XLA has no kernel for {kernel}" for operator, kernel in _NOT_IN_XLA.items() for dtype in DTYPES
} | {("image_patches", "int64"): "XLA has no kernel for ExtractImagePatches of int64"}
_XLA_DECLINES = {
    r"No registered '(NonMaxSuppressionV[235]|UniqueWithCounts(V2)?|ScatterNdNonAliasingAdd)' OpKernel": "no kernel",
    "does not yet support pivoting": "XLA solves tridiagonal systems without choosing pivots",
}
_CPU_DECLINES = {
    "Could not find device for node: .*ApproxTopK|support Op 'ApproxTopK'": "ApproxTopK has a kernel in XLA only",
    r"node: .*ClipByValue\[T=DT_UINT|support Op 'ClipByValue'": "ClipByValue has no kernel for uint32 and uint64",
    r"Could not find device for node: .*SpaceToBatchND\[T=DT_BOOL": "SpaceToBatchND takes no truth values",
    r"Could not find device for node: .*BatchToSpaceND\[T=DT_BOOL": "BatchToSpaceND takes no truth values",
    "Histogram values must not contain NaN": "HistogramFixedWidth takes no NaN",
    r"only support up to 7 input dim|Only indices.shape\[-1\] values between": "kernels have up to seven dimensions",
    r"inputs rank not in \[0,5\]|ReverseSequenceOp : Unhandled input": "kernels have up to five dimensions",
}

_MODULES = ("tensorflow",)
_PACKAGES = {"tensorflow-cpu|tensorflow": "2.16"}

_EAGER = """
def load(parameters):
    bound = [tf.constant(parameters[name]) for name in PARAMETERS]

    def run(*inputs):
        return [output.numpy() for output in model(*[tf.constant(x) for x in inputs], *bound)]

    return run
"""

_FUNCTION = """
def load(parameters):
{captured}    @tf.function{options}
    def compiled(*inputs):
{own}        return model(*inputs, *bound)

    def run(*inputs):
        return [output.numpy() for output in compiled(*[tf.constant(x) for x in inputs])]

    return run
"""
_BOUND = "bound = [tf.constant(parameters[name]) for name in PARAMETERS]\n"
# Grappler leaves constants alone that a function captures
_GRAPH = _FUNCTION.format(options="(autograph=False)", captured="", own=" " * 8 + _BOUND)
_XLA = _FUNCTION.format(options="(autograph=False, jit_compile=True)", captured=f"    {_BOUND}\n", own="")

_SYMBOLIC_EAGER = """
def compile_once(parameters):
    bound = [tf.constant(parameters[name]) for name in PARAMETERS]

    def run(size, *arrays):
        return [output.numpy() for output in model(*[tf.constant(x) for x in arrays], *bound)]

    return run
"""

_SYMBOLIC = """
def compile_once(parameters):
    bound = [tf.constant(parameters[name]) for name in PARAMETERS]
    signature = [
        tf.TensorSpec([None if dim == "n" else dim for dim in shape], dtype) for dtype, shape in ARGUMENTS.values()
    ]

    @tf.function(input_signature=signature, {options})
    def compiled(*inputs):
        return model(*inputs, *bound)

    def run(size, *arrays):
        return [output.numpy() for output in compiled(*[tf.constant(x) for x in arrays])]

    return run
"""


def _question_loads(options: str) -> dict[str, str]:
    """What other questions run, the whole of it as one tf.function."""
    return {
        "dynamic_gradient": dynamic_gradient.tensorflow_function(options.strip("()")),
        "jvp": jvp.tensorflow_function(options),
        "vmap": vmap.tensorflow_function(options),
        "hessian": hessian.tensorflow_function(options),
        "tangent_gradient": tangent_gradient.tensorflow_function(options),
        "tangent_tangent": tangent_tangent.tensorflow_function(options),
        "state": state.tensorflow_function(options),
        **control_flow.tensorflow(options),
    }


TARGETS = (
    Target(
        "tf-eager",
        "tensorflow",
        _MODULES,
        TENSORFLOW,
        _EAGER,
        _PACKAGES,
        Level("tf", 0),
        refuses=REFUSES,
        declines=_CPU_DECLINES,
        refusals_file="tensorflow",
        symbolic=_SYMBOLIC_EAGER,
        gradient=TENSORFLOW_EAGER,
        question_loads={
            "dynamic_gradient": dynamic_gradient.TENSORFLOW_EAGER,
            "jvp": jvp.TENSORFLOW_EAGER,
            "vmap": vmap.TENSORFLOW_EAGER,
            "hessian": hessian.TENSORFLOW_EAGER,
            "tangent_gradient": tangent_gradient.TENSORFLOW_EAGER,
            "tangent_tangent": tangent_tangent.TENSORFLOW_EAGER,
            "state": state.TENSORFLOW_EAGER,
        },
    ),
    Target(
        "tf-graph",
        "tensorflow",
        _MODULES,
        TENSORFLOW,
        _GRAPH,
        _PACKAGES,
        Level("tf", 1),
        refuses=REFUSES,
        declines=_CPU_DECLINES,
        refusals_file="tensorflow",
        sample_every=2,
        symbolic=_SYMBOLIC.format(options="autograph=False"),
        gradient=tensorflow_function("(autograph=False)"),
        question_loads=_question_loads("(autograph=False)"),
        switches=passes.GRAPPLER,
    ),
    Target(
        "tf-xla",
        "tensorflow",
        _MODULES,
        TENSORFLOW,
        _XLA,
        _PACKAGES,
        Level("tf", 2),
        refuses={key: why for key, why in {**REFUSES, **XLA_REFUSES}.items() if key != ("avg_pool3d", "float64")},
        declines=_XLA_DECLINES,
        refusals_file="tf-xla",
        sample_every=4,
        symbolic=_SYMBOLIC.format(options="autograph=False, jit_compile=True"),
        gradient=tensorflow_function("(autograph=False, jit_compile=True)"),
        question_loads=_question_loads("(autograph=False, jit_compile=True)"),
    ),
)
