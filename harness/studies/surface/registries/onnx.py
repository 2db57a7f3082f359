"""ONNX: its operators' schemas."""

from __future__ import annotations

from harness.studies.surface.registry import Registry, Tracer

_FORMS = ("harness/conversions/helpers/onnx_forms.py",)
TRACER = Tracer("onnx", "ort-all", ("onnx",), ("onnx",), helpers=_FORMS, needs="Builder")

REGISTRIES = (
    Registry(
        "onnx",
        ("onnx",),
        TRACER.modules,
        TRACER.packages,
        TRACER,
        "ort-*,openvino,iree-*",
        ("onnx2torch", "onnx2tf", "openvino-onnx", "tvm-onnx"),
    ),
)
