"""ONNX Runtime's quantisers and operators."""
