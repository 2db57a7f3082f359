"""Products and convolutions of quantised tensors, in whole numbers."""

from __future__ import annotations

import numpy as np

from oracles.onnx.kinds import kind_of
from oracles.onnx.operators.arguments import along, refuse
from oracles.onnx.operators.nn.convolutions import convolve
from oracles.onnx.operators.nn.windows import windows_of
from oracles.onnx.operators.quantised.linear import quantised, whole
from oracles.onnx.rule import Call, Value


def by_row(values: np.ndarray) -> np.ndarray:
    """Scales or zero points of the rows of a matrix."""
    return values.reshape(()) if values.size == 1 else values[:, None] if values.ndim == 1 else values


def by_column(values: np.ndarray) -> np.ndarray:
    """Those of its columns."""
    return values.reshape(()) if values.size == 1 else values


def moved(x: np.ndarray, zero: np.ndarray | None) -> np.ndarray:
    """Quantised values less a zero point that is broadcast already."""
    return whole(x) if zero is None else whole(x) - whole(zero)


def product(a: np.ndarray, b: np.ndarray, a_zero: np.ndarray | None, b_zero: np.ndarray | None) -> np.ndarray:
    """The matrix product of what the whole numbers stand for but for scales."""
    left = moved(a, None if a_zero is None else by_row(a_zero))
    return np.matmul(left, moved(b, None if b_zero is None else by_column(b_zero)))


def _matmul_integer(call: Call) -> list[Value]:
    """Wraps in 32 bits."""
    a, b, a_zero, b_zero = (call.input(place) for place in range(4))
    return [np.asarray(product(a, b, a_zero, b_zero)).astype(np.int32)]


def _linear_matmul(call: Call) -> list[Value]:
    a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero = (call.input(place) for place in range(8))
    total = np.asarray(product(a, b, a_zero, b_zero))
    quotient = total * by_row(a_scale) * by_column(b_scale) / y_scale
    return [quantised(call, quotient, y_zero, kind_of(y_zero))]


def _sums(call: Call, x: np.ndarray, w: np.ndarray, x_zero: np.ndarray | None, w_zero: np.ndarray | None) -> np.ndarray:
    """A convolution of whole numbers; padding stands for zero."""
    left = moved(x, None if x_zero is None else x_zero.reshape(()))
    if w_zero is not None:
        w_zero = along(w_zero, w.ndim, 0) if w_zero.size > 1 else w_zero.reshape(())
    windows = windows_of(call, x.shape[2:], w.shape[2:])
    return convolve(left, moved(w, w_zero), windows, call.get("group", 1))


def _conv_integer(call: Call) -> list[Value]:
    """Wraps in 32 bits."""
    x, w, x_zero, w_zero = (call.input(place) for place in range(4))
    return [_sums(call, x, w, x_zero, w_zero).astype(np.int32)]


def _linear_conv(call: Call) -> list[Value]:
    """The bias is quantised by the product of both scales."""
    x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias = (call.input(place) for place in range(9))
    if call.get("channels_last", 0):
        raise refuse(call, "channels in the last place")
    total = _sums(call, x, w, x_zero, w_zero)
    if bias is not None:
        total = total + along(bias.astype(np.int64), total.ndim)
    scale = along(w_scale, total.ndim) if w_scale.size > 1 else w_scale.reshape(())
    return [quantised(call, total * (x_scale.reshape(()) * scale) / y_scale.reshape(()), y_zero, kind_of(y_zero))]


RULES = {
    "ConvInteger": _conv_integer,
    "MatMulInteger": _matmul_integer,
    "QLinearConv": _linear_conv,
    "QLinearMatMul": _linear_matmul,
    "com.microsoft:QLinearConv": _linear_conv,
}
