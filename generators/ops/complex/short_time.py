"""Fourier transforms of pieces of a signal, each by a window: the pieces begin a step apart."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from generators.bounds.bounded import Bounded, multiply
from generators.graph import TensorType
from generators.ops.complex.fourier_pairs import pairs_of, transformed
from generators.ops.slots import draw_dim, draw_dtype, flag, int_of
from generators.ops.spec import Attrs, Call, Draw, OpSpec, Slot, TypeRuleError, Types, unsupported

_DTYPES = ("float32", "float64", "float16")


def _signals(d: Draw, earlier: Types) -> TensorType:
    return TensorType(draw_dtype(d, _DTYPES), (d.choice((1, 2, 3)), 4 + draw_dim(d, 33, zero=False)))


def _windows(d: Draw, earlier: Types) -> TensorType:
    length = earlier[0].shape[1]
    return TensorType(earlier[0].dtype, (d.choice(tuple(n for n in (4, 8, 2, 5, 16, length) if n <= length)),))


_SIGNALS = Slot(lambda t, earlier: t.dtype in _DTYPES and t.rank == 2 and 4 < t.shape[1] <= 64 and t.size > 0, _signals)
_WINDOW = Slot(
    lambda t, earlier: t.dtype == earlier[0].dtype and t.rank == 1 and 2 <= t.size <= earlier[0].shape[1], _windows
)


def _type(operands: Types, attrs: Attrs) -> TensorType:
    x, window = operands
    step = int_of(attrs, "step")
    if not _SIGNALS.accepts(x, ()) or not _WINDOW.accepts(window, operands) or step < 1:
        raise TypeRuleError(f"no pieces of {x} by {window}, {step} apart")
    bins = window.size // 2 + 1 if attrs["onesided"] else window.size
    return TensorType(x.dtype, (x.shape[0], (x.shape[1] - window.size) // step + 1, bins, 2))


def _short_time(args: Sequence[Bounded], call: Call) -> Bounded:
    x, window = args
    n, step = window.value.size, int_of(call.attrs, "step")
    first = np.arange(call.result.shape[1]) * step
    pieces = multiply(x.map(lambda a: a[:, first[:, None] + np.arange(n)]), window)
    f = np.fft.rfft if call.attrs["onesided"] else np.fft.fft
    return transformed(pieces, lambda a: pairs_of(f(a)), (-1,), n, 1.0)


def _torch(call: Call) -> str:
    return (
        f"torch.view_as_real(torch.stft({{0}}, {call.operands[1].size}, {{step}}, window={{1}}, center=False, "
        "onesided={onesided}, return_complex=True)).transpose(1, 2)"
    )


OPERATORS: tuple[OpSpec, ...] = (
    OpSpec(
        "short_time_fourier", "fft", (_SIGNALS, _WINDOW), _type, _short_time,
        attrs={"step": lambda d, operands, attrs: d.choice((2, 1, 3, 7)), "onesided": flag()},
        torch=_torch, tensorflow="short_time({0}, {1}, {step}, {onesided})",
        jax="short_time({0}, {1}, {step}, {onesided})",
        relax=unsupported("it has no transform of pieces"),
        onnx='g.op("STFT", g.op("Unsqueeze", {0}, g.const([-1], "int64")), g.const({step}, "int64"), {1}, '
        "onesided=int({onesided}))",
    ),
)  # fmt: skip
