"""Functions of several elements, with broadcasting as numpy has it."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np

from oracles.onnx.operators.arguments import positive, refuse
from oracles.onnx.rule import Call, Rule, Value


def _operands(call: Call) -> tuple[np.ndarray, np.ndarray]:
    """Both operands. Before version 7 the second one is broadcast only where `broadcast` says so, its axes lying from
    `axis` on, or at the end."""
    a, b = call.input(0), call.input(1)
    if call.version < 7 and call.get("broadcast", 0):
        start = positive(call.get("axis", a.ndim - b.ndim), a.ndim + 1)
        b = b.reshape((*b.shape, *[1] * (a.ndim - start - b.ndim)))
    return a, b


def _binary(function: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Rule:
    def rule(call: Call) -> list[Value]:
        return [np.asarray(function(*_operands(call)))]

    return rule


def _divide(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Of integers the quotient towards zero."""
    if a.dtype.kind not in "iu":
        return a / b
    quotient = np.floor_divide(a, b)
    return np.where((a % b != 0) & ((a < 0) != (b < 0)), quotient + 1, quotient).astype(a.dtype)


def _power(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """In the type of the base. Of integers with integer exponents exact, modulo the size of the type; a negative power
    of an integer is its value in float64 towards zero."""
    if x.dtype.kind not in "iu":
        return np.power(x, y.astype(np.float64))
    if y.dtype.kind not in "iu" or (y < 0).any():
        return np.trunc(np.power(x.astype(np.float64), y.astype(np.float64))).astype(x.dtype)
    base, left = np.broadcast_arrays(x, y.astype(np.uint64))
    result, base, left = np.ones(base.shape, x.dtype), base.copy(), left.copy()
    while left.any():
        result = np.where(left & np.uint64(1), result * base, result).astype(x.dtype)
        base, left = base * base, left >> np.uint64(1)
    return result


def _modulo(call: Call) -> list[Value]:
    """fmod: the sign of the dividend; else that of the divisor."""
    return [np.asarray((np.fmod if call.get("fmod", 0) else np.mod)(call.input(0), call.input(1)))]


def _shift(call: Call) -> list[Value]:
    """By a number outside of the type's bits all bits are lost, and a signed one keeps its sign to the right."""
    x, y = np.broadcast_arrays(call.input(0), call.input(1))
    direction = call.get("direction", "")
    if direction not in ("LEFT", "RIGHT"):
        raise refuse(call, f"direction {direction!r}")
    bits = x.dtype.itemsize * 8
    inside = (y >= 0) & (y < bits)
    amount = np.where(inside, y, 0).astype(x.dtype)
    if direction == "LEFT":
        return [np.where(inside, np.left_shift(x, amount), 0).astype(x.dtype)]
    return [np.where(inside, np.right_shift(x, amount), -(x < 0).astype(np.int8)).astype(x.dtype)]


def _folded(function: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Rule:
    def rule(call: Call) -> list[Value]:
        return [np.asarray(reduce(function, map(np.asarray, call.inputs)))]

    return rule


def _mean(call: Call) -> list[Value]:
    return [np.asarray(reduce(np.add, map(np.asarray, call.inputs)) / len(call.inputs))]


def _where(call: Call) -> list[Value]:
    return [np.where(call.input(0), call.input(1), call.input(2))]


def _equal(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.asarray(np.equal(a, b), bool)


RULES = {
    "Add": _binary(np.add),
    "And": _binary(np.logical_and),
    "BitShift": _shift,
    "BitwiseAnd": _binary(np.bitwise_and),
    "BitwiseOr": _binary(np.bitwise_or),
    "BitwiseXor": _binary(np.bitwise_xor),
    "Div": _binary(_divide),
    "Equal": _binary(_equal),
    "Greater": _binary(np.greater),
    "GreaterOrEqual": _binary(np.greater_equal),
    "Less": _binary(np.less),
    "LessOrEqual": _binary(np.less_equal),
    "Max": _folded(np.maximum),
    "Mean": _mean,
    "Min": _folded(np.minimum),
    "Mod": _modulo,
    "Mul": _binary(np.multiply),
    "Or": _binary(np.logical_or),
    "Pow": _binary(_power),
    "Sub": _binary(np.subtract),
    "Sum": _folded(np.add),
    "Where": _where,
    "Xor": _binary(np.logical_xor),
}
