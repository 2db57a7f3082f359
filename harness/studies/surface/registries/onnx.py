"""ONNX: its operators' schemas."""

from __future__ import annotations

from harness.studies.surface.registry import Registry, Tracer

_FORMS = ("harness/conversions/helpers/onnx_forms.py", "harness/conversions/helpers/onnx_equals.py")
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
