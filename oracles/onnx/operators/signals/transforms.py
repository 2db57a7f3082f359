"""Fourier transforms, windows and mel filters."""

from __future__ import annotations

import numpy as np

from oracles.onnx.kinds import dtype_of
from oracles.onnx.operators.arguments import integer, positive, refuse
from oracles.onnx.rule import Call, Rule, Value


def _complex(call: Call, x: np.ndarray) -> np.ndarray:
    """What the last axis of one or two numbers stands for."""
    if x.shape[-1] not in (1, 2):
        raise refuse(call, f"numbers of {x.shape[-1]} parts")
    return x[..., 0] + 1j * x[..., 1] if x.shape[-1] == 2 else x[..., 0].astype(np.complex128)


def _pairs(x: np.ndarray) -> np.ndarray:
    return np.stack([np.real(x), np.imag(x)], -1)


def _fitted(x: np.ndarray, length: int, axis: int) -> np.ndarray:
    """Cut or filled with zeros at the end."""
    x = np.take(x, np.arange(min(length, x.shape[axis])), axis)
    pads = [(0, 0)] * x.ndim
    pads[axis] = (0, length - x.shape[axis])
    return np.pad(x, pads)


def _dft(call: Call) -> list[Value]:
    """The axis is an attribute, 1 if not stated, before version 20, then an input, -2 if absent."""
    x = call.input(0)
    stated = call.get("axis", 1) if call.version < 20 else -2 if call.input(2) is None else integer(call.input(2))
    axis = positive(stated, x.ndim)
    if axis == x.ndim - 1:
        raise refuse(call, "the axis of real and imaginary parts")
    inverse, onesided = bool(call.get("inverse", 0)), bool(call.get("onesided", 0))
    values = _complex(call, x)
    length = None if call.input(1) is None else integer(call.input(1))
    if onesided and inverse:
        if x.shape[-1] != 2:
            raise refuse(call, "the real inverse of what is not complex")
        length = 2 * (x.shape[axis] - 1) if length is None else length
        return [np.fft.irfft(values, length, axis)[..., None]]
    if onesided and x.shape[-1] != 1:
        raise refuse(call, "one side of the transform of complex numbers")
    length = x.shape[axis] if length is None else length
    values = _fitted(values, length, axis)
    result = np.fft.ifft(values, axis=axis) if inverse else np.fft.fft(values, axis=axis)
    return [_pairs(np.take(result, np.arange(length // 2 + 1), axis) if onesided else result)]


def _stft(call: Call) -> list[Value]:
    """The transform of each frame times the window. Exports have real signals of rank 2, too, without the last
    dimension of 1 that the text asks for; ONNX Runtime takes them."""
    signal, step, window = call.input(0), integer(call.input(1)), call.input(2)
    if signal.ndim == 2:
        signal = signal[..., None]
    length = None if call.input(3) is None else integer(call.input(3))
    if length is None:
        length = signal.shape[1] if window is None else len(window)
    if window is not None and len(window) != length:
        raise refuse(call, f"a window of {len(window)} for frames of {length}")
    onesided = bool(call.get("onesided", 1))
    if onesided and signal.shape[-1] != 1:
        raise refuse(call, "one side of the transform of complex numbers")
    values = _complex(call, signal)
    starts = np.arange((signal.shape[1] - length) // step + 1) * step
    frames = values[:, starts[:, None] + np.arange(length)]
    result = np.fft.fft(frames if window is None else frames * window, axis=-1)
    return [_pairs(result[..., : length // 2 + 1] if onesided else result)]


def _window(*terms: float) -> Rule:
    """A sum of cosines, over size elements where it is periodic and over size - 1 where it is symmetric."""

    def rule(call: Call) -> list[Value]:
        size, kind = integer(call.input(0)), call.get("output_datatype", 1)
        span = size if call.get("periodic", 1) else size - 1
        if size > 0 and not span:
            raise refuse(call, "a symmetric window of one element, 0 / 0 in the text")
        angle = 2 * np.pi * np.arange(size) / span if size else np.zeros(0)
        parts = [term * np.cos(number * angle) for number, term in enumerate(terms)]
        return [np.sum(parts, 0).astype(dtype_of(kind))]

    return rule


def _mel(call: Call) -> list[Value]:
    """Triangles between neighbouring of bins + 2 frequencies, which are even on the mel scale and are cut to whole
    places of the spectrum; the text has no more than the scale and the peak, so the places are those of the package's
    reference implementation (onnx/reference/ops/op_mel_weight_matrix.py)."""
    bins, length, rate = (integer(call.input(place)) for place in range(3))
    low, high = (float(np.ravel(call.input(place))[0]) for place in (3, 4))
    kind = call.get("output_datatype", 1)
    count = length // 2 + 1
    mel = 2595 * np.log10(1 + np.array([low, high]) / 700)
    step = (mel[1] - mel[0]) / (bins + 2)
    hertz = 700 * (10 ** ((mel[0] + np.arange(bins + 2) * step) / 2595) - 1)
    exact = (length + 1) * hertz / rate
    places = np.floor(exact).astype(np.int64)
    if (np.abs(exact - np.rint(exact)) < 1e-5 * np.maximum(1, exact))[1:].any():
        raise refuse(call, "a frequency that lies on the edge of a place of the spectrum")
    result = np.zeros((count, bins))
    for number in range(bins):
        first, middle, last = places[number : number + 3]
        rising, falling = np.arange(first, middle + 1), np.arange(middle, last)
        if first == middle:
            result[middle, number] = 1
        else:
            result[rising, number] = (rising - first) / (middle - first)
        if middle < last:
            result[falling, number] = (last - falling) / (last - middle)
    return [result.astype(dtype_of(kind))]


RULES = {
    "BlackmanWindow": _window(0.42, -0.5, 0.08),
    "DFT": _dft,
    "HammingWindow": _window(25 / 46, -21 / 46),
    "HannWindow": _window(0.5, -0.5),
    "MelWeightMatrix": _mel,
    "STFT": _stft,
}
