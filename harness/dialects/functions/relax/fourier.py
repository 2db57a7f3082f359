"""Fourier transforms that relax spellings may call: products with their matrices. Read as text, as basic.py
is."""

import numpy as np
from tvm import relax


def complex_of(x):
    return x[..., 0] + 1j * x[..., 1]


def pairs_of(y):
    return np.stack([y.real, y.imag], axis=-1)


def transformed(bb, x, f, shape, axes, dtype):
    """f, which is linear, over the last axes: its matrix is what it makes of the unit vectors."""
    batch, inner = shape[: len(shape) - axes], shape[len(shape) - axes :]
    n = int(np.prod(inner))
    units = f(np.eye(n).reshape(n, *inner))
    rows = bb.emit(relax.op.reshape(x, (*batch, n)))
    y = bb.emit(relax.op.matmul(rows, relax.const(units.reshape(n, -1).astype(dtype), dtype)))
    return relax.op.reshape(y, (*batch, *units.shape[1:]))
