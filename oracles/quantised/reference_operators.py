"""Operators on real numbers by our references, for models whose nodes say the same in another format's words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from generators.bounds.bounded import Bounded
from generators.graph import TensorType
from generators.ops import OPS
from generators.ops.spec import Call, TypeRuleError
from oracles.quantised.integers import Levels
from oracles.quantised.model import NotRecomputed

Array = np.ndarray


def applied(name: str, operands: Sequence[Bounded], attrs: Mapping[str, Any] | None = None) -> Bounded:
    """One of our operators, its result with the bound of its reference. Raises NotRecomputed where its type rule
    refuses the operands."""
    types = tuple(TensorType(o.dtype, o.value.shape) for o in operands)
    fixed = {key: tuple(v) if isinstance(v, list) else v for key, v in (attrs or {}).items()}
    try:
        result = OPS[name].result(types, fixed)
    except TypeRuleError as error:
        raise NotRecomputed(f"{name} ({error})") from error
    found = OPS[name].reference(list(operands), Call(types, fixed, result))
    # signs of zeros are lost where levels become numbers
    return replace(found, zero_sign=False)


def exactly(x: Array) -> Bounded:
    """Whole numbers as float64 that operators of real numbers compute with, exactly."""
    value = np.asarray(x, np.float64)
    return Bounded(value, np.zeros(value.shape), "float64")


def accumulated(name: str, x: Array, weight: Array, attrs: Mapping[str, Any] | None = None) -> Array:
    """Sums of products of whole numbers: exact, like those of int64."""
    return np.rint(applied(name, (exactly(x), exactly(weight)), attrs).value)


def whole(operand: Any) -> Levels:
    """An operand that has to be whole numbers."""
    if not isinstance(operand, Levels):
        raise NotRecomputed("real numbers where levels are expected")
    return operand


def fixed(operand: Any) -> Array:
    """An operand that has to be known exactly: a scale, a zero point, a shape."""
    if isinstance(operand, Levels) and not operand.reach.any():
        return operand.low
    if isinstance(operand, Bounded) and not operand.error.any():
        return operand.value
    raise NotRecomputed("an operand that is not known exactly")


def number(operand: Any) -> Bounded:
    """An operand that has to be real numbers."""
    if not isinstance(operand, Bounded):
        raise NotRecomputed("levels where real numbers are expected")
    return operand
