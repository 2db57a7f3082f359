"""OpenVINO's converter from ONNX, SavedModel, TFLite and torch.export to its own representation."""

from __future__ import annotations

from harness.conversions.edge import Edge
from harness.formats.pt2 import LOAD

_CONVERT = """
def convert(source, target):
    import openvino

    openvino.save_model(openvino.convert_model(source), target, compress_to_fp16=False)
"""

_TORCH = (
    LOAD
    + """

def convert(source, target):
    import openvino

    openvino.save_model(openvino.convert_model(exported_program(source)), target, compress_to_fp16=False)
"""
)

SAYS = (
    (r"No conversion rule found for operations: ([^\n]+)", "no rule for {}"),
    (r"No translator found for (\w+) node", "no translation of {}"),
    (r"Unsupported padding mode: \[(\w+)\]", "no padding by {}"),
    (r"does not support ([^\n]{1,120})", "it does not support {}"),
    (r"Unsupported operation of type: (\w+)(?:.*\n){1,9}Not Implemented:", "no kernel for {}"),
)
_PACKAGES = {"openvino": "2025.0"}

EDGES = (
    *(
        Edge(f"openvino-{format_}", format_, "openvino", ("openvino",), _PACKAGES, _CONVERT, refuses=SAYS)
        for format_ in ("onnx", "savedmodel", "tflite")
    ),
    Edge("openvino-pt2", "pt2", "openvino", ("openvino", "torch"), {**_PACKAGES, "torch": "2.9"}, _TORCH, refuses=SAYS),
)
