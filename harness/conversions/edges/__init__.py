"""The conversions between formats of model files: one file a tool, with a tuple `EDGES`. To add one, write its file."""

from __future__ import annotations

from generators.discovery import collected
from harness.conversions.edges.edge import Edge

_FIRST = (
    "torch",
    "tf2onnx",
    "keras",
    "tflite",
    "jax",
    "onnx",
    "onnx_forms",
    "onnx2torch",
    "onnx2tf",
    "litert_torch",
    "openvino",
    "tvm",
)
EDGES: dict[str, Edge] = collected(__name__, "EDGES", _FIRST)
"""By name. What is not named in _FIRST comes after it, in alphabetical order of the files."""

__all__ = ["EDGES", "Edge"]
