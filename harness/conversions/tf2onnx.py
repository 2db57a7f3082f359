"""tf2onnx: from SavedModel, TFLite and Keras to ONNX."""

from __future__ import annotations

from harness.conversions.edge import Edge

_SAVED_MODEL = """
def convert(source, target):
    import sys

    import tf2onnx.convert

    sys.argv = ["tf2onnx.convert", "--saved-model", source, "--output", target, "--opset", "18"]
    tf2onnx.convert.main()
"""

_TFLITE = """
def convert(source, target):
    import tf2onnx.convert

    tf2onnx.convert.from_tflite(source, opset=18, output_path=target)
"""

_KERAS = """
def convert(source, target):
    import keras
    import tf2onnx.convert

    model = keras.saving.load_model(source, compile=False, safe_mode=not TRUST)
    tf2onnx.convert.from_keras(model, opset=18, output_path=target)
"""

_MODULES = ("tensorflow", "tf2onnx")
LEFT = (
    (r"INVALID_GRAPH .* No Op registered for (\w+)", "{} is left as it is"),
    (r"Type 'tensor\((complex\d+)\)' of input parameter .* of operator \((\w+)\)", "{1} of {0} is left as it is"),
)
"""It logs that it has no rule for an operator, and copies it; ONNX' operators have no complex dtypes."""
_PACKAGES = {"tf2onnx": "1.16", "tensorflow-cpu|tensorflow": "2.16", "onnx": "1.17"}

EDGES = (
    Edge("tf2onnx", "savedmodel", "onnx", _MODULES, _PACKAGES, _SAVED_MODEL, refuses=LEFT),
    Edge("tf2onnx-tflite", "tflite", "onnx", _MODULES, _PACKAGES, _TFLITE, refuses=LEFT),
    Edge("tf2onnx-keras", "keras", "onnx", _MODULES, _PACKAGES, _KERAS, refuses=LEFT),
)
