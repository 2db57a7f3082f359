"""Pooling of (N, C, spatial…) to a given size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from math import prod

import numpy as np

from generators.bounds.bounded import Bounded
from generators.bounds.extremes import greatest, highest
from generators.bounds.sums import average, summed
from generators.graph import TensorType
from generators.ops.composed import stacked
from generators.ops.nn.windows import Ints, activations, given
from generators.ops.slots import ints_of
from generators.ops.spec import (
    Attrs,
    Call,
    Draw,
    OpSpec,
    Reference,
    ResultRule,
    Spelling,
    TypeRuleError,
    Types,
    unsupported,
)

Array = np.ndarray


def _output(d: Draw, operands: Types, attrs: Attrs) -> Ints:
    """Up to five cells an axis; sometimes as many as elements. More than elements make cells overlap."""
    return tuple(d.choice((1, 2, 3, size if size <= 5 else 4, 5)) for size in operands[0].shape[2:])


def _type(spatial: int, dtype: str = "") -> ResultRule:
    def rule(operands: Types, attrs: Attrs) -> TensorType:
        x = operands[0]
        if x.rank != spatial + 2 or 0 in x.shape[1:]:
            raise TypeRuleError(f"cannot pool {x} over {spatial} dimensions")
        return TensorType(dtype or x.dtype, (*x.shape[:2], *ints_of(attrs, "output", spatial, 1)))

    return rule


def cells(size: int, count: int) -> list[tuple[int, int]]:
    """Cell i of `count` reaches from floor(i size / count) to ceil((i + 1) size / count)."""
    return [(i * size // count, -((i + 1) * size // -count)) for i in range(count)]


def _grid(call: Call) -> list[list[tuple[int, int]]]:
    """The cells along each axis."""
    (output,) = given(call.attrs, "output")
    return [cells(size, count) for size, count in zip(call.operands[0].shape[2:], output, strict=True)]


def _boxes(call: Call) -> list[tuple[slice, ...]]:
    """Every cell, the last axis fastest."""
    return [tuple(slice(*pair) for pair in box) for box in product(*_grid(call))]


def _cell(x: Array, box: tuple[slice, ...]) -> Array:
    """The elements of a cell, along one axis."""
    part = x[(..., *box)]
    return part.reshape(*x.shape[:2], prod(part.shape[2:]))


def _pooled(x: Array, call: Call, pool: Callable[[Array], Array]) -> Array:
    parts = [pool(_cell(x, box)) for box in _boxes(call)]
    return np.stack(parts, axis=-1).reshape(call.result.shape)


def _average(args: Sequence[Bounded], call: Call) -> Bounded:
    parts = []
    for box in _boxes(call):
        part = args[0].map(lambda a, box=box: _cell(a, box))
        count = part.value.shape[-1]
        parts.append(average(summed(part, partial(np.sum, axis=-1), count, overflows=False), count))
    return stacked(*parts, axis=-1).map(lambda a: a.reshape(call.result.shape))


def _maximum(args: Sequence[Bounded], call: Call) -> Bounded:
    return highest(args[0], lambda array: _pooled(array, call, lambda part: part.max(axis=-1)))


def _maximum_place(args: Sequence[Bounded], call: Call) -> Bounded:
    """Counted along the flattened image; any of those that may be the greatest."""
    x = args[0]
    flat = np.broadcast_to(np.arange(prod(x.value.shape[2:])).reshape(x.value.shape[2:]), x.value.shape)
    parts = []
    for box in _boxes(call):
        within = x.map(lambda a, box=box: _cell(a, box))
        parts.append(greatest(within, _cell(flat, box)))
    return stacked(*parts, axis=-1).map(lambda a: a.reshape(call.result.shape))


def _celled(text: str) -> Spelling:
    """`text` with the cells along each axis for %c."""
    return lambda call: text.replace("%c", ", ".join(map(repr, _grid(call))))


_NO_LINES = unsupported("its composition is of images")


def _adaptive(kind: str, spatial: int, reference: Reference) -> OpSpec:
    """kind: avg or max."""
    reduce = {"avg": "mean", "max": "max"}[kind]
    name = f"adaptive_{kind}_pool{spatial}d"
    onnx = _celled(f'adaptive_pool(g, "Reduce{reduce.title()}", {{0}}, %c)')
    relax: Spelling = f"relax.op.nn.{name}({{0}}, {{output}})"
    if kind == "max":
        relax = _celled(f"{name}({{0}}, %c)") if spatial == 2 else _NO_LINES
    return OpSpec(
        name, "pooling", (activations(spatial),), _type(spatial), reference, attrs={"output": _output},
        torch=f"torch.nn.functional.{name}({{0}}, {{output}})",
        tensorflow=_celled(f"adaptive_pool(tf.reduce_{reduce}, {{0}}, %c)"),
        jax=_celled(f"adaptive_pool(jnp.{reduce}, {{0}}, %c)"),
        relax=relax, onnx=onnx if spatial == 2 else _NO_LINES,
    )  # fmt: skip


_NO_PLACES = unsupported("its pooling gives no places")


def _places(spatial: int) -> OpSpec:
    name = f"adaptive_max_pool{spatial}d"
    return OpSpec(
        f"{name}_places", "pooling", (activations(spatial),), _type(spatial, "int64"), _maximum_place,
        attrs={"output": _output},
        torch=f"torch.nn.functional.{name}({{0}}, {{output}}, return_indices=True)[1]",
        tensorflow=_NO_PLACES, jax=_NO_PLACES, relax=_NO_PLACES, onnx=_NO_PLACES,
    )  # fmt: skip


OPERATORS: tuple[OpSpec, ...] = (
    *(_adaptive("avg", spatial, _average) for spatial in (2, 1, 3)),
    *(_adaptive("max", spatial, _maximum) for spatial in (2, 1, 3)),
    *(_places(spatial) for spatial in (1, 2, 3)),
)
