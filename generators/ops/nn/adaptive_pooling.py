"""Pooling of (N, C, height, width) to a given size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from generators.bounds.bounded import Bounded
from generators.bounds.extremes import highest
from generators.bounds.sums import average, summed
from generators.graph import TensorType
from generators.ops.nn.windows import Ints, activations, given
from generators.ops.slots import ints_of
from generators.ops.spec import Attrs, Call, Draw, OpSpec, Spelling, TypeRuleError, Types

Array = np.ndarray

Cell = tuple[slice, slice]


def _output(d: Draw, operands: Types, attrs: Attrs) -> Ints:
    """Up to five cells an axis; sometimes as many as elements. More than elements make cells overlap."""
    return tuple(d.choice((1, 2, 3, size if size <= 5 else 4, 5)) for size in operands[0].shape[2:])


def _adaptive_type(operands: Types, attrs: Attrs) -> TensorType:
    x = operands[0]
    if x.rank != 4 or 0 in x.shape[1:]:
        raise TypeRuleError(f"cannot pool {x} over 2 dimensions")
    return TensorType(x.dtype, (*x.shape[:2], *ints_of(attrs, "output", 2, 1)))


def cells(size: int, count: int) -> list[tuple[int, int]]:
    """Cell i of `count` reaches from floor(i size / count) to ceil((i + 1) size / count)."""
    return [(i * size // count, -((i + 1) * size // -count)) for i in range(count)]


def _grid(call: Call) -> list[list[tuple[int, int]]]:
    """The cells along each axis."""
    (output,) = given(call.attrs, "output")
    return [cells(size, count) for size, count in zip(call.operands[0].shape[2:], output, strict=True)]


def _pooled(x: Array, call: Call, pool: Callable[[Array], Array]) -> Array:
    rows, columns = _grid(call)
    parts = [pool(x[:, :, top:bottom, left:right]) for top, bottom in rows for left, right in columns]
    return np.stack(parts, axis=-1).reshape(call.result.shape)


def _average(args: Sequence[Bounded], call: Call) -> Bounded:
    x = args[0]
    rows, columns = _grid(call)
    parts = []
    for top, bottom in rows:
        for left, right in columns:
            part = x.map(lambda a, cell=np.s_[:, :, top:bottom, left:right]: a[cell])
            count = (bottom - top) * (right - left)
            parts.append(average(summed(part, partial(np.sum, axis=(-1, -2)), count, overflows=False), count))
    value, error = (np.stack([getattr(p, name) for p in parts], axis=-1) for name in ("value", "error"))
    return Bounded(value, error, x.dtype).map(lambda a: a.reshape(call.result.shape))


def _maximum(args: Sequence[Bounded], call: Call) -> Bounded:
    return highest(args[0], lambda array: _pooled(array, call, lambda part: part.max(axis=(-1, -2))))


def _celled(text: str) -> Spelling:
    """`text` with the cells along each axis for %c."""
    return lambda call: text.replace("%c", "{}, {}".format(*_grid(call)))


adaptive_avg_pool2d = OpSpec(
    "adaptive_avg_pool2d", "pooling", (activations(2),), _adaptive_type, _average, attrs={"output": _output},
    torch="torch.nn.functional.adaptive_avg_pool2d({0}, {output})",
    tensorflow=_celled("adaptive_pool(tf.reduce_mean, {0}, %c)"), jax=_celled("adaptive_pool(jnp.mean, {0}, %c)"),
    relax="relax.op.nn.adaptive_avg_pool2d({0}, {output})", onnx=_celled('adaptive_pool(g, "ReduceMean", {0}, %c)'),
)  # fmt: skip

adaptive_max_pool2d = OpSpec(
    "adaptive_max_pool2d", "pooling", (activations(2),), _adaptive_type, _maximum, attrs={"output": _output},
    torch="torch.nn.functional.adaptive_max_pool2d({0}, {output})",
    tensorflow=_celled("adaptive_pool(tf.reduce_max, {0}, %c)"), jax=_celled("adaptive_pool(jnp.max, {0}, %c)"),
    relax=_celled("adaptive_max_pool2d({0}, %c)"), onnx=_celled('adaptive_pool(g, "ReduceMax", {0}, %c)'),
)  # fmt: skip

OPERATORS: tuple[OpSpec, ...] = (adaptive_avg_pool2d, adaptive_max_pool2d)
