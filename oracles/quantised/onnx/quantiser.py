"""Models that ONNX Runtime's quantisers wrote: are scales and zero points those of the calibrated ranges, weights and
biases the nearest levels; and do the models as written, and as each level of optimisation rewrites them, compute what
they say?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from generators.bounds.bounded import leaf
from oracles.quantised.integers import LIMITS, UNIT, Levels, along, quantised
from oracles.quantised.model import (
    Judgement,
    RecordedModel,
    Values,
    follow,
    judge_tensor,
    loss,
    observed,
    rewritten,
    skipped,
)
from oracles.quantised.onnx import integers as onnx_integers

Array = np.ndarray


def judge(record: RecordedModel) -> Judgement:
    """All levels of optimisation, then the quantiser's numbers."""
    found = Judgement()
    made = {name for node in record.nodes["source"] for name in node.results}
    given = [name for name in record.groups["source"] if name not in made]
    for level in record.nodes:
        if level == "float":
            continue
        done = follow(found, record, level, onnx_integers.compute)
        if level != "source":
            done |= rewritten(found, record, level, "source", onnx_integers.compute_rewritten, given)
            for name in record.header["outputs"]:
                session, alone = record.groups[level][f"session {name}"], record.groups[level][name]
                told = f"{level}: {name} of the session beside that of the model it writes"
                judge_tensor(found, session, observed(alone), told, record.places[level, f"session {name}"])
        skipped(found, record.nodes[level], record.groups[level], done)
    numbers(found, record)
    if record.header["share"] == 1:
        names = record.header["outputs"]
        exact, last = record.groups["float"], record.groups["ORT_ENABLE_ALL"]
        found.loss = loss({n: exact[n] for n in names}, {n: last[f"session {n}"] for n in names})
    return found


def numbers(found: Judgement, record: RecordedModel) -> None:
    """Scales, zero points and quantised constants of the model as written, by their names: ONNX Runtime's quantisers
    call those of the tensor x x_scale, x_zero_point and x_quantized."""
    source, real = record.groups["source"], record.groups["float"]
    samples = [group for name, group in record.groups.items() if name.startswith("sample ")]
    made = {name for node in record.nodes["source"] for name in node.results}
    computed = {name for node in record.nodes["float"] for name in node.results} | set(record.header["inputs"])
    for name, array in real.items():
        scale, zero = source.get(f"{name}_scale"), source.get(f"{name}_zero_point")
        if scale is None or zero is None or f"{name}_scale" in made or array.dtype.kind != "f":
            continue
        if name in computed:
            way, values = record.header["symmetric"], [group[name] for group in samples]
            ways = [ScaleRule(_ranges(values), way)]
            ways += [ScaleRule([o], w) for o in _others(record, samples, name) for w in (way, False)]
            _ranged(found, record, name, ways)
            continue
        axes = [i for i, size in enumerate(array.shape) if size == scale.size] if scale.size > 1 else [None]
        ways = [ScaleRule(_ranges([array], axis), symmetric, axis) for axis in axes for symmetric in (True, False)]
        axis = _ranged(found, record, name, ways)
        levels = source.get(f"{name}_quantized")
        if levels is not None:
            turned = levels.shape != array.shape or (levels != _nearest(array, scale, zero, axis, levels).low).any()
            if turned and array.ndim == 2:  # the weight of a Gemm may be stored transposed
                array, axis = array.T, None if axis is None else 1 - axis
            found.checked += 1
            right = _nearest(array, scale, zero, axis, levels)
            judge_tensor(found, levels, right, f"{name}_quantized", record.places["source", f"{name}_quantized"])


def _nearest(array: Array, scale: Array, zero: Array, axis: int | None, levels: Array) -> Levels:
    """What a constant is quantised to."""
    s, z = (along(v, array.ndim, axis or 0) for v in (scale, zero))
    return quantised(leaf(np.array(array, order="C")), s, z, str(levels.dtype))


@dataclass(frozen=True)
class ScaleRule:
    """How scales may come about: from these ranges, made symmetric or not; axis: of a constant's channels."""

    ranges: Sequence[tuple[float, float]]
    symmetric: bool
    axis: int | None = None


def _ranges(values: Sequence[Array], axis: int | None = None) -> list[tuple[float, float]]:
    """The range of all, or at each place on an axis of a constant."""
    parts = [np.concatenate([v.reshape(-1) for v in values])] if axis is None else np.moveaxis(values[0], axis, 0)
    return [(float(part.min()), float(part.max())) for part in parts]


def _others(record: RecordedModel, samples: Sequence[Values], name: str) -> list[tuple[float, float]]:
    """Ranges that ONNX Runtime's quantisers give a tensor in place of its own: from 0 to 1 to a softmax, or levels of
    1/256 (QLinearSoftmax), and to what only a Relu or Clip takes the range of its result
    (BaseQuantizer.adjust_tensor_ranges)."""
    nodes = record.nodes["float"]
    softmax = any(name in node.results and node.op == "Softmax" for node in nodes)
    found = [(0.0, 1.0), (0.0, 255 / 256)] if softmax else []
    takers = [node for node in nodes if name in node.operands]
    if len(takers) == 1 and takers[0].op in ("Relu", "Clip"):
        found += _ranges([group[takers[0].results[0]] for group in samples])
    return found


def _ranged(found: Judgement, record: RecordedModel, name: str, ways: Sequence[ScaleRule]) -> int | None:
    """Scale and zero point of a tensor, or of each of its channels, by one of the ways. Where none fits the first
    is named whose scales do, else the first. Returns the axis of the way."""
    scale, zero = (record.groups["source"][f"{name}_{what}"].reshape(-1) for what in ("scale", "zero_point"))
    found.checked += scale.size + zero.size
    told: list[str] = []
    for way in ways:
        faults = []
        for (low, high), got, point in zip(way.ranges, scale, np.broadcast_to(zero, scale.shape), strict=True):
            right, position = parameters(low, high, str(zero.dtype), way.symmetric)
            of = f"{name}: {{}}, by its range {low:.9g} to {high:.9g} it is {{}}"
            if abs(got - right) > 4 * UNIT * right:
                faults.append("scale of " + of.format(f"{got:.9g}", f"{right:.9g}"))
            elif abs(point - position) > 0.5 + 1e-6 * abs(position):
                faults.append("zero point of " + of.format(f"{point:.0f}", f"{np.rint(position):.0f}"))
        if not faults:
            return way.axis
        if not told or (told[0].startswith("scale") and not faults[0].startswith("scale")):
            told = faults
    for fault in told[:2]:
        found.fault(fault)
    return ways[0].axis


def parameters(low: float, high: float, dtype: str, symmetric: bool) -> tuple[float, float]:
    """Scale and zero point (not rounded yet) of a range: onnxruntime.quantization.quant_utils.compute_scale_zp, in
    float64. A range that no normal number of float32 can be the scale of gets 1 and 0."""
    least, most = LIMITS[dtype]
    low, high = min(low, 0.0), max(high, 0.0)
    if symmetric and dtype in ("int8", "int16"):
        least = -most
    if symmetric:
        high = max(-low, high)
        low = -high
    scale = (high - low) / (most - least)
    if scale < np.finfo(np.float32).tiny:
        return 1.0, 0.0
    return scale, (least + most) / 2 if symmetric else least - low / scale
