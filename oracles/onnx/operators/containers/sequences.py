"""Sequences of tensors, and optional values."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from oracles.onnx.operators.arguments import integer, integers, positive, refuse
from oracles.onnx.rule import Call, Value


def _place(call: Call, value: np.ndarray, count: int, last: int) -> int:
    """A place counted from the front, at most `last`."""
    place = integer(value)
    if not -count <= place <= last:
        raise ValueError(f"place {place} in a sequence of {count}")
    return place + count if place < 0 else place


def _construct(call: Call) -> list[Value]:
    return [list(call.inputs)]


def _at(call: Call) -> list[Value]:
    items = call.input(0)
    return [items[_place(call, call.input(1), len(items), len(items) - 1)]]


def _insert(call: Call) -> list[Value]:
    items, new, where = call.input(0), call.input(1), call.input(2)
    place = len(items) if where is None else _place(call, where, len(items), len(items))
    return [[*items[:place], new, *items[place:]]]


def _erase(call: Call) -> list[Value]:
    """The last one, unless a place is given."""
    items, where = call.input(0), call.input(1)
    place = len(items) - 1 if where is None else _place(call, where, len(items), len(items) - 1)
    if place < 0:
        raise ValueError("an empty sequence has nothing to erase")
    return [items[:place] + items[place + 1 :]]


def _length(call: Call) -> list[Value]:
    return [np.array(len(call.input(0)), np.int64)]


def _empty(call: Call) -> list[Value]:
    return [[]]


def _concatenate(call: Call) -> list[Value]:
    """Along an axis that is there, or along a new one."""
    items, axis = call.input(0), call.get("axis", 0)
    if not items:
        raise refuse(call, "an empty sequence")
    new = bool(call.get("new_axis", 0))
    axis = positive(axis, items[0].ndim + new)
    return [np.stack(items, axis) if new else np.concatenate(items, axis)]


def _split(call: Call) -> list[Value]:
    """Parts of one length, of the stated ones, or of one element, which then may lose the axis."""
    x, split = call.input(0), call.input(1)
    axis = positive(call.get("axis", 0), x.ndim)
    size = x.shape[axis]
    if split is not None and split.ndim:
        lengths = integers(split)
        if sum(lengths) != size:
            raise ValueError(f"parts of {lengths} of {size}")
    else:
        step = 1 if split is None else integer(split)
        lengths = [min(step, size - start) for start in range(0, size, step)]
    ends = np.cumsum([0, *lengths])
    parts = [np.take(x, np.arange(start, end), axis) for start, end in pairwise(ends)]
    if split is None and not call.get("keepdims", 1):
        parts = [part.squeeze(axis) for part in parts]
    return [parts]


def _optional(call: Call) -> list[Value]:
    return [call.input(0)]


def _element(call: Call) -> list[Value]:
    if call.input(0) is None:
        raise refuse(call, "the element of an empty optional value")
    return [call.input(0)]


def _has_element(call: Call) -> list[Value]:
    return [np.array(call.input(0) is not None)]


RULES = {
    "ConcatFromSequence": _concatenate,
    "Optional": _optional,
    "OptionalGetElement": _element,
    "OptionalHasElement": _has_element,
    "SequenceAt": _at,
    "SequenceConstruct": _construct,
    "SequenceEmpty": _empty,
    "SequenceErase": _erase,
    "SequenceInsert": _insert,
    "SequenceLength": _length,
    "SplitToSequence": _split,
}
