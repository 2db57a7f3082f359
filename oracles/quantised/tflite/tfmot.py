"""Models that TFLite's converter made of Keras models trained with tfmot's fake quantisation: do the trained ranges
arrive in the file, and do the kernels compute what it says?

Ranges become scales as the scheme documents (https://www.tensorflow.org/model_optimization/guide/quantization/training):
activations have 8 bits and a zero point, nudged so that 0 is a level (`getNudgedScaleAndZeroPoint` of MLIR's
FakeQuantSupport); weights 8 bits in -127 to 127 without a zero point, for convolutions one scale for each place of the
kernel's last axis."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from oracles.quantised.integers import UNIT, Quantisation, quantised
from oracles.quantised.model import Judgement, Operation, RecordedModel, judge_tensor
from oracles.quantised.reference_operators import exactly
from oracles.quantised.tflite import quantiser as tflite_quantiser

Array = np.ndarray
_GROUP = "BUILTIN_REF"
_WEIGHTED = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")
_FIXED = {(1 / 256, -128.0), (1 / 128, 0.0)}
"""Scale and zero point of softmax and sigmoid, and of tanh, which TFLite's specification fixes."""


@dataclass(frozen=True)
class ExpectedScale:
    """What a trained range of activations owes: its scale, and its zero point before that is rounded."""

    scale: float
    position: float

    def met(self, scale: float, zero: float) -> bool:
        """Is the scale this one as a float32 (a division, a rounding), and the zero point the nearest level?"""
        return abs(scale - self.scale) <= 2 * UNIT * self.scale and abs(zero - self.position) <= 0.5 + 1e-4

    def __str__(self) -> str:
        return f"scale {self.scale:.9g} and zero point {np.rint(self.position):.0f}"


def judge(record: RecordedModel) -> Judgement:
    """What TFLite's kernels made of the file, then the training's ranges, then the file's numbers."""
    found = tflite_quantiser.judge(record)
    ranges = record.header["ranges"]
    owed = {
        name: expected_scale_of(record.groups["ranges"][name])
        for name, how in ranges.items()
        if how["kind"] != "weight"
    }
    weights = {name: _Weight(record, name) for name, how in ranges.items() if how["kind"] == "weight"}
    _trained(found, record)
    tensors = tflite_quantiser.tensors_of(record)
    arrived: set[str] = set()
    for node in record.nodes[_GROUP]:
        result = node.results[0]
        if node.op in _WEIGHTED:
            fits = _weights(found, record, node, weights, tensors)
            arrived |= set(fits)
            fused = bool(node.attrs.get("fusedActivationFunction"))
            behind = {name: owed[name] for fit in fits for name in ranges[fit]["behind"][: None if fused else 1]}
        else:
            behind = {}
        arrived |= _activations(found, record, f"{node.op} -> {result}", tensors.get(result), behind or owed)
    for name in ranges:
        if name not in arrived:
            found.skipped[f"range of {ranges[name]['layer']} that no tensor has"] += 1
    return found


def expected_scale_of(ends: Array) -> ExpectedScale:
    """Scale and zero point of a range of activations: levels are -128 to 127. The converter widens nothing but 0 to
    1e-6."""
    low, high = (float(end[0]) for end in ends)
    if low == high:
        low, high = -5e-7, 5e-7
    scale = (high - low) / 255
    return ExpectedScale(scale, -128 - low / scale)


class _Weight:
    """A trained kernel as the file has it: output channels first, or last where convolutions are by channel; times the
    factor of a batch normalisation behind it. Where it has no range, the converter takes its own by channel."""

    def __init__(self, record: RecordedModel, name: str) -> None:
        how, arrays = record.header["ranges"][name], record.groups["weights"]
        kernel = arrays[name].astype(np.float64)
        free = np.abs(kernel).max((0, 1) if how["layer"] == "DepthwiseConv2D" else tuple(range(kernel.ndim - 1))) / 127
        low, high = record.groups["ranges"][name].astype(np.float64)
        scale = free.reshape(-1) if how["absent"] else (high - low) / 254
        if how["layer"] == "DepthwiseConv2D":
            scale = np.tile(scale, kernel.shape[2]) if 1 < scale.size < free.size else scale
            kernel = kernel.reshape(1, *kernel.shape[:2], -1)
            self.axis = 3
        else:
            kernel = np.moveaxis(kernel, -1, 0)
            self.axis = 0
        self.units = 2.0
        if f"{name}.gamma" in arrays:
            gamma, variance = (arrays[f"{name}.{part}"].astype(np.float64) for part in ("gamma", "variance"))
            factor = gamma / np.sqrt(variance + how["epsilon"])
            shape = [-1 if i == self.axis else 1 for i in range(kernel.ndim)]
            kernel, scale, self.units = kernel * factor.reshape(shape), np.abs(scale * factor), 8.0
        self.kernel, self.scale = kernel, scale

    def met(self, found: Quantisation) -> bool:
        """Has the file these scales, all alike where the range is one?"""
        if found.scale.size not in (self.scale.size, 1) and self.scale.size != 1:
            return False
        alike = (np.abs(found.scale - self.scale) <= self.units * UNIT * self.scale) | (self.scale == 0)
        return bool(alike.all()) and not found.zero.any()


