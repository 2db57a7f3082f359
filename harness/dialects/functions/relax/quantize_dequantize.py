"""Quantisation that relax spellings may call. Read as text, like basic.py."""

import numpy as np
from tvm import relax


def quantize_dequantize(x, scale, zero_point, axis, dtype):
    """Both operators. scale: a number, or one for each place on the axis."""
    parts = relax.const(np.asarray(scale, "float32")), relax.const(np.full(np.shape(scale), zero_point, dtype))
    return relax.op.dequantize(relax.op.quantize(x, *parts, axis, dtype), *parts, axis, "float32")
