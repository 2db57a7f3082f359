"""Operators of ONNX on real numbers, and those that only move elements, as ONNX documents them
(https://onnx.ai/onnx/operators/)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from generators.bounds.bounded import Bounded
from oracles.quantised.integers import Levels
from oracles.quantised.model import NotRecomputed, Operation, Real
from oracles.quantised.reference_operators import applied, exactly, fixed, number

Array = np.ndarray
Operands = Sequence[Real | None]


def _unpadded(node: Operation) -> None:
    if node.attrs.get("auto_pad", "NOTSET") not in ("NOTSET", "") or node.attrs.get("ceil_mode"):
        raise NotRecomputed(f"{node.op} with padding of its own")


def window(node: Operation, kernel: Sequence[int]) -> dict:
    """Attributes of a convolution or a pooling, in our words."""
    _unpadded(node)
    n = len(kernel)
    return {
        "stride": node.attrs.get("strides", [1] * n),
        "dilation": node.attrs.get("dilations", [1] * n),
        "padding": node.attrs.get("pads", [0] * 2 * n),
    }


def symmetric(node: Operation, pads: Sequence[int]) -> list[int]:
    """Padding that is alike in front and behind."""
    n = len(pads) // 2
    if list(pads[:n]) != list(pads[n:]):
        raise NotRecomputed(f"{node.op} with padding that differs")
    return list(pads[:n])


def convolved(node: Operation, operands: Operands) -> Bounded:
    """Conv: with or without a bias for each channel."""
    given = [number(o) for o in operands if o is not None]
    kernel = given[1].value.shape[2:]
    attrs = {**window(node, kernel), "groups": node.attrs.get("group", 1)}
    result = applied(f"conv{len(kernel)}d", given[:2], attrs)
    if len(given) < 3:
        return result
    bias = given[2].map(lambda b: b.reshape(-1, *[1] * len(kernel)))
    return applied("add", (result, bias))


def gemm(node: Operation, operands: Operands) -> Bounded:
    """Gemm: a product of matrices, either of them transposed, plus what broadcasts."""
    given = [number(o) for o in operands if o is not None]
    a = given[0].map(np.transpose) if node.attrs.get("transA", 0) else given[0]
    b = given[1].map(np.transpose) if node.attrs.get("transB", 0) else given[1]
    product = _times(applied("matmul", (a, b)), node.attrs.get("alpha", 1.0))
    if len(given) < 3:
        return product
    return applied("add", (product, _times(given[2], node.attrs.get("beta", 1.0))))


def _times(x: Bounded, factor: float) -> Bounded:
    """A product with a number that float32 holds."""
    value = np.asarray(np.float32(factor), np.float64)
    return x if factor == 1.0 else applied("mul", (x, Bounded(value, np.zeros(()), x.dtype)))


def max_pool(node: Operation, operands: Operands) -> Real:
    """MaxPool, of real numbers or of levels."""
    kernel = node.attrs["kernel_shape"]
    attrs = {**window(node, kernel), "kernel": kernel}
    attrs["padding"] = symmetric(node, attrs["padding"])
    x = operands[0]
    if isinstance(x, Levels):
        low, high = (applied(f"max_pool{len(kernel)}d", (exactly(v),), attrs).value for v in (x.low, x.high))
        return Levels(low, high, x.dtype)
    return applied(f"max_pool{len(kernel)}d", (number(x),), attrs)


def avg_pool(node: Operation, operands: Operands) -> Bounded:
    kernel = node.attrs["kernel_shape"]
    attrs = {**window(node, kernel), "kernel": kernel, "count_include_pad": bool(node.attrs.get("count_include_pad"))}
    if set(attrs.pop("dilation")) != {1}:
        raise NotRecomputed("AveragePool with dilation")
    attrs["padding"] = symmetric(node, attrs["padding"])
    return applied(f"avg_pool{len(kernel)}d", (number(operands[0]),), attrs)


def mean(name: str) -> Callable[[Operation, Operands], Bounded]:
    def compute(node: Operation, operands: Operands) -> Bounded:
        x = number(operands[0])
        given = len(operands) > 1 and operands[1] is not None
        axes = [int(a) for a in fixed(operands[1])] if given else node.attrs.get("axes")
        if not axes and node.attrs.get("noop_with_empty_axes"):
            raise NotRecomputed(f"{node.op} of no axis")
        axes = axes or list(range(x.value.ndim))
        return applied(name, (x,), {"axes": axes, "keepdims": bool(node.attrs.get("keepdims", 1))})

    return compute


def _clip(node: Operation, operands: Operands) -> Bounded:
    x = number(operands[0])
    ends = [fixed(o) if o is not None else None for o in (*operands[1:], None, None)][:2]
    low, high = (-np.inf if ends[0] is None else ends[0], np.inf if ends[1] is None else ends[1])
    value = np.clip(x.value, low, high)
    return Bounded(value, x.error, x.dtype)


def _softmax(node: Operation, operands: Operands) -> Bounded:
    return applied("softmax", (number(operands[0]),), {"axis": node.attrs.get("axis", -1)})


def _global_pool(node: Operation, operands: Operands) -> Bounded:
    x = number(operands[0])
    return applied("mean", (x,), {"axes": tuple(range(2, x.value.ndim)), "keepdims": True})


def _leaky(node: Operation, operands: Operands) -> Bounded:
    alpha = float(np.float32(node.attrs.get("alpha", 0.01)))
    return applied("leaky_relu", (number(operands[0]),), {"alpha": alpha})


def _batch_norm(node: Operation, operands: Operands) -> Bounded:
    given = [number(o) for o in operands]
    return applied("batch_norm", given, {"epsilon": float(np.float32(node.attrs.get("epsilon", 1e-5)))})


def _quick_gelu(node: Operation, operands: Operands) -> Bounded:
    if node.attrs.get("alpha", 1.702) != 1.0:
        raise NotRecomputed("QuickGelu with a factor")
    return applied("silu", (number(operands[0]),))


def _hard_sigmoid(node: Operation, operands: Operands) -> Bounded:
    """max(0, min(1, alpha x + beta))."""
    alpha, beta = (Bounded(np.asarray(np.float32(node.attrs.get(key, default)), np.float64), np.zeros(()), "float32")
                   for key, default in (("alpha", 0.2), ("beta", 0.5)))  # fmt: skip
    line = applied("add", (applied("mul", (number(operands[0]), alpha)), beta))
    return Bounded(np.clip(line.value, 0.0, 1.0), line.error, line.dtype)


def _named(name: str) -> Callable[[Operation, Operands], Bounded]:
    def compute(node: Operation, operands: Operands) -> Bounded:
        return applied(name, [number(o) for o in operands if o is not None])

    return compute


REALS: dict[str, Callable[[Operation, Operands], Real]] = {
    "Conv": convolved,
    "Gemm": gemm,
    "MatMul": _named("matmul"),
    "MaxPool": max_pool,
    "AveragePool": avg_pool,
    "GlobalAveragePool": _global_pool,
    "ReduceMean": mean("mean"),
    "ReduceSum": mean("sum"),
    "Clip": _clip,
    "Softmax": _softmax,
    "LeakyRelu": _leaky,
    "BatchNormalization": _batch_norm,
    "QuickGelu": _quick_gelu,
    "HardSigmoid": _hard_sigmoid,
    "HardSwish": _named("hard_swish"),
    **{
        op: _named(name)
        for op, name in {
            "Add": "add",
            "Sub": "sub",
            "Mul": "mul",
            "Div": "div",
            "Relu": "relu",
            "Sigmoid": "sigmoid",
            "Tanh": "tanh",
            "Max": "maximum",
            "Min": "minimum",
            "Neg": "neg",
            "Abs": "abs",
            "Exp": "exp",
        }.items()
    },
}
"""Operators that compute."""

# ---- those that only move elements ---------------------------------------------------------------------


def _ints(operand: Real | None) -> list[int]:
    return [int(v) for v in fixed(operand)]


def _reshape(node: Operation, operands: Operands, x: Array) -> Array:
    shape = _ints(operands[1])
    if not node.attrs.get("allowzero"):
        shape = [x.shape[i] if size == 0 else size for i, size in enumerate(shape)]
    return x.reshape(shape)


def _squeeze(node: Operation, operands: Operands, x: Array) -> Array:
    axes = _ints(operands[1]) if len(operands) > 1 else [i for i, n in enumerate(x.shape) if n == 1]
    return np.squeeze(x, tuple(axes))


def _unsqueeze(node: Operation, operands: Operands, x: Array) -> Array:
    return np.expand_dims(x, tuple(_ints(operands[1])))


def _flatten(node: Operation, operands: Operands, x: Array) -> Array:
    axis = node.attrs.get("axis", 1)
    axis = axis + x.ndim if axis < 0 else axis
    return x.reshape(int(np.prod(x.shape[:axis])), -1)


def _sliced(node: Operation, operands: Operands, x: Array) -> Array:
    starts, ends = _ints(operands[1]), _ints(operands[2])
    axes = _ints(operands[3]) if len(operands) > 3 and operands[3] is not None else list(range(len(starts)))
    steps = _ints(operands[4]) if len(operands) > 4 and operands[4] is not None else [1] * len(starts)
    index: list[slice] = [slice(None)] * x.ndim
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        size = x.shape[axis]
        start = start + size if start < 0 else start
        end = end + size if end < 0 else end
        if step < 0:
            start, end = min(max(start, 0), size - 1), min(max(end, -1), size - 1)
            index[axis] = slice(start, None if end < 0 else end, step)
        else:
            index[axis] = slice(min(max(start, 0), size), min(max(end, 0), size), step)
    return x[tuple(index)]


def _expanded(node: Operation, operands: Operands, x: Array) -> Array:
    return np.broadcast_to(x, np.broadcast_shapes(x.shape, tuple(_ints(operands[1]))))


def _gathered(node: Operation, operands: Operands, x: Array) -> Array:
    return np.take(x, fixed(operands[1]).astype(np.int64), axis=node.attrs.get("axis", 0))


def _transposed(node: Operation, operands: Operands, x: Array) -> Array:
    return np.transpose(x, node.attrs.get("perm"))


def _tiled(node: Operation, operands: Operands, x: Array) -> Array:
    return np.tile(x, _ints(operands[1]))


def _same(node: Operation, operands: Operands, x: Array) -> Array:
    return x


MOVES: dict[str, Callable[[Operation, Operands, Array], Array]] = {
    "Reshape": _reshape,
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
    "Flatten": _flatten,
    "Slice": _sliced,
    "Expand": _expanded,
    "Gather": _gathered,
    "Transpose": _transposed,
    "Tile": _tiled,
    "Identity": _same,
}
"""Operators that return elements of their first operand, with others or without."""


def moved(node: Operation, operands: Operands, index: int) -> Real:
    """The result of an operator that moves elements, of levels or of real numbers."""
    x = operands[0]
    if x is None:
        raise NotRecomputed(f"{node.op} of nothing")
    if node.op == "Split":
        axis = node.attrs.get("axis", 0)
        sizes = _ints(operands[1]) if len(operands) > 1 and operands[1] is not None else None
        if sizes is None:
            raise NotRecomputed("Split without sizes")
        start = sum(sizes[:index])
        return x.map(lambda v: np.take(v, range(start, start + sizes[index]), axis))
    return x.map(lambda v: MOVES[node.op](node, operands, v))


def padded(node: Operation, operands: Operands) -> Real:
    """Pad with a constant; less than nothing cuts off."""
    x, pads = operands[0], _ints(operands[1])
    if x is None or node.attrs.get("mode", "constant") != "constant" or (len(operands) > 3 and operands[3] is not None):
        raise NotRecomputed("Pad of another kind")
    given = operands[2] if len(operands) > 2 else None
    constant = np.zeros(()) if given is None else fixed(given)
    n = len(pads) // 2
    ends = [(max(a, 0), max(b, 0)) for a, b in zip(pads[:n], pads[n:], strict=True)]
    cut = tuple(slice(max(-a, 0), size + min(b, 0)) for a, b, size in zip(pads[:n], pads[n:], _shape(x), strict=True))
    if isinstance(x, Levels):
        return x.map(lambda v: np.pad(v[cut], ends, constant_values=float(constant)))
    value, error = np.pad(x.value[cut], ends, constant_values=float(constant)), np.pad(x.error[cut], ends)
    return Bounded(value, error, x.dtype)


def _shape(x: Real) -> tuple[int, ...]:
    return x.low.shape if isinstance(x, Levels) else x.value.shape


def joined(node: Operation, operands: Operands) -> Real:
    """Concat, of levels or of real numbers."""
    axis, parts = node.attrs["axis"], [o for o in operands if o is not None]
    if all(isinstance(part, Levels) for part in parts):
        low, high = (np.concatenate([getattr(p, end) for p in parts], axis) for end in ("low", "high"))
        return Levels(low, high, parts[0].dtype)
    reals = [number(part) for part in parts]
    value, error = (np.concatenate([getattr(p, what) for p in reals], axis) for what in ("value", "error"))
    return Bounded(value, error, reals[0].dtype)
