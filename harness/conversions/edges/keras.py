"""Keras' own exporters."""

from __future__ import annotations

from harness.conversions.edges import openvino, tf2onnx, tflite
from harness.conversions.edges.edge import Edge
from harness.conversions.formats.savedmodel import NO_KERNEL

_EXPORT = f"""
def convert(source, target):
    import keras

{tflite.CALLED}\
    model.export(target, format={{format!r}}, verbose=False{{more}})
"""

_MODULES = ("tensorflow", "keras")
_PACKAGES = {"keras": "3.11", "tensorflow-cpu|tensorflow": "2.16"}

_INFINITIES = ", canonicalizing_inf_as_min_max_float=False"
"""Else the converter to TFLite replaces them on purpose."""

EDGES = tuple(
    Edge(
        name,
        "keras",
        target,
        _MODULES,
        {**_PACKAGES, **more},
        _EXPORT.format(format=format_, more=said),
        refuses=(*refuses, *NO_KERNEL),
    )
    for name, target, format_, more, said, refuses in (
        ("keras-savedmodel", "savedmodel", "tf_saved_model", {}, "", ()),
        ("keras-onnx", "onnx", "onnx", {"tf2onnx": "1.16"}, "", tf2onnx.LEFT),
        ("keras-openvino", "openvino", "openvino", {"openvino": "2025.0"}, "", openvino.SAYS),
        ("keras-litert", "tflite", "litert", {}, _INFINITIES, tflite.SELECT),
    )
)
