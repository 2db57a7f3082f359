"""ONNX: its operators' schemas."""

from __future__ import annotations

from harness.studies.surface.registry import Registry, Tracer

_FORMS = tuple(
    f"harness/conversions/helpers/onnx_{name}.py" for name in ("forms", "equals", "around", "constants", "opsets")
)
TRACER = Tracer("onnx", "ort-all", ("onnx",), ("onnx",), helpers=_FORMS, needs="Builder")

REGISTRIES = (
    Registry(
        "onnx",
        (*_FORMS, "onnx"),
        ("onnx", "onnxruntime"),
        ("onnx", "onnxruntime"),
        TRACER,
        "ort-*,openvino,iree-*",
        ("onnx2torch", "onnx2tf", "openvino-onnx", "tvm-onnx"),
    ),
)
