"""Recordings as inputs: decoded in a worker, which is confined where the model's are, since decoders are native code;
then resampled, cut and turned into features."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np

from harness.conversions.model_file import FormatError, why_not
from harness.execute.pool import Job, Pool
from harness.models.given import spectra
from oracles.judge.outcome import Value

SUFFIXES = (".wav", ".flac", ".ogg", ".mp3")
LONGEST = 1 << 26
"""Samples of all channels of a recording: half an hour in stereo at 16,000 a second."""
FASTEST = 1 << 20
"""Samples a second."""
WIDEST = 1 << 16
"""Samples of a window."""
MOST_BINS = 1 << 10
LARGEST = 1 << 28
"""Numbers of a spectrogram before they are put into bins: 2 GiB."""

_PROGRAM = """import numpy as np
import soundfile

PATH, LONGEST = {path!r}, {longest}
INPUTS, PARAMETERS = [], []


def load(parameters):
    def run():
        with soundfile.SoundFile(PATH) as file:
            if file.frames * file.channels > LONGEST:
                raise ValueError(f"{{file.frames}} samples of {{file.channels}} channels are too many")
            samples = file.read(LONGEST // file.channels, dtype="float64", always_2d=True)
            return [samples, np.array(file.samplerate)]

    return run
"""


@dataclass(frozen=True)
class AudioPreprocessing:
    """How a recording becomes arrays. Its channels are averaged. rate: samples a second that the model takes, to which
    others are resampled; samples: each set of inputs is so many of them, the last one padded with zeros (0: a recording
    is one set); scale: what a sample (-1 to 1) is multiplied with; preemphasis: y[t] = x[t] - p x[t - 1]; features: the
    samples themselves, a spectrogram, one on the mel scale, or cepstral coefficients of its logarithm. window, hop:
    samples of a frame, and from one to the next; fft: points of the transform (0: the least power of two that holds a
    window); centre: the signal is mirrored at its ends, so that frame i is around sample i * hop; power: of magnitudes;
    bins, low, high, mel, normalised: of mel filters, in hertz (high 0: half of the rate); logarithm: of values of at
    least `floor`; coefficients: of the cosine transform, for mfcc; standardise: mean 0 and standard deviation 1 over
    the recording or for each bin; mean, std: subtracted and divided by last; layout; dtype: of the array; constants: by
    name, what the model's other inputs are filled with: a number, or the number of "samples" or "frames"."""

    rate: int
    samples: int = 0
    scale: float = 1.0
    preemphasis: float = 0.0
    features: Literal["waveform", "spectrogram", "mel", "mfcc"] = "waveform"
    window: int = 400
    hop: int = 160
    fft: int = 0
    centre: bool = True
    power: Literal[1, 2] = 2
    bins: int = 80
    low: float = 0.0
    high: float = 0.0
    mel: Literal["htk", "slaney"] = "htk"
    normalised: bool = False
    logarithm: Literal["none", "natural", "decimal", "decibel"] = "natural"
    floor: float = 1e-10
    coefficients: int = 13
    standardise: Literal["none", "recording", "bin"] = "none"
    mean: float = 0.0
    std: float = 1.0
    layout: Literal["bins-frames", "frames-bins"] = "bins-frames"
    dtype: Literal["float32", "float64", "float16", "int16"] = "float32"
    constants: Mapping[str, float | Literal["samples", "frames"]] = field(default_factory=dict)

    def wrong(self) -> str | None:
        """The first key whose value cannot be."""
        half = self.rate / 2
        checks = {
            "rate": 0 < self.rate <= FASTEST,
            "samples": 0 <= self.samples <= LONGEST,
            "window": 0 < self.window <= WIDEST,
            "hop": 0 < self.hop <= WIDEST,
            "fft": self.fft == 0 or self.window <= self.fft <= WIDEST,
            "bins": 0 < self.bins <= MOST_BINS,
            "low": 0 <= self.low < (self.high or half),
            "high": 0 <= self.high <= half,
            "floor": self.floor > 0,
            "coefficients": 0 < self.coefficients <= self.bins,
            "std": self.std != 0,
        }
        return next((key for key, right in checks.items() if not right), None)

    @property
    def points(self) -> int:
        """Of the Fourier transform."""
        return self.fft or 1 << (self.window - 1).bit_length()


def recordings_of(pool: Pool, paths: list[Path], rate: int) -> list[np.ndarray]:
    """Each recording as float64 samples from -1 to 1 at this rate, its channels averaged. Raises FormatError."""
    texts = [_PROGRAM.format(path=str(path.resolve()), longest=LONGEST) for path in paths]
    jobs = [Job("audio", ("soundfile",), text, {}, reads=(path,)) for text, path in zip(texts, paths, strict=True)]
    found = []
    for path, outcome in zip(paths, pool.run(jobs, confirm=False), strict=True):
        if not isinstance(outcome, Value):
            raise FormatError(f"cannot read {path} as a recording: {why_not(outcome)}")
        samples, own = np.asarray(outcome.outputs[0]), int(np.asarray(outcome.outputs[1]))
        if not samples.size:
            raise FormatError(f"{path} holds no samples")
        if not 0 < own <= FASTEST:
            raise FormatError(f"{path}: {own} samples a second")
        if len(samples) * rate > LONGEST * own:
            raise FormatError(f"{path}: {len(samples)} samples at {own} a second are too many at {rate}")
        found.append(resampled(samples.mean(axis=1), own, rate))
    return found


def resampled(samples: np.ndarray, own: int, wanted: int) -> np.ndarray:
    """A signal of `own` samples a second at `wanted` a second, by SciPy's polyphase filter."""
    common = np.gcd(own, wanted)
    if own == wanted:
        return samples
    from scipy.signal import resample_poly  # takes as long to import as all else of a report

    return resample_poly(samples, wanted // common, own // common)


def prepared(samples: np.ndarray, how: AudioPreprocessing) -> Iterator[tuple[np.ndarray, dict[str, float]]]:
    """Each set of a recording: its array without a batch, and what the other inputs are filled with. samples: float64,
    one dimension."""
    size = how.samples or len(samples)
    for start in range(0, len(samples), size):
        part = samples[start : start + size]
        array = _features(np.pad(part, (0, size - len(part))), how)
        frames = 1 if array.ndim == 1 else array.shape[how.layout == "bins-frames"]
        counted = {"samples": float(len(part)), "frames": float(frames)}
        yield array, {n: counted[value] if isinstance(value, str) else value for n, value in how.constants.items()}


def _features(samples: np.ndarray, how: AudioPreprocessing) -> np.ndarray:
    values = samples * how.scale
    if how.preemphasis:
        values = values - how.preemphasis * np.concatenate([values[:1], values[:-1]])
    if how.features != "waveform":
        frames = spectra.frames_of(values, how.window, how.hop, how.centre, how.points)
        if len(frames) * how.points > LARGEST:
            raise FormatError(f"{len(samples)} samples are {len(frames)} frames of {how.points} points: too many")
        values = spectra.power_spectrogram(frames, how.points, how.power)
        if how.features != "spectrogram":
            high = how.high or how.rate / 2
            values = (
                spectra.mel_filters(how.rate, how.points, how.bins, how.low, high, how.mel, how.normalised) @ values
            )
        values = _logarithm(values, how)
        if how.features == "mfcc":
            values = spectra.cosine_coefficients(values, how.coefficients)
    if how.standardise != "none":
        axis = -1 if how.standardise == "bin" else None
        spread = values.std(axis=axis, keepdims=True)
        values = (values - values.mean(axis=axis, keepdims=True)) / np.where(spread == 0, 1, spread)
    values = (values - how.mean) / how.std
    if values.ndim == 2 and how.layout == "frames-bins":
        values = values.T
    if how.dtype == "int16":
        values = np.clip(np.rint(values), -(1 << 15), (1 << 15) - 1)
    return np.ascontiguousarray(values.astype(how.dtype))


def _logarithm(values: np.ndarray, how: AudioPreprocessing) -> np.ndarray:
    if how.logarithm == "none":
        return values
    values = np.maximum(values, how.floor)
    if how.logarithm == "natural":
        return np.log(values)
    return np.log10(values) * (10 * (3 - how.power) if how.logarithm == "decibel" else 1)
