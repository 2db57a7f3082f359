"""The tests that come with onnx, run by our reference and by runners and conversions of ONNX."""
