"""Windows that slide over the spatial axes of (N, C, D1, ..., Dn)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from oracles.onnx.operators.arguments import refuse
from oracles.onnx.rule import Call


@dataclass(frozen=True)
class Windows:
    """By spatial axis: sizes of the input, of the kernel and of the output, strides, dilations, zeros before and after
    it; more: what `ceil_mode` adds behind the end."""

    sizes: tuple[int, ...]
    kernel: tuple[int, ...]
    output: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    more: tuple[int, ...]

    def places(self) -> Iterator[tuple[int, ...]]:
        """Every place of the kernel."""
        return product(*map(range, self.kernel))

    def padded(self, x: np.ndarray, value: float) -> np.ndarray:
        """The input with a value around it; negative pads remove elements."""
        sides = [(b, a + more) for b, a, more in zip(self.before, self.after, self.more, strict=True)]
        kept = [slice(max(0, -b), max(0, d + min(0, a))) for d, (b, a) in zip(x.shape[2:], sides, strict=True)]
        pads = [(0, 0), (0, 0), *((max(0, b), max(0, a)) for b, a in sides)]
        x = x[(slice(None), slice(None), *kept)]
        return np.pad(x, pads, constant_values=value) if any(map(any, pads)) else x

    def at(self, padded: np.ndarray, place: Sequence[int]) -> np.ndarray:
        """For all windows at once, the element at one place of the kernel: (N, C, output)."""
        taken = [
            slice(k * d, k * d + (n - 1) * s + 1, s)
            for k, d, n, s in zip(place, self.dilations, self.output, self.strides, strict=True)
        ]
        return padded[(slice(None), slice(None), *taken)]


def windows_of(call: Call, sizes: Sequence[int], kernel: Sequence[int]) -> Windows:
    """The windows of a convolution or pool."""
    rank = len(sizes)
    strides, dilations = call.get("strides", [1] * rank), call.get("dilations", [1] * rank)
    how, ceil = call.get("auto_pad", "NOTSET"), bool(call.get("ceil_mode", 0))
    pads = call.get("pads", [0] * 2 * rank)
    before, after, more, output = [], [], [], []
    for axis, (size, k, stride, dilation) in enumerate(zip(sizes, kernel, strides, dilations, strict=True)):
        reach = (k - 1) * dilation + 1
        if how in ("SAME_UPPER", "SAME_LOWER"):
            count = -(-size // stride)
            total = max(0, (count - 1) * stride + reach - size)
            first = total // 2 if how == "SAME_UPPER" else total - total // 2
            second = total - first
        elif how in ("NOTSET", "", "VALID"):
            first, second = (pads[axis], pads[axis + rank]) if how != "VALID" else (0, 0)
            room = size + first + second - reach
            count = max(0, (-(-room // stride) if ceil else room // stride) + 1)
            if ceil and count and (count - 1) * stride >= size + first:
                count -= 1  # a window that starts behind the input is ignored (said since version 22)
        else:
            raise refuse(call, f"auto_pad {how!r}")
        before.append(first)
        after.append(second)
        output.append(count)
        more.append(max(0, (count - 1) * stride + reach - size - first - second))
    parts = (sizes, kernel, output, strides, dilations, before, after, more)
    return Windows(*(tuple(int(item) for item in part) for part in parts))