def _trained(found: Judgement, record: RecordedModel) -> None:
    """Ranges of inputs are those of all samples, with 0; ranges of weights the greatest magnitude of the last ones."""
    samples = [group for name, group in record.groups.items() if name.startswith("sample ")]
    for name, how in record.header["ranges"].items():
        seen = record.groups["ranges"][name]
        found.checked += seen.size
        if how["kind"] == "activation":
            if not (seen[0] <= 0).all() or not (seen[1] >= 0).all():
                found.fault(f"range of {name}: {seen.tolist()}, which has to hold 0")
            continue
        if how["kind"] == "input":
            ends = [[sample[how["of"]].min() for sample in samples], [sample[how["of"]].max() for sample in samples]]
            right = np.array([[min(0, *ends[0])], [max(0, *ends[1])]], np.float32)
        else:
            kernel = np.abs(record.groups["weights"][name])
            most = kernel.max(tuple(range(kernel.ndim - 1))) if seen.size > 2 else kernel.max()[None]
            right = np.array([-most, most])
        place = record.places["ranges", name]
        if how.get("absent"):
            layer = how["layer"]
            found.fault(f"{name} has no range: the {layer} was trained without fake quantisation of it", place, right)
        elif not np.array_equal(seen, right):
            found.fault(f"range of {name}: {seen.tolist()}, by what it has seen {right.tolist()}", place, right)


def _weights(
    found: Judgement, record: RecordedModel, node: Operation, weights: Mapping[str, _Weight],
    tensors: Mapping[str, Quantisation],
) -> list[str]:  # fmt: skip
    """Which trained weights a node has: they have their scales, and their nearest levels."""
    where, name = f"{node.op} -> {node.results[0]}", node.operands[1]
    how, array = tensors.get(name), record.groups[_GROUP][name]
    if how is None or array.dtype != np.int8:
        return []
    found.checked += how.scale.size + array.size
    fits = [key for key, weight in weights.items() if weight.kernel.size == array.size and weight.met(how)]
    if not fits and _rescaled(record, node):
        found.skipped["weight that is rescaled for its bias"] += 1
        return []
    if not fits:
        shown = ", ".join(f"{scale:.9g}" for scale in how.scale[:4])
        found.fault(f"scale of the weight of {where}: {shown}; no trained range owes it")
        return []
    judged = {key: Judgement() for key in fits}
    for key, one in judged.items():
        real = exactly(weights[key].kernel.reshape(array.shape))
        right = quantised(real, *how.spread(array.ndim), "int8", reciprocal=True)
        judge_tensor(one, array, right, f"weight of {where}")
    right = [key for key, one in judged.items() if not one.wrong]
    if not right:
        found.fault(judged[fits[0]].wrong[0])
    return right or fits


def _rescaled(record: RecordedModel, node: Operation) -> bool:
    """Would the bias need more than half of 32 bits beside the input's range? Then the converter widens that of the
    weight until it has 31."""
    bias = record.groups[_GROUP].get(node.operands[2]) if len(node.operands) > 2 else None
    return bias is not None and bool((np.abs(bias) >= 2**30 - 2).any())


def _activations(
    found: Judgement, record: RecordedModel, where: str, how: Quantisation | None, owed: Mapping[str, ExpectedScale]
) -> set[str]:
    """Which trained ranges a result has; one whose scale is fixed has none."""
    if how is None:
        return set()
    scale, zero = float(how.scale[0]), float(how.zero[0])
    found.checked += 2
    met = {name for name, one in owed.items() if one.met(scale, zero)}
    if not met and (scale, zero) not in _FIXED:
        near = min(owed.items(), key=lambda item: abs(item[1].scale - scale), default=None)
        by = f"; of trained ranges, that of {near[0]} comes nearest: {near[1]}" if near else ""
        found.fault(f"{where}: scale {scale:.9g} and zero point {zero:.0f}{by}")
    return met
