"""How rules read what they are given."""

from __future__ import annotations

from typing import Any

import numpy as np

from oracles.onnx.rule import Call, NoRule


def single(number: float) -> float:
    """The float32 that a default stated in decimal is."""
    return float(np.float32(number))


def integers(value: Any) -> list[int]:
    """Whole numbers of an attribute or a tensor."""
    return [int(item) for item in np.asarray(value).ravel()]


def integer(value: Any) -> int:
    """The one whole number of a tensor."""
    (number,) = integers(value)
    return number


def stated(call: Call, name: str, place: int) -> list[int] | None:
    """Whole numbers that are an attribute in early versions and an input in later ones; None where they are absent."""
    value = call.get(name, None)
    if value is None:
        value = call.input(place)
    return None if value is None else integers(value)


def positive(axis: int, rank: int) -> int:
    """An axis counted from the front. Raises ValueError where the tensor has no such axis."""
    if not -rank <= axis < rank:
        raise ValueError(f"axis {axis} of a tensor of rank {rank}")
    return axis % rank


def positives(axes: Any, rank: int) -> list[int]:
    """Axes counted from the front; none of them twice."""
    found = [positive(axis, rank) for axis in integers(axes)]
    if len(set(found)) < len(found):
        raise ValueError(f"an axis stands twice in {found}")
    return found


def along(vector: np.ndarray, rank: int, axis: int = 1) -> np.ndarray:
    """A vector that lies along one axis of tensors of this rank."""
    shape = [1] * rank
    shape[axis] = -1
    return vector.reshape(shape)


def refuse(call: Call, why: str) -> NoRule:
    """The error for a case of an operator that has no rule."""
    return NoRule(f"{call.operator} of version {call.version}: {why}")
