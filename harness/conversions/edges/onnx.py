"""From ONNX to ONNX: the converter of versions, and what ONNX Runtime's optimiser writes."""

from __future__ import annotations

from harness.conversions.edges.edge import Edge
from harness.conversions.formats.onnx import NO_KERNEL

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
    import os

    import onnx
    import onnxruntime
    from onnx.external_data_helper import load_external_data_for_model, uses_external_data

    model = onnx.load(source, load_external_data=False)
    outside = any(uses_external_data(tensor) for tensor in model.graph.initializer)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = target
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    options.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", "1")
    given = source
    if outside:  # what is written would look for the arrays beside itself
        load_external_data_for_model(model, os.path.dirname(os.path.abspath(source)))
        given = model.SerializeToString()
    onnxruntime.InferenceSession(given, options, providers=["CPUExecutionProvider"])
"""

EDGES = (
    Edge("onnx-version", "onnx", "onnx", ("onnx",), {"onnx": "1.17"}, _VERSION),
    Edge(
        "ort-optimised",
        "onnx",
        "onnx",
        ("onnxruntime", "onnx"),
        {"onnxruntime|onnxruntime-gpu": "1.20", "onnx": "1.17"},
        _OPTIMISED,
        inherits=("ort-extended",),
        optimises=True,
        refuses=(NO_KERNEL,),
    ),
)
