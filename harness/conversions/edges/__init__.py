"""The conversions between formats of model files: one file a tool. To add one, write its file and name it here."""

from __future__ import annotations

from harness.conversions.edges import (
    jax,
    keras,
    litert_torch,
    onnx,
    onnx2tf,
    onnx2torch,
    openvino,
    tf2onnx,
    tflite,
    torch,
    tvm,
)
from harness.conversions.edges.edge import Edge

EDGES: dict[str, Edge] = {
    edge.name: edge
    for module in (torch, tf2onnx, keras, tflite, jax, onnx, onnx2torch, onnx2tf, litert_torch, openvino, tvm)
    for edge in module.EDGES
}

__all__ = ["EDGES", "Edge"]
