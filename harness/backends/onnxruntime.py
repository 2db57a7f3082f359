"""ONNX Runtime on the CPU, at its four graph optimisation levels."""

from __future__ import annotations

from harness.backends.target import Level, Target
from harness.dialects import ONNX

_MODULES = ("onnx", "onnxruntime")
_PACKAGES = {"onnxruntime|onnxruntime-gpu": "1.20", "onnx": "1.17"}

_LOAD = """
def load(parameters):
    import onnxruntime

    def element(dtype):
        return helper.np_dtype_to_tensor_dtype(np.dtype(dtype))

    g = Builder()
    results = model(g, *INPUTS, *PARAMETERS)
    proto = g.model(
        {{name: (element(dtype), shape) for name, (dtype, shape) in INPUTS.items()}},
        parameters,
        [(element(dtype), shape) for dtype, shape in OUTPUTS],
        results,
    )
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.{level}
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )

    def run(*inputs):
        return session.run(None, dict(zip(INPUTS, inputs)))

    return run
"""

_LEVELS = {
    "ort-disable": "ORT_DISABLE_ALL",
    "ort-basic": "ORT_ENABLE_BASIC",
    "ort-extended": "ORT_ENABLE_EXTENDED",
    "ort-all": "ORT_ENABLE_ALL",
}

_FLOAT_ONLY = "the CPU provider has a kernel for float only"
_NO_DOUBLE = (
    *("tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "erf"),
    "gelu",
    *("conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d"),
    *("avg_pool1d", "avg_pool2d", "avg_pool3d", "upsample_nearest"),
)

REFUSES: dict[tuple[str, str], str] = {**{(operator, "float64"): _FLOAT_ONLY for operator in _NO_DOUBLE}}
"""(operator, dtype) that ONNX has, and ONNX Runtime's CPU provider no kernel for (NOT_IMPLEMENTED)."""

TARGETS = tuple(
    Target(name, "onnxruntime", _MODULES, ONNX, _LOAD.format(level=level), _PACKAGES, Level("ort", i), refuses=REFUSES)
    for i, (name, level) in enumerate(_LEVELS.items())
)
