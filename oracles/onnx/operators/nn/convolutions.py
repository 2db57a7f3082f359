"""Convolutions: a product of matrices for each place of the kernel."""

from __future__ import annotations

from itertools import product

import numpy as np

from oracles.onnx.operators.arguments import along, integers, refuse
from oracles.onnx.operators.nn.windows import Windows, windows_of
from oracles.onnx.rule import Call, Value


def convolve(x: np.ndarray, w: np.ndarray, windows: Windows, groups: int) -> np.ndarray:
    """(N, C, D...) by (M, C / groups, K...)."""
    n, m, c = x.shape[0], w.shape[0], w.shape[1]
    if x.shape[1] != c * groups or m % groups:
        raise ValueError(f"{x.shape[1]} channels by weights of {w.shape} in {groups} groups")
    padded = windows.padded(x, 0)
    y = None
    for place in windows.places():
        part = windows.at(padded, place).reshape(n, groups, c, -1)
        weights = w[(slice(None), slice(None), *place)].reshape(groups, m // groups, c)
        term = part * weights if c == 1 and m == groups else np.matmul(weights, part)
        y = np.add(term, 0 if y is None else y, out=term)  # a sum that starts at 0 is never -0
    return np.zeros((n, m, *windows.output), np.result_type(x, w)) if y is None else y.reshape(n, m, *windows.output)


def _conv(call: Call) -> list[Value]:
    x, w, bias = call.input(0), call.input(1), call.input(2)
    y = convolve(x, w, windows_of(call, x.shape[2:], w.shape[2:]), call.get("group", 1))
    return [y if bias is None else y + along(bias, y.ndim)]


def _conv_transpose(call: Call) -> list[Value]:
    """Each element times the kernel, added where its window lies; pads cut from that, `output_padding` adds at the
    end."""
    x, w, bias, groups = call.input(0), call.input(1), call.input(2), call.get("group", 1)
    rank, kernel = x.ndim - 2, w.shape[2:]
    strides, dilations = call.get("strides", [1] * rank), call.get("dilations", [1] * rank)
    more = call.get("output_padding", [0] * rank)
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    whole = [s * (size - 1) + r + e for size, s, r, e in zip(x.shape[2:], strides, reach, more, strict=True)]
    cut = _cut(call, x.shape[2:], strides, whole)
    n, c, m = x.shape[0], x.shape[1], w.shape[1]
    full = np.zeros((n, groups * m, *(max(0, size) for size in whole)))
    parts = x.reshape(n, groups, c // groups, -1)
    for place in product(*map(range, kernel)):
        weights = w[(slice(None), slice(None), *place)].reshape(groups, c // groups, m)
        added = np.matmul(weights.transpose(0, 2, 1), parts).reshape(n, groups * m, *x.shape[2:])
        taken = [
            slice(k * d, k * d + (size - 1) * s + 1, s)
            for k, d, size, s in zip(place, dilations, x.shape[2:], strides, strict=True)
        ]
        full[(slice(None), slice(None), *taken)] += added
    for axis, (before, after) in enumerate(cut, 2):
        places = np.arange(before, full.shape[axis] - after)
        inside = (places >= 0) & (places < full.shape[axis])  # negative pads add zeros
        full = np.take(full, np.where(inside, places, 0), axis) * along(inside, full.ndim, axis)
    return [full if bias is None else full + along(bias, full.ndim)]


def _cut(call: Call, sizes: tuple[int, ...], strides: list[int], whole: list[int]) -> list[tuple[int, int]]:
    """What is cut from both ends of each axis. The text of version 1 has the halves of an odd number the other way
    round, against its own words on SAME_UPPER; version 11 corrects it."""
    rank, how = len(sizes), call.get("auto_pad", "NOTSET")
    shape = call.get("output_shape", None)
    if shape is None and how in ("SAME_UPPER", "SAME_LOWER"):
        shape = [size * stride for size, stride in zip(sizes, strides, strict=True)]
        if call.version < 11 and any(size < wanted for size, wanted in zip(whole, shape, strict=True)):
            raise refuse(call, f"that {how} adds to the output is said since version 11")
    if shape is None:
        pads = call.get("pads", [0] * 2 * rank) if how != "VALID" else [0] * 2 * rank
        return list(zip(pads[:rank], pads[rank:], strict=True))
    found = []
    for total in (size - wanted for size, wanted in zip(whole, shape[-rank:], strict=True)):
        less = total // 2
        found.append((less, total - less) if how == "SAME_UPPER" else (total - less, less))
    return found


def _deformable(call: Call) -> list[Value]:
    """A convolution whose places are moved by offsets, between elements linearly, zero outside."""
    x, w, offset, bias, mask = (call.input(place) for place in range(5))
    windows = windows_of(call, x.shape[2:], w.shape[2:])
    rank, n, groups, parts = x.ndim - 2, x.shape[0], call.get("group", 1), call.get("offset_group", 1)
    count = int(np.prod(windows.kernel))
    offset = offset.reshape(n, parts, count, rank, *windows.output)
    mask = (
        np.ones((n, parts, count, *windows.output)) if mask is None else mask.reshape(n, parts, count, *windows.output)
    )
    m, c = w.shape[:2]
    channels = x.reshape(n, parts, x.shape[1] // parts, *x.shape[2:])
    y = np.zeros((n, groups, m // groups, int(np.prod(windows.output))))
    starts = np.indices(windows.output)
    for number, place in enumerate(windows.places()):
        where = [
            starts[axis] * windows.strides[axis]
            - windows.before[axis]
            + place[axis] * windows.dilations[axis]
            + offset[:, :, number, axis]
            for axis in range(rank)
        ]
        taken = _between(channels, where) * mask[:, :, None, number]
        weights = w[(slice(None), slice(None), *place)].reshape(groups, m // groups, c)
        y += np.matmul(weights, taken.reshape(n, groups, c, -1))
    y = y.reshape(n, m, *windows.output)
    return [y if bias is None else y + along(bias, y.ndim)]


def _between(x: np.ndarray, where: list[np.ndarray]) -> np.ndarray:
    """x: (N, G, C, D...); where: by axis the places (N, G, O...) that are asked for; (N, G, C, O...)."""
    n, g, c = x.shape[:3]
    sizes = x.shape[3:]
    low = [np.floor(place).astype(np.int64) for place in where]
    result = np.zeros((n, g, c, *where[0].shape[2:]))
    samples, groups = np.ogrid[:n, :g]
    samples, groups = (front.reshape(*front.shape, *[1] * len(sizes)) for front in (samples, groups))
    for corner in product((0, 1), repeat=len(sizes)):
        places = [start + step for start, step in zip(low, corner, strict=True)]
        weight, inside = np.ones(where[0].shape), np.ones(where[0].shape, bool)
        for place, target, size in zip(places, where, sizes, strict=True):
            weight = weight * (1 - np.abs(target - place))
            inside &= (place >= 0) & (place < size)
        safe = [np.clip(place, 0, size - 1) for place, size in zip(places, sizes, strict=True)]
        taken = np.moveaxis(np.moveaxis(x, 2, -1)[(samples, groups, *safe)], -1, 2)
        result += np.where(inside, weight, 0)[:, :, None] * taken
    return result


def _from_columns(call: Call) -> list[Value]:
    """Col2Im: blocks added where they lie in the image."""
    x, image, block = call.input(0), integers(call.input(1)), integers(call.input(2))
    windows = windows_of(call, image, block)
    n, count = x.shape[0], int(np.prod(block))
    if x.shape[2] != np.prod(windows.output):
        raise refuse(call, f"{x.shape[2]} blocks where {windows.output} fit")
    parts = x.reshape(n, x.shape[1] // count, count, *windows.output)
    sizes = [size + b + a for size, b, a in zip(image, windows.before, windows.after, strict=True)]
    whole = np.zeros((n, parts.shape[1], *sizes), x.dtype)
    for number, place in enumerate(windows.places()):
        windows.at(whole, place)[...] += parts[:, :, number]
    kept = [slice(b, b + size) for size, b in zip(image, windows.before, strict=True)]
    return [whole[(slice(None), slice(None), *kept)]]


RULES = {"Col2Im": _from_columns, "Conv": _conv, "ConvTranspose": _conv_transpose, "DeformConv": _deformable}
