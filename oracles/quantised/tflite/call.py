"""A node of a TFLite file with what is known of its tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from oracles.quantised.integers import LIMITS, UNIT, Levels, Quantisation, away, settled
from oracles.quantised.model import NotRecomputed, Operation, Real
from oracles.quantised.reference_operators import fixed, whole

Array = np.ndarray
FUSED: dict[int, tuple[float | None, float | None]] = {0: (None, None), 1: (0, None), 2: (-1, 1), 3: (0, 6)}
"""What `ActivationFunctionType` clips to: NONE, RELU, RELU_N1_TO_1, RELU6."""


Kernels = Literal["reference", "built-in", "xnnpack"]
TIE = 2.0**-30
"""Quanta by which a result between two levels may go to either, where nothing says which of them is nearer."""


@dataclass(frozen=True)
class Call:
    """A node with what is known of its tensors. given: how each operand is quantised (None: it is not); made: the same
    of the result; seen: the result as observed, for its shape and dtype; kernels: whose arithmetic is allowed; index:
    which of the node's results it is"""

    node: Operation
    operands: Sequence[Real | None]
    given: Sequence[Quantisation | None]
    made: Quantisation | None
    seen: Array
    kernels: Kernels
    index: int = 0

    @property
    def fast(self) -> bool:
        """May kernels scale real numbers as they like, by reciprocals, and the zero point apart?"""
        return self.kernels != "reference"

    def levels(self, place: int) -> tuple[Array, Array, Array]:
        """An operand as whole numbers without their zero point, with its scale and its zero point."""
        array, how = fixed(whole(self.operands[place])), self.given[place]
        if how is None:
            raise NotRecomputed(f"{self.node.op} of integers without a scale")
        scale, zero = how.spread(array.ndim)
        return array - zero, scale, zero

    def result(self) -> tuple[float, float, str]:
        """Scale, zero point and dtype of the result."""
        if self.made is None or self.made.scale.size != 1:
            raise NotRecomputed(f"{self.node.op} to real numbers")
        return float(self.made.scale[0]), float(self.made.zero[0]), str(self.seen.dtype)

    def limits(self) -> tuple[float, float]:
        """What levels the fused activation leaves."""
        scale, zero, dtype = self.result()
        least, most = LIMITS[dtype]
        low, high = FUSED[self.node.attrs.get("fusedActivationFunction", 0)]
        least = least if low is None else max(least, zero + float(away(np.asarray(low / scale))))
        return least, most if high is None else min(most, zero + float(away(np.asarray(high / scale))))

    def settle(self, position: Array, slack: Array | float) -> Levels:
        """Levels of the result at these positions. XNNPACK rescales sums in float32 (its qs8 and qu8 kernels with
        fp32 requantisation: the factor has two roundings, the conversion, the product and the zero point one each) and
        rounds half to even."""
        _, zero, dtype = self.result()
        more = 6 * UNIT * (np.abs(position) + abs(zero)) + TIE if self.kernels == "xnnpack" else 0.0
        return settled(position, np.asarray(slack + more), np.asarray(zero), dtype, away, self.limits())


def _padding(call: Call, sizes: Sequence[int], kernel: Sequence[int], stride: list[int], rate: list[int]) -> list[int]:
    """In front and behind of SAME (0) or VALID padding."""
    front, behind = [], []
    for size, k, s, r in zip(sizes, kernel, stride, rate, strict=True):
        total = max((-(-size // s) - 1) * s + (k - 1) * r + 1 - size, 0) if call.node.attrs["padding"] == 0 else 0
        front.append(total // 2)
        behind.append(total - total // 2)
    return [*front, *behind]


def window(call: Call, sizes: Sequence[int], kernel: Sequence[int]) -> dict[str, Any]:
    """Attributes of a convolution or a pooling, in our words."""
    attrs = call.node.attrs
    stride = [attrs["strideH"], attrs["strideW"]]
    rate = [attrs.get("dilationHFactor", 1), attrs.get("dilationWFactor", 1)]
    return {"stride": stride, "dilation": rate, "padding": _padding(call, sizes, kernel, stride, rate)}
