"""ONNX operators in float64, by the rules of each opset version."""
