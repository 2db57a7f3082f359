"""Models that PyTorch's FX quantisation wrote: are scales and zero points those that its observers ask for, are weights
the nearest levels, and do the engine's kernels compute what the model says?"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from oracles.quantised.integers import UNIT, Quantisation, dequantised, quantised, settled
from oracles.quantised.model import Judgement, RecordedModel, check_called, follow, judge_tensor, loss, skipped
from oracles.quantised.reference_operators import exactly
from oracles.quantised.torch.integers import computer

Array = np.ndarray
_GROUP = "converted"
_REDUCED = ("x86", "fbgemm")
"""Engines whose default observers leave one bit of activations free: sums of two products of 8 bits saturate in 16
bits (vpmaddubsw) on processors without VNNI."""
_RANGES = (
    *("HistogramObserver", "MinMaxObserver", "PerChannelMinMaxObserver"),
    *("MovingAverageMinMaxObserver", "MovingAveragePerChannelMinMaxObserver"),
)
"""Observers that take a range."""
_FIXED = {"sigmoid": (1 / 256, 0), "tanh": (2 / 256, 128)}
"""Scale and zero point that results in 0 to 1 and in -1 to 1 have (default_fixed_qparams_range_*_observer)."""


def judge(record: RecordedModel) -> Judgement:
    """All nodes, then the quantiser's numbers, then that a plain call of the model returns the same."""
    found = Judgement()
    tensors = {
        name: Quantisation(np.asarray(how["scale"], np.float64), np.asarray(how["zero"], np.float64), how["axis"])
        for name, how in record.header["tensors"].items()
    }
    done = follow(found, record, _GROUP, computer(tensors, record.header["engine"]))
    skipped(found, record.nodes[_GROUP], record.groups[_GROUP], done)
    for name, observer in record.header["observers"].items():
        check_observer(found, name, observer, record.header["engine"])
    check_used(found, record, tensors, [name for name in tensors if name.endswith(".weight")])
    check_faked(found, record)
    last = check_called(found, record, _GROUP)
    if record.header["share"] == 1:
        found.loss = loss(record.groups["float"], last)
    return found


def parameters(
    low: Array, high: Array, limits: tuple[int, int], symmetric: bool, smallest: float = 2.0**-23
) -> tuple[Array, Array]:
    """Scales and positions of zero points (before they are rounded) of ranges, by
    `UniformQuantizationObserverBase._calculate_qparams`: a range holds 0, a scale is at least `smallest` (the float32
    epsilon, if the observer has no other)."""
    least, most = limits
    low, high = np.minimum(low, 0.0), np.maximum(high, 0.0)
    if symmetric:
        return np.maximum(np.maximum(-low, high) / ((most - least) / 2), smallest), np.zeros(low.shape)
    scale = np.maximum((high - low) / (most - least), smallest)
    return scale, np.clip(least - low / scale, least, most)


def check_observer(found: Judgement, name: str, observer: dict, engine: str) -> None:
    """What one observer made of what it saw: the range it took lies in that (it is that, but for histograms, which may
    leave out a share at both ends), and scale and zero point follow from it."""
    of, kind = observer["of"], observer["kind"]
    scale, zero = (np.asarray(observer[key], np.float64) for key in ("scale", "zero"))
    if kind == "FixedQParamsObserver":
        found.checked += 2
        if (scale[0], zero[0]) not in _FIXED.values():
            found.fault(f"scale and zero point of {of}: {scale[0]} and {zero[0]:.0f}, which are fixed otherwise")
        return
    if kind not in _RANGES:
        return
    least, most = tuple(observer["limits"])
    symmetric = "symmetric" in observer["scheme"]
    right = {
        "quint8": (0, 127 if engine in _REDUCED else 255),
        "uint8": (0, 255),
        "int8": (-127, 127) if engine == "xnnpack" and symmetric else (-128, 127),
        "qint8": (-128, 127),
    }.get(observer["dtype"])
    found.checked += 1 + scale.size + zero.size
    if (least, most) != right:
        found.fault(f"{name} of {of} has levels {least} to {most} of {observer['dtype']}, for {engine} it is {right}")
    seen, taken = ([np.asarray(b, np.float64) for b in observer[key]] for key in ("seen", "taken"))
    free = 2.0**-20 * (np.abs(seen[0]) + np.abs(seen[1])) if kind == "HistogramObserver" else 0.0
    outside = (taken[0] < seen[0] - free).any() or (taken[1] > seen[1] + free).any()
    if observer["averaged"]:
        outside = _astray(observer, taken)
    elif kind != "HistogramObserver":
        outside = not all(map(np.array_equal, seen, taken))
    if outside:
        found.fault(f"range of {of}: {taken[0][0]:.9g} to {taken[1][0]:.9g}, seen {seen[0][0]:.9g} to {seen[1][0]:.9g}")
    owed, position = parameters(taken[0], taken[1], (least, most), symmetric, observer["least"])
    by = f"by its range {taken[0][0]:.9g} to {taken[1][0]:.9g}"
    if (np.abs(scale - owed) > 4 * UNIT * owed).any():
        found.fault(f"scale of {of}: {scale[0]:.9g}, {by} it is {owed[0]:.9g}")
    elif (np.abs(zero - position) > 0.5 + 4 * UNIT * (np.abs(position) + most)).any():
        found.fault(f"zero point of {of}: {zero[0]:.0f}, {by} it is {np.rint(position[0]):.0f}")


