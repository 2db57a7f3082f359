"""Models that TFLite's converter quantised: are scales and zero points those that its specification asks for, and do
the reference and the built-in kernels compute what they say?"""

from __future__ import annotations

import numpy as np

from oracles.quantised.integers import LIMITS, UNIT, Quantisation
from oracles.quantised.model import Judgement, RecordedModel, Values, follow, loss, skipped
from oracles.quantised.tflite.call import Kernels
from oracles.quantised.tflite.kernels import computer

Array = np.ndarray
_KERNELS: dict[str, Kernels] = {"BUILTIN_REF": "reference", "BUILTIN_WITHOUT_DEFAULT_DELEGATES": "built-in"}
_GROUP, _LAST = _KERNELS


def judge(record: RecordedModel) -> Judgement:
    """Both kinds of kernels, then the converter's numbers."""
    found = Judgement()
    tensors = tensors_of(record)
    for group, kind in _KERNELS.items():
        done = follow(found, record, group, computer(tensors, kind))
        skipped(found, record.nodes[group], record.groups[group], done)
    _numbers(found, record, tensors)
    if record.header["share"] == 1:
        exact, last = record.groups["float"], record.groups[_LAST]
        names = record.header["outputs"]
        real = {str(i): real_output(last, name, tensors) for i, name in enumerate(names)}
        found.loss = loss({str(i): exact[i] for i in range(len(names))}, real)  # type: ignore[index]
    return found


def tensors_of(record: RecordedModel) -> dict[str, Quantisation]:
    """How the tensors of the file are quantised."""
    return {
        name: Quantisation(np.asarray(how["scale"], np.float64), np.asarray(how["zero"], np.float64), how["axis"])
        for name, how in record.header["tensors"].items()
    }


def real_output(values: Values, name: str, tensors: dict[str, Quantisation]) -> Array:
    """An output as real numbers."""
    array = values[name]
    if name not in tensors or array.dtype.kind == "f":
        return array
    scale, zero = tensors[name].spread(array.ndim)
    return ((array.astype(np.float64) - zero) * scale).astype(np.float32)


_FIXED = {"LOGISTIC": (1 / 256, -128), "SOFTMAX": (1 / 256, -128), "TANH": (1 / 128, 0)}
"""Scale and zero point of int8 results that the specification fixes."""


_OWN_SCALE = {"CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "BATCH_MATMUL", "MUL", "LOGISTIC", "TANH"}
"""Operators that do not ask for the same scale of an operand and of another tensor."""


def _numbers(found: Judgement, record: RecordedModel, tensors: dict[str, Quantisation]) -> None:
    """Zero points are levels, and 0 for weights by channel; biases have the scale s_x s_w and no zero point; inputs
    have the range of the samples; some results a scale that the specification fixes."""
    values = record.groups[_GROUP]
    for name, how in tensors.items():
        if name not in values or str(values[name].dtype) not in LIMITS:
            continue
        least, most = LIMITS[str(values[name].dtype)]
        found.checked += how.zero.size
        if ((how.zero < least) | (how.zero > most)).any() or (how.scale.size > 1 and how.zero.any()):
            found.fault(f"zero point of tensor {name}: {how.zero.tolist()}")
        if not (how.scale > 0).all():
            found.fault(f"scale of tensor {name}: {how.scale.tolist()}")
    for node in record.nodes[_GROUP]:
        result = node.results[0]
        if node.op in ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED") and len(node.operands) > 2:
            x, w, b = (tensors.get(name) for name in node.operands[:3])
            if x and w and b:
                right = np.broadcast_to(x.scale * w.scale, b.scale.shape)
                found.checked += b.scale.size
                if (np.abs(b.scale - right) > 4 * UNIT * right).any() or b.zero.any():
                    operands = f"the operands have {right.tolist()}; its zero point is {b.zero.tolist()}"
                    where = f"scale of the bias of {node.op} -> {result}"
                    levels = np.rint((values[node.operands[2]] - b.zero) * b.scale / right)
                    place = record.places[_GROUP, node.operands[2]]
                    found.fault(f"{where}: {b.scale.tolist()}, {operands}", place, levels.astype(np.int32))
        if node.op in _FIXED and result in tensors and values[result].dtype == np.int8:
            scale, zero = _FIXED[node.op]
            found.checked += 2
            if tensors[result].scale[0] != scale or tensors[result].zero[0] != zero:
                found.fault(f"{node.op} -> {result}: scale {tensors[result].scale[0]} and zero point "
                            f"{tensors[result].zero[0]:.0f}, by the specification {scale} and {zero}")  # fmt: skip
    _inputs(found, record, tensors)


def _inputs(found: Judgement, record: RecordedModel, tensors: dict[str, Quantisation]) -> None:
    """Scale and zero point of what quantises an input, by the range of the samples."""
    values = record.groups[_GROUP]
    samples = [group for name, group in record.groups.items() if name.startswith("sample ")]
    for name, number in record.header["inputs"].items():
        takers = [node for node in record.nodes[_GROUP] if number in node.operands]
        if samples[0][name].dtype != np.float32:
            continue
        first = [n.results[0] for n in takers if n.op == "QUANTIZE"] if values[number].dtype == np.float32 else [number]
        for made in first[:1]:
            low = min(0.0, *(float(s[name].min()) for s in samples))
            high = max(0.0, *(float(s[name].max()) for s in samples))
            dtype = str(values[made].dtype)
            least, most = LIMITS[dtype]
            how = tensors[made]
            if dtype == "int16":
                right, position = max(-low, high) / most, 0.0
            else:
                right = (high - low) / (most - least)
                position = least - low / right if right else 0.0
            found.checked += 2
            users = {node.op for node in record.nodes[_GROUP] if made in node.operands}
            if right < 1e-6 or not users <= _OWN_SCALE:  # of nearly nothing, or shared with what has a wider range
                continue
            held = values[number] if made != number else (values[made] - how.zero) * how.scale
            levels = np.rint(np.nan_to_num(held / right + position)).clip(least, most).astype(dtype)
            by, place = f"by its range {low:.9g} to {high:.9g}", record.places[_GROUP, made]
            if abs(how.scale[0] - right) > 1e-6 * right:
                found.fault(f"scale of input {name}: {how.scale[0]:.9g}, {by} it is {right:.9g}", place, levels)
            elif abs(how.zero[0] - position) > 0.5 + 1e-4:
                zero = f"{how.zero[0]:.0f}, {by} it is {np.rint(position):.0f}"
                found.fault(f"zero point of input {name}: {zero}", place, levels)
