"""ONNX Runtime on the CPU, at its four graph optimisation levels."""

from __future__ import annotations

from generators.ops.spec import Unsupported
from harness.backends.programs import control_flow
from harness.backends.programs.onnx_model import PROTO
from harness.backends.target import passes
from harness.backends.target.target import Level, Target
from harness.dialects import ONNX

_MODULES = ("onnx", "onnxruntime")
_PACKAGES = {"onnxruntime|onnxruntime-gpu": "1.20", "onnx": "1.17"}

_BUILD = """
    import onnxruntime
{proto}\
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.{level}
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
"""

_LOAD = """
def load(parameters):{build}
    def run(*inputs):
        return session.run(None, dict(zip(INPUTS, inputs)))

    return run
"""

_CHOSEN = """
def load(parameters):{build}
    def run(*inputs):
        given = dict(zip(INPUTS, inputs))
        each = [session.run(None, {{**given, "branch.number": np.array(number)}}) for number in range(len(inputs[0]))]
        return [np.stack(outputs) for outputs in zip(*each)]

    return run
"""

_SYMBOLIC = """
def compile_once(parameters):{build}
    def run(size, *arrays):
        return session.run(None, dict(zip(ARGUMENTS, arrays)))

    return run
"""


def _loads(level: str) -> tuple[str, str, dict[str, str]]:
    """The texts of load and compile_once at a level, and what other questions run."""

    def build(proto: str) -> str:
        return _BUILD.format(level=level, proto=proto)

    static = build(PROTO.format(inputs="INPUTS", outputs="OUTPUTS"))
    symbolic = build(PROTO.format(inputs="ARGUMENTS", outputs="RESULTS"))
    loop, branch = build(control_flow.ONNX_LOOP), build(control_flow.ONNX_BRANCH)
    others = {"loop": _LOAD.format(build=loop), "branch": _CHOSEN.format(build=branch)}
    return _LOAD.format(build=static), _SYMBOLIC.format(build=symbolic), others


LEVELS = {
    "ort-disable": "ORT_DISABLE_ALL",
    "ort-basic": "ORT_ENABLE_BASIC",
    "ort-extended": "ORT_ENABLE_EXTENDED",
    "ort-all": "ORT_ENABLE_ALL",
}

_FLOAT_ONLY = "the CPU provider has a kernel for float only"
_NO_DOUBLE = (
    *("tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "erf"),
    *("gelu", "det", "slogdet"),
    *("conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "depthwise_conv2d"),
    *("avg_pool1d", "avg_pool2d", "avg_pool3d", "avg_pool1d_ceil", "avg_pool2d_ceil", "avg_pool3d_ceil"),
    *("avg_pool1d_same", "avg_pool2d_same", "upsample_nearest"),
    *("resize_nearest", "resize_linear", "resize_cubic", "resize_antialias", "resize_area"),
    *("resize_nearest_scaled", "resize_linear_scaled", "mean_n", "conv1d_same", "conv2d_same"),
    *("resize_nearest_line", "resize_nearest_volume", "resize_linear_line", "resize_linear_volume"),
)

REFUSES: dict[tuple[str, str], str] = {
    **{(operator, "float64"): _FLOAT_ONLY for operator in _NO_DOUBLE},
    **{
        (f"{name} reduction=add", dtype): f"the CPU provider's ScatterND adds no {dtype}"
        for name in ("scatter_nd", "scatter_nd_from_end")
        for dtype in ("float16", "bfloat16")
    },
    ("scatter_reduce", "bfloat16"): "the CPU provider's ScatterElements reduces no bfloat16",
    ("unique_inverse", "int32"): "the CPU provider has Unique for int64 and int8, and none for int32",
}
"""(operator, dtype) that ONNX has, and ONNX Runtime's CPU provider no kernel for (NOT_IMPLEMENTED)."""

TARGETS = tuple(
    Target(
        name,
        "onnxruntime",
        _MODULES,
        ONNX,
        load,
        _PACKAGES,
        Level("ort", i),
        refuses=REFUSES,
        refusals_file="onnxruntime",
        declines={
            r"Opset \d+ is under development": "it says that this opset is under development",
            "Dilation not supported for AutoPadType": "it says so of a dilation beside auto_pad",
            r"implementation for RoiAlign\(22\)": "it has RoiAlign of opset 16, and not of 22",
            r"implementation for GlobalLpPool\(22\)": "it has GlobalLpPool of opset 2, and not of 22",
            r"(implementation|kernel) for Swish\(24\)": "it has no Swish, and takes its function in its own opset only",
            "Integer modulo by zero": "it says so of whole numbers, which have no remainder there",
            "All 'rois' values must be finite": "it takes finite regions only",
            "RoiAlign node.*SafeIntOnOverflow": "it has no such number of samples",
            "data type is not supported with ScatterElements": "it says so of a reduction of half precision",
        },
        symbolic=symbolic,
        question_loads=others,
        switches=passes.onnxruntime(i) if i else None,
        gradient=Unsupported("this package of ONNX Runtime does inference only"),
    )
    for i, (name, level) in enumerate(LEVELS.items())
    for load, symbolic, others in (_loads(level),)
)
