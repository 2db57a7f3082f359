"""TFLite: its builtin operators, and the map of TVM's importer of them."""

from __future__ import annotations

from harness.studies.surface.registry import Registry, Tracer

TRACER = Tracer("tflite", "litert-builtin", ("tensorflow", "tflite"), ("tensorflow-cpu|tensorflow", "tflite"), every=20)

REGISTRIES = (
    Registry(
        "tflite", ("tflite",), TRACER.modules, TRACER.packages, TRACER, "litert-*", ("tf2onnx-tflite", "tvm-tflite")
    ),
    Registry(
        "tvm-tflite",
        ("importer_tflite",),
        ("tvm", "tvm.relax"),
        ("apache-tvm",),
        TRACER,
        "tvm-*",
        ("tvm-tflite",),
    ),
)
