"""Fourier transforms that onnx spellings may call. Read as text, as basic.py is."""

import numpy as np
import onnx


def normed(g, y, n, norm, inverse, dtype):
    """ONNX divides by n in inverse transforms only."""
    power = {"backward": 0, "ortho": 0.5, "forward": 1}[norm]
    return g.op("Mul", y, g.const(float(n) ** (power if inverse else -power), dtype)) if power else y


def rfft(g, x, size, norm, dtype):
    column = g.op("Unsqueeze", x, g.const([-1], "int64"))
    y = g.op("DFT", column, g.const(size, "int64"), onesided=1)
    return normed(g, y, size, norm, False, dtype)


def irfft(g, x, size, norm, dtype):
    y = g.op("DFT", x, g.const(size, "int64"), onesided=1, inverse=1)
    return normed(g, g.op("Squeeze", y, g.const([-1], "int64")), size, norm, True, dtype)


def transformed(g, x, inverse, shape, axes, norm, dtype):
    for axis in range(-axes - 1, -1):
        x = g.op("DFT", x, None, g.const(axis, "int64"), inverse=int(inverse))
    return normed(g, x, int(np.prod(shape[-axes - 1 : -1])), norm, inverse, dtype)
