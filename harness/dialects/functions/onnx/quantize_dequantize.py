"""Quantisation that onnx spellings may call. Read as text, like basic.py."""

import numpy as np


def quantize_dequantize(g, x, scale, zero_point, axis, dtype, of="float32"):
    """The pair that quantisers write. scale: a number, or one for each place on the axis; of: its dtype."""
    if dtype.endswith("16"):
        g.opset = max(g.opset, 21)  # the first with such numbers
    parts = g.const(scale, of), g.const(np.full(np.shape(scale), zero_point), dtype)
    return g.op("DequantizeLinear", g.op("QuantizeLinear", x, *parts, axis=axis), *parts, axis=axis)
