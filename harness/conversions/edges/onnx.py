"""From ONNX to ONNX: the converter of versions, and what ONNX Runtime's optimiser writes."""

from __future__ import annotations

from harness.conversions.edges.edge import Edge

_VERSION = """
def convert(source, target):
    import onnx
    import onnx.version_converter

    model = onnx.load(source)
    current = next(one.version for one in model.opset_import if one.domain in ("", "ai.onnx"))
    onnx.save(onnx.version_converter.convert_version(model, current + 1), target)
"""

_OPTIMISED = """
def convert(source, target):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = target
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
"""

_ABSENT = ((r"NOT_IMPLEMENTED : Could not find an implementation for (\w+)", "no kernel for {}"),)

EDGES = (
    Edge("onnx-version", "onnx", "onnx", ("onnx",), {"onnx": "1.17"}, _VERSION),
    Edge(
        "ort-optimised",
        "onnx",
        "onnx",
        ("onnxruntime",),
        {"onnxruntime|onnxruntime-gpu": "1.20"},
        _OPTIMISED,
        refuses=_ABSENT,
    ),
)
