"""The handlers of tf2onnx."""

from __future__ import annotations

from harness.studies.surface.registries.tensorflow import TRACER as TENSORFLOW
from harness.studies.surface.registries.tflite import TRACER as TFLITE
from harness.studies.surface.registry import Registry

_MODULES, _PACKAGES = ("tensorflow", "tf2onnx"), ("tf2onnx",)

REGISTRIES = (
    Registry("tf2onnx", ("tf2onnx",), _MODULES, _PACKAGES, TENSORFLOW, "tf-*", ("tf2onnx", "tf2onnx-keras")),
    Registry(
        "tf2onnx-tflite",
        ("tf2onnx", "tf2onnx_tflite"),
        (*_MODULES, "tflite"),
        _PACKAGES,
        TFLITE,
        "litert-*",
        ("tf2onnx-tflite",),
    ),
)
