"""TensorFlow: its register of raw operators."""

from __future__ import annotations

from harness.studies.surface.registry import Registry, Tracer

TRACER = Tracer("tensorflow", "tf-graph", ("tensorflow",), ("tensorflow-cpu|tensorflow",), every=2)

REGISTRIES = (
    Registry(
        "tensorflow",
        ("tensorflow",),
        TRACER.modules,
        TRACER.packages,
        TRACER,
        "tf-*",
        ("tf2onnx", "tflite", "openvino-savedmodel"),
    ),
)
