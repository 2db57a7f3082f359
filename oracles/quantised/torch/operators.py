"""What operators of PyTorch must return that move levels or numbers, and those that compute with float32."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from generators.bounds.bounded import Bounded
from oracles.quantised.integers import LIMITS, UNIT, Levels, Quantisation, settled
from oracles.quantised.model import NotRecomputed, Operation, Real
from oracles.quantised.reference_operators import applied, fixed, number, whole

Array = np.ndarray
FUSED = ("linear_relu", "conv1d_relu", "conv2d_relu", "add_relu", "mul_relu")
"""Operators that leave no level below the zero point."""


@dataclass(frozen=True)
class Call:
    """A node with what is known of its tensors. given: how each operand is quantised (None: it is not); made: the same
    of the result; seen: the result as observed, for its shape and dtype; qnnpack: does that engine run it?
    index: of the result among those of the node"""

    node: Operation
    operands: Sequence[Real | None]
    given: Sequence[Quantisation | None]
    made: Quantisation | None
    seen: Array
    qnnpack: bool
    index: int

    def levels(self, place: int = 0) -> tuple[Array, Array, Array]:
        """An operand as whole numbers without their zero point, with its scale and its zero point."""
        array, how = fixed(whole(self.operands[place])), self.given[place]
        if how is None:
            raise NotRecomputed(f"{self.node.op} of integers without a scale")
        scale, zero = how.spread(array.ndim)
        return array - zero, scale, zero

    def terms(self, place: int = 0) -> tuple[Array, Array]:
        """An operand as real numbers, and the size of what float32 rounds on the way: kernels compute scale * level
        and scale * zero point apart."""
        x, scale, zero = self.levels(place)
        return x * scale, (np.abs(x) + 2 * np.abs(zero)) * scale

    def result(self) -> tuple[float, float, str]:
        """Scale, zero point and dtype of the result."""
        if self.made is None or self.made.scale.size != 1:
            raise NotRecomputed(f"{self.node.op} to real numbers")
        return float(self.made.scale[0]), float(self.made.zero[0]), str(self.seen.dtype)

    def settle(self, position: Array, slack: Array) -> Levels:
        """Levels of the result at these positions, to which kernels may add the zero point in float32."""
        _, zero, dtype = self.result()
        least, most = LIMITS[dtype]
        least = zero if self.node.op in FUSED else least
        slack = slack + 2 * UNIT * (np.abs(position) + abs(zero))
        return settled(position, slack, np.asarray(zero), dtype, np.rint, (least, most))

    def argument(self, place: int, name: str, default: Any = None) -> Any:
        """An argument that is no tensor, by its place or its name."""
        args = self.node.attrs["args"]
        return args[place] if place < len(args) else self.node.attrs.get(name, default)


def same(call: Call) -> Real:
    """The operand, whose levels mean the same in the result."""
    x, a, b = call.operands[0], call.given[0], call.made
    if x is None or (a is None) != (b is None):
        raise NotRecomputed(f"{call.node.op} that quantises")
    if a and b and not (np.array_equal(a.scale, b.scale) and np.array_equal(a.zero, b.zero)):
        raise NotRecomputed(f"{call.node.op} between two scales")
    return x


def _reshaped(call: Call) -> Real:
    return same(call).map(lambda v: v.reshape(call.seen.shape))


def _permuted(call: Call) -> Real:
    axes = call.node.attrs["args"][1:] or [call.node.attrs["dims"]]
    return same(call).map(lambda v: np.transpose(v, axes[0] if isinstance(axes[0], list) else axes))


def _item(call: Call) -> Real:
    """One of several results, or a slice."""
    where = call.node.attrs["args"][1]
    if isinstance(where, int):
        return same(call)
    parts = where if isinstance(where, list) else [where]
    if not all(isinstance(part, dict) for part in parts):
        raise NotRecomputed("getitem")
    return same(call).map(lambda v: v[tuple(slice(*part["slice"]) for part in parts)])


def _split(call: Call) -> Real:
    """One part of several along an axis."""
    sizes, axis = call.argument(1, "split_size_or_sections"), call.argument(2, "dim", 0)
    start = call.index * sizes if isinstance(sizes, int) else sum(sizes[: call.index])
    where = (slice(None),) * (axis % call.seen.ndim) + (slice(start, start + call.seen.shape[axis]),)
    return same(call).map(lambda v: v[where])


def _enlarged(call: Call) -> Real:
    """Each pixel as often as the factor says."""
    factor, mode = call.argument(2, "scale_factor"), call.argument(3, "mode", "nearest")
    if not isinstance(factor, int) or mode != "nearest":
        raise NotRecomputed("interpolate")

    def repeated(v: Array) -> Array:
        for axis in range(2, v.ndim):
            v = np.repeat(v, factor, axis)
        return v

    return same(call).map(repeated)


def _padded(call: Call) -> Bounded:
    x, pads, mode = number(call.operands[0]), call.argument(1, "pad"), call.argument(2, "mode", "constant")
    if mode != "constant" or min(pads) < 0:
        raise NotRecomputed("pad")
    pairs = [(0, 0)] * (x.value.ndim - len(pads) // 2) + list(zip(pads[-2::-2], pads[-1::-2], strict=True))
    value = call.argument(3, "value")
    filled = np.asarray(0.0 if value is None else value, x.dtype).astype(x.value.dtype)
    return replace(x, value=np.pad(x.value, pairs, constant_values=filled), error=np.pad(x.error, pairs))


def _normalised(call: Call) -> Bounded:
    if len(call.operands) != 5 or call.argument(5, "training", False):
        raise NotRecomputed("batch_norm by the batch")
    x, mean, variance, weight, bias = (number(o) for o in call.operands)
    return applied("batch_norm", (x, weight, bias, mean, variance), {"epsilon": call.argument(7, "eps")})


def _convolved(name: str) -> Callable[[Call], Bounded]:
    def compute(call: Call) -> Bounded:
        def sizes(place: int, key: str, default: int) -> list[int]:
            value = call.argument(place, key, default)
            return [value] * (call.seen.ndim - 2) if isinstance(value, int) else list(value)

        attrs = {"stride": sizes(3, "stride", 1), "dilation": sizes(5, "dilation", 1)}
        attrs.update(padding=sizes(4, "padding", 0) * 2, groups=call.argument(6, "groups", 1))
        return applied(name, [number(o) for o in call.operands], attrs)

    return compute


def _window(call: Call) -> dict[str, Any]:
    def pair(value: Any) -> list[int]:
        return [value, value] if isinstance(value, int) else list(value)

    kernel = pair(call.argument(1, "kernel_size"))
    stride, padding = call.argument(2, "stride") or kernel, call.argument(3, "padding", 0)
    return {"kernel": kernel, "stride": pair(stride), "padding": pair(padding)}


def max_window(call: Call) -> dict[str, Any]:
    """Our attributes of a max_pool2d."""
    dilation = call.argument(4, "dilation", 1)
    return {**_window(call), "dilation": [dilation, dilation] if isinstance(dilation, int) else dilation}


def mean_window(call: Call) -> dict[str, Any]:
    """Our attributes of an avg_pool2d. Raises NotRecomputed where it divides by something else."""
    if call.argument(4, "ceil_mode", False) or call.argument(6, "divisor_override"):
        raise NotRecomputed("avg_pool2d of another divisor")
    return {**_window(call), "count_include_pad": call.argument(5, "count_include_pad", True)}


def _addmm(call: Call) -> Bounded:
    c, a, b = (number(o) for o in call.operands)
    return applied("addmm", (a, b, c), {"alpha": call.argument(4, "alpha", 1), "beta": call.argument(3, "beta", 1)})


def _mean(call: Call) -> Bounded:
    axes, keep = call.argument(1, "dim"), call.argument(2, "keepdim", False)
    x = number(call.operands[0])
    axes = [axes] if isinstance(axes, int) else axes or range(x.value.ndim)
    return applied("mean", (x,), {"axes": tuple(axes), "keepdims": keep})


def _with(name: str, **keys: tuple[int, str]) -> Callable[[Call], Bounded]:
    """One of our operators with arguments by place or name: ours -> theirs."""

    def compute(call: Call) -> Bounded:
        attrs = {key: call.argument(*theirs) for key, theirs in keys.items()}
        return applied(name, [number(o) for o in call.operands], attrs)

    return compute


def _concat(call: Call) -> Bounded:
    parts, axis = [number(o) for o in call.operands], call.argument(1, "dim", 0)
    value, error = (np.concatenate([getattr(p, key) for p in parts], axis) for key in ("value", "error"))
    return Bounded(value, error, parts[0].dtype)


SHARED: dict[str, Callable[[Call], Real]] = {
    **dict.fromkeys(("reshape", "flatten", "squeeze", "unsqueeze"), _reshaped),
    "permute": _permuted,
    "getitem": _item,
    "split": _split,
    "interpolate": _enlarged,
}
"""Of levels and of real numbers."""

FLOATS: dict[str, Callable[[Call], Real]] = {
    **{name: _with(name) for name in ("add", "sub", "mul", "matmul", "relu", "sigmoid", "tanh", "relu6", "linear")},
    **dict.fromkeys(("cat", "concat"), _concat),
    **{name: _convolved(name) for name in ("conv1d", "conv2d")},
    "softmax": _with("softmax", axis=(1, "dim")),
    "hardswish": _with("hard_swish"),
    "leaky_relu": _with("leaky_relu", alpha=(1, "negative_slope")),
    "clamp": _with("clip", min=(1, "min"), max=(2, "max")),
    "addmm": _addmm,
    "batch_norm": _normalised,
    "pad": _padded,
    "max_pool2d": lambda call: applied("max_pool2d", (number(call.operands[0]),), max_window(call)),
    "avg_pool2d": lambda call: applied("avg_pool2d", (number(call.operands[0]),), mean_window(call)),
    "mean": _mean,
}
"""Operators that stay in float32."""
