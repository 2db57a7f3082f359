"""Logic functions: connectives of booleans, and what kind of number an element is (NaN, infinite, finite)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from generators.bounds.bounded import exact
from generators.ops.elementwise.records import binary, boolean_result, numpy_unary, unary
from generators.ops.elementwise.references import logic
from generators.ops.slots import boolean, broadcastable
from generators.ops.spec import OpSpec, Reference

Array = np.ndarray
Function = Callable[[Array], Array]


def _logical(name: str, f: Callable[[Array, Array], Array], deciding: bool | None, onnx: str) -> OpSpec:
    return binary(
        name, (boolean(), broadcastable(0)), logic(f, deciding),
        torch=f"torch.{name}({{0}}, {{1}})", tensorflow=f"tf.math.{name}({{0}}, {{1}})",
        jax=f"jnp.{name}({{0}}, {{1}})", relax=f"relax.op.{name}({{0}}, {{1}})",
        onnx=f'g.op("{onnx}", {{0}}, {{1}})',
    )  # fmt: skip


def _infinite(sign: float) -> Reference:
    return lambda args, call: exact(args[0].value == sign * np.inf, "bool", args[0].undetermined)


def _equals(number: str) -> str:
    return f"relax.op.equal({{0}}, relax.const({number}, {{dtype0}}))"


def _predicate(f: Function) -> Reference:
    return lambda args, call: exact(f(args[0].value), "bool", args[0].undetermined)


OPERATORS: tuple[OpSpec, ...] = (
    _logical("logical_and", np.logical_and, False, "And"),
    _logical("logical_or", np.logical_or, True, "Or"),
    _logical("logical_xor", np.logical_xor, None, "Xor"),
    unary("logical_not", _predicate(np.logical_not), "Not", operand=boolean()),
    unary("isnan", _predicate(np.isnan), "IsNaN", tensorflow="tf.math.is_nan", result=boolean_result),
    unary("isinf", _predicate(np.isinf), "IsInf", tensorflow="tf.math.is_inf", result=boolean_result),
    unary("isfinite", _predicate(np.isfinite),
          'g.op("Not", g.op("Or", g.op("IsNaN", {0}), g.op("IsInf", {0})))',
          tensorflow="tf.math.is_finite", result=boolean_result),
    numpy_unary(
        "isposinf", _infinite(1.0), result=boolean_result, tensorflow="tf.equal({0}, float('inf'))",
        relax=_equals("float('inf')"), onnx='g.op("IsInf", {0}, detect_negative=0)',
    ),
    numpy_unary(
        "isneginf", _infinite(-1.0), result=boolean_result, tensorflow="tf.equal({0}, -float('inf'))",
        relax=_equals("-float('inf')"), onnx='g.op("IsInf", {0}, detect_positive=0)',
    ),
)  # fmt: skip
