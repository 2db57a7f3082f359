"""Recordings as inputs: decoded in a worker, resampled, cut and turned into features as a file says."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile
from scipy import fft, signal

from harness.conversions.model_file import FormatError, Port
from harness.execute.pool import Limits, Pool
from harness.models.given import spectra
from harness.models.given.audio import AudioPreprocessing, prepared, recordings_of, resampled
from harness.models.given.media import classes_of, read_folder, read_preprocessing

RNG = np.random.default_rng(3)
RATE = 16_000
NOISE = RNG.uniform(-0.5, 0.5, 4000)
MEL = AudioPreprocessing(RATE, features="mel", bins=40, fft=512)


def features(how: AudioPreprocessing, samples: np.ndarray = NOISE) -> np.ndarray:
    """Of a recording that is one set, in float64."""
    ((array, _),) = prepared(samples, replace(how, dtype="float64"))
    return array


def test_a_recording_is_decoded_averaged_and_resampled(tmp_path: Path) -> None:
    """A tone of 440 Hz in stereo, once in each format, keeps its frequency and amplitude."""
    time = np.arange(44_100) / 44_100
    tone = 0.5 * np.sin(2 * np.pi * 440 * time)
    for name in ("a.wav", "b.flac", "c.ogg"):
        soundfile.write(tmp_path / name, np.stack([1.5 * tone, 0.5 * tone], axis=1), 44_100)
    with Pool() as pool:
        found = recordings_of(pool, sorted(tmp_path.iterdir()), RATE)
    for samples in found:
        inner = samples[2000:14_000]
        wanted = 0.5 * np.sin(2 * np.pi * 440 * np.arange(len(samples)) / RATE)[2000:14_000]
        assert len(samples) == RATE
        assert np.abs(inner - wanted).max() < 0.02
    assert resampled(NOISE, RATE, RATE) is NOISE


def test_files_that_are_no_recordings(tmp_path: Path) -> None:
    """A text, nothing, and a header that says to hold more samples than any recording may."""
    soundfile.write(tmp_path / "good.wav", NOISE, RATE)
    (tmp_path / "text.wav").write_text("text")
    soundfile.write(tmp_path / "none.wav", NOISE[:0], RATE)
    soundfile.write(tmp_path / "slow.wav", NOISE, 1)
    bomb = bytearray()
    soundfile.write(tmp_path / "long.flac", np.zeros((1 << 24, 5)), RATE)
    bomb += (tmp_path / "long.flac").read_bytes()
    with Pool(Limits(seconds=20.0, memory=1 << 30)) as pool:
        assert len(recordings_of(pool, [tmp_path / "good.wav"], RATE)[0]) == len(NOISE)
        for name, told in (
            ("text.wav", "cannot read .*text.wav as a recording: .*Format not recognised"),
            ("none.wav", "none.wav holds no samples"),
            ("slow.wav", "slow.wav: 4000 samples at 1 a second are too many at 1048576"),
            ("long.flac", "cannot read .*long.flac as a recording: .*samples of 5 channels are too many"),
        ):
            with pytest.raises(FormatError, match=told):
                recordings_of(pool, [tmp_path / name], 1 << 20 if name == "slow.wav" else RATE)


def test_a_spectrogram_is_that_of_scipy() -> None:
    """scipy.signal.stft pads and scales otherwise: its values are those of a window with sum 1."""
    how = AudioPreprocessing(RATE, features="spectrogram", window=400, hop=100, fft=512, logarithm="none", power=1)
    window = np.asarray(signal.get_window("hann", 400))
    plan = signal.ShortTimeFFT(window, 100, RATE, mfft=512)
    wanted = np.abs(plan.stft(NOISE))[:, -plan.p_min :]  # its slice p is around sample 100 p
    found = features(how)
    inner = slice(3, 35)  # away from the ends, which are mirrored here
    assert np.allclose(found[:, inner], wanted[:, inner], rtol=1e-10, atol=1e-12)


def test_frames_without_centre_begin_with_the_first_sample() -> None:
    frames = spectra.frames_of(np.arange(10.0), 4, 3, False, 8)
    assert frames.tolist() == [[0, 1, 2, 3], [3, 4, 5, 6], [6, 7, 8, 9]]
    assert spectra.frames_of(np.arange(2.0), 4, 3, False, 8).tolist() == [[0, 1, 0, 0]]


def test_a_centred_frame_is_around_its_sample() -> None:
    """An impulse at sample 6 is in the middle of frame 2; the window of 4 lies in the middle of 8 points."""
    frames = spectra.frames_of(np.eye(20)[6], 4, 3, True, 8)
    assert len(frames) == 1 + 20 // 3
    assert frames[2].tolist() == [0, 0, 1, 0]


def test_the_mel_scale() -> None:
    """1000 Hz is 1000 mel to a thousandth (htk), and 15 (slaney); 6400 Hz is 27 steps further on the latter."""
    assert np.isclose(spectra.mel_of(1000.0, "htk"), 999.9855, atol=1e-3)
    assert spectra.mel_of(1000.0, "slaney") == 15
    assert np.isclose(spectra.mel_of(6400.0, "slaney"), 42)
    hertz = np.linspace(0, 8000, 97)
    for scale in ("htk", "slaney"):
        assert np.allclose(spectra.hertz_of(spectra.mel_of(hertz, scale), scale), hertz)


@pytest.mark.parametrize("scale", ["htk", "slaney"])
def test_filters_are_triangles_between_their_neighbours(scale: spectra.Scale) -> None:
    """Written once more with loops; with height 1 they add up to 1 between the first and the last centre."""
    filters = spectra.mel_filters(RATE, 512, 10, 100, 7000, scale, False)
    low, high = (float(spectra.mel_of(f, scale)) for f in (100.0, 7000.0))
    corners = [float(spectra.hertz_of(np.array(low + (high - low) * i / 11), scale)) for i in range(12)]
    for row, (left, middle, right) in zip(filters, zip(corners, corners[1:], corners[2:], strict=False), strict=True):
        for column, value in enumerate(row):
            f = column * RATE / 512
            wanted = (f - left) / (middle - left) if f <= middle else (right - f) / (right - middle)
            assert np.isclose(value, max(0.0, wanted), atol=1e-12)
    between = [column for column in range(257) if corners[1] <= column * RATE / 512 <= corners[-2]]
    assert np.allclose(filters[:, between].sum(0), 1)
    areas = spectra.mel_filters(RATE, 1 << 16, 10, 100, 7000, scale, True).sum(1) * RATE / (1 << 16)
    assert np.allclose(areas, 1, atol=1e-3)


def test_coefficients_are_those_of_scipys_transform() -> None:
    mel = features(MEL)
    found = features(replace(MEL, features="mfcc", coefficients=13))
    assert np.allclose(found, np.asarray(fft.dct(mel, type=2, norm="ortho", axis=0))[:13], atol=1e-10)


def test_each_key_does_what_it_says() -> None:
    mel = features(replace(MEL, logarithm="none"))
    assert (mel > 0).all()
    assert np.allclose(features(MEL), np.log(mel))
    assert np.allclose(features(replace(MEL, logarithm="decibel")), 10 * np.log10(mel))
    assert np.allclose(features(replace(MEL, logarithm="decimal", layout="frames-bins")), np.log10(mel).T)
    assert features(replace(MEL, floor=1e3)).min() == np.log(1e3)
    magnitudes = features(replace(MEL, logarithm="decibel", power=1))
    assert np.allclose(magnitudes, 20 * np.log10(features(replace(MEL, logarithm="none", power=1))))
    bins = features(replace(MEL, standardise="bin"))
    assert np.allclose([bins.mean(1), bins.std(1) - 1], 0, atol=1e-10)
    whole = features(replace(MEL, standardise="recording", mean=1.0, std=2.0))
    assert np.allclose([whole.mean(), whole.std()], [-0.5, 0.5])
    sharp = features(AudioPreprocessing(RATE, preemphasis=0.97))
    assert np.allclose(sharp[1:], NOISE[1:] - 0.97 * NOISE[:-1])
    ((loud, _),) = prepared(np.array([-1.0, 0.25, 1.0]), AudioPreprocessing(RATE, scale=32768, dtype="int16"))
    assert loud.tolist() == [-32768, 8192, 32767]


def test_a_recording_is_cut_into_sets_and_the_last_one_padded() -> None:
    how = AudioPreprocessing(RATE, 1500, constants={"n": "samples", "sr": 16000})
    sets = list(prepared(NOISE, how))
    assert [constants for _, constants in sets] == [{"n": n, "sr": 16000} for n in (1500, 1500, 1000)]
    assert np.array_equal(np.concatenate([array for array, _ in sets]), np.pad(NOISE, (0, 500)).astype(np.float32))
    (_, constants) = next(prepared(NOISE, replace(MEL, constants={"n": "frames"})))
    assert constants == {"n": 1 + 4000 // 160}
    with pytest.raises(FormatError, match="frames of 65536 points: too many"):
        next(prepared(np.zeros(1 << 16), replace(MEL, window=1 << 16, fft=0, hop=1)))


def test_the_arrays_of_a_model(tmp_path: Path) -> None:
    """What a voice detector takes: samples, a state, the rate. Dimensions of 1 are added where the input has them."""
    soundfile.write(tmp_path / "b.wav", NOISE[:700], RATE, subtype="FLOAT")
    soundfile.write(tmp_path / "a.wav", NOISE[:100], RATE, subtype="FLOAT")
    (tmp_path / "preprocessing.toml").write_text("rate = 16000\nsamples = 512\nconstants = {state = 0, sr = 16000}\n")
    ports = [Port("input", "float32", (None, None)), Port("state", "float32", (2, None, 8)), Port("sr", "int64", ())]
    with Pool() as pool:
        sets = read_folder(pool, tmp_path, None, ports)
        assert [[array.shape for array in one] for one in sets] == [[(1, 512), (2, 1, 8), ()]] * 3
        assert sets[0][2] == 16000
        assert np.allclose(sets[1][0][0], NOISE[:512])
        (tmp_path / "preprocessing.toml").write_text('rate = 16000\nsamples = 400\nfeatures = "mel"\nhop = 160\n')
        (one, *_) = read_folder(pool, tmp_path, None, [Port("x", "float32", (1, 80, None, 1))])
        assert one[0].shape == (1, 80, 3, 1)
        for text, told in (
            ("rate = 16000", "$.constants must name all inputs of the model but one; left are: input, state, sr"),
            (
                "rate = 16000\nconstants = {x = 1}",
                "$.constants.x: the model has no such input; it has input, state, sr",
            ),
            ("rate = 16000\nconstants = {state = 1, sr = 1e40}", "$.constants.sr: 1e+40 is no int64"),
        ):
            (tmp_path / "preprocessing.toml").write_text(text)
            with pytest.raises(FormatError, match=re.escape(told)):
                read_folder(pool, tmp_path, None, ports)
    (tmp_path / "labels.csv").write_text("a.wav,yes\nb.wav,0\n")
    assert classes_of(tmp_path, ["no", "yes"]) == pytest.approx([1, 0])
    (tmp_path / "c.png").touch()
    with pytest.raises(FormatError, match=r"has images \(c.png\) and recordings \(a.wav\)"):
        classes_of(tmp_path, ["no", "yes"])


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "$: Object missing required field `rate`"),
        ("rate = 0", "$.rate: cannot be 0"),
        ("rate = 16000\nhigh = 9000", "$.high: cannot be 9000"),
        ("rate = 16000\nfft = 256", "$.fft: cannot be 256"),
        ("rate = 16000\nfeatures = 'tempo'", "$.features: Invalid enum value 'tempo'"),
        ("rate = 16000\nconstants = {n = 'rows'}", "$.constants['n']: Invalid enum value 'rows'"),
        ("rate = 16000\ncoefficients = 81", "$.coefficients: cannot be 81"),
    ],
)
def test_preprocessing_that_cannot_be(text: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "how.toml").write_text(text)
    with pytest.raises(FormatError, match=re.escape(told)):
        read_preprocessing(tmp_path / "how.toml", AudioPreprocessing)