def _astray(observer: dict, taken: Sequence[Array]) -> bool:
    """Is the range another one than the moving average of those of each step? Three roundings a step."""
    steps = [[np.asarray(bound, np.float64) for bound in step] for step in observer["steps"]]
    for end, found in enumerate(taken):
        right, size = steps[0][end], np.abs(steps[0][end])
        for step in steps[1:]:
            right = right + observer["averaged"] * (step[end] - right)
            size = np.maximum(size, np.abs(step[end]))
        if (np.abs(found - right) > 4 * UNIT * len(steps) * size).any():
            return True
    return False


def check_faked(found: Judgement, record: RecordedModel) -> None:
    """Fake quantisation: the nearest levels, by the reciprocal of the scale, and what they are worth."""
    for name, how in record.header.get("faked", {}).items():
        given, got = (record.groups["faked"][f"{name} {side}"] for side in ("in", "out"))
        quantisation = Quantisation(
            np.asarray(how["scale"], np.float64), np.asarray(how["zero"], np.float64), how["axis"]
        )
        scale, zero = quantisation.spread(given.ndim)
        position = given.astype(np.float64) / scale
        levels = settled(position, 3 * UNIT * np.abs(position), zero, "int32", np.rint, tuple(how["limits"]))
        judge_tensor(found, got, dequantised(levels, scale, zero), f"fake quantisation {name}",
                     record.places["faked", f"{name} out"])  # fmt: skip


def _floats(scale: Sequence[float] | Array) -> tuple[float, ...]:
    """Scales as float32 has them."""
    return tuple(np.asarray(scale, np.float32).tolist())


def check_used(
    found: Judgement, record: RecordedModel, tensors: dict[str, Quantisation], weights: Collection[str]
) -> None:
    """Each scale with its zero point is that of an observer; weights (their names) are the nearest levels of a constant
    that an observer with these scales saw."""
    pairs = {
        (_floats(observer["scale"]), tuple(float(zero) for zero in observer["zero"]))
        for observer in record.header["observers"].values()
    }
    scales = {scale for scale, _ in pairs}
    for name, how in tensors.items():
        found.checked += how.scale.size + how.zero.size
        scale = _floats(how.scale)
        # exactly as an observer has it: as a float32, so that nothing else rounds to it
        if scale not in scales or tuple(how.scale.tolist()) != scale:
            found.fault(f"scale of {name}: {how.scale[0]:.9g}, which no observer has")
        elif (scale, tuple(how.zero.tolist())) not in pairs:
            found.fault(f"zero point of {name}: {how.zero[0]:.0f}, which no observer has beside scale {scale[0]:.9g}")
        if name in weights:
            _weight(found, record, name, how)


def _weight(found: Judgement, record: RecordedModel, name: str, how: Quantisation) -> None:
    got = record.groups[_GROUP][name]
    arrays = record.groups.get("weights", {})
    fits = []
    for observer, array in arrays.items():
        scale = np.asarray(record.header["observers"][observer]["scale"], np.float64)
        # a convolution of one dimension is held as one of two
        if array.size == got.size and array.shape[0] == got.shape[0] and np.array_equal(scale, how.scale):
            real = exactly(array.reshape(got.shape).astype(np.float64))
            fits.append(quantised(real, *how.spread(got.ndim), "int8", reciprocal=True))
    if fits:
        judged = [Judgement() for _ in fits]
        for one, right in zip(judged, fits, strict=True):
            judge_tensor(one, got, right, name)
        best = min(judged, key=lambda one: len(one.wrong))
        found.checked += got.size
        for text in best.wrong:
            found.fault(text)
