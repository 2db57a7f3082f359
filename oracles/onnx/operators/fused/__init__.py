"""Operators that ONNX Runtime makes of several."""
