"""What recordings are turned into before a network sees them: spectrograms on the mel scale and cepstral coefficients,
in float64. Definitions of the scale and its filters: S. Davis and P. Mermelstein 1980; the formulas are those of HTK
(Young et al., The HTK Book) and of Slaney's Auditory Toolbox (1998), which librosa and torchaudio offer by these
names."""

from __future__ import annotations

from typing import Literal

import numpy as np

Scale = Literal["htk", "slaney"]


def frames_of(samples: np.ndarray, window: int, hop: int, centre: bool, fft: int) -> np.ndarray:
    """(frames, window) of a signal, a new one every `hop` samples. centre: the signal is first mirrored at both ends by
    half of `fft`, so that frame i is around sample i * hop. A signal shorter than a window is one frame, with zeros at
    its end."""
    if centre and len(samples):
        half = fft // 2
        samples = np.pad(samples, half, "reflect" if len(samples) > half else "symmetric")
        # the window lies in the middle of `fft` samples
        samples = samples[(fft - window) // 2 :]
        samples = samples[: len(samples) - (fft - window - (fft - window) // 2)]
    if len(samples) < window:
        samples = np.pad(samples, (0, window - len(samples)))
    return np.lib.stride_tricks.sliding_window_view(samples, window)[::hop]


def power_spectrogram(frames: np.ndarray, fft: int, power: int) -> np.ndarray:
    """(fft // 2 + 1, frames): magnitudes of each frame's spectrum to a power, under a periodic Hann window."""
    window = frames.shape[1]
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(window) / window)
    return np.abs(np.fft.rfft(frames * hann, fft, axis=1)).T ** power


def mel_of(hertz: np.ndarray | float, scale: Scale) -> np.ndarray:
    """Hertz on the mel scale: 2595 log10(1 + f / 700) (htk), or linear up to 1000 Hz and logarithmic above (slaney)."""
    hertz = np.asarray(hertz, np.float64)
    if scale == "htk":
        return 2595 * np.log10(1 + hertz / 700)
    return np.where(hertz < 1000, hertz * 3 / 200, 15 + np.log(np.maximum(hertz, 1000) / 1000) * 27 / np.log(6.4))


def hertz_of(mel: np.ndarray, scale: Scale) -> np.ndarray:
    """The inverse of `mel_of`."""
    if scale == "htk":
        return 700 * (10 ** (mel / 2595) - 1)
    return np.where(mel < 15, mel * 200 / 3, 1000 * np.exp((np.maximum(mel, 15) - 15) * np.log(6.4) / 27))


def mel_filters(
    rate: float, fft: int, bins: int, low: float, high: float, scale: Scale, normalised: bool
) -> np.ndarray:
    """(bins, fft // 2 + 1): triangles over the frequencies of a spectrum, whose corners lie evenly on the mel scale
    from `low` to `high` hertz. normalised: each has area 1 over hertz (Slaney's), not height 1."""
    corners = hertz_of(np.linspace(mel_of(low, scale), mel_of(high, scale), bins + 2), scale)
    frequencies = np.fft.rfftfreq(fft, 1 / rate)
    widths = np.diff(corners)[:, None]
    rising = (frequencies - corners[:-2, None]) / widths[:-1]
    falling = (corners[2:, None] - frequencies) / widths[1:]
    filters = np.maximum(0, np.minimum(rising, falling))
    return filters * (2 / (corners[2:] - corners[:-2]))[:, None] if normalised else filters


def cosine_coefficients(values: np.ndarray, count: int) -> np.ndarray:
    """(count, frames) of (bins, frames): the first coefficients of the orthonormal discrete cosine transform of type II
    along the bins."""
    bins = len(values)
    basis = np.cos(np.pi / bins * np.arange(count)[:, None] * (np.arange(bins) + 0.5)) * np.sqrt(2 / bins)
    basis[0] /= np.sqrt(2)
    return basis @ values
