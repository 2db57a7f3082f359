"""Products of reflections that are given by their vectors, as LAPACK's orgqr forms them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from generators.bounds.bounded import PRECISION, U64, Bounded, gamma, rounded
from generators.graph import TensorType
from generators.ops.linear.matrices import checked, matrix, tamed
from generators.ops.spec import Attrs, Call, OpSpec, Types, unsupported

Array = np.ndarray
_NONE = unsupported("it has no such product")


def _type(operands: Types, attrs: Attrs) -> TensorType:
    return checked(operands, square=False)


def _product(lower: Array, sign: float) -> Array:
    """The first columns of H_1 H_2 ..., H = I + sign 2 v v^T / |v|^2, v a column of `lower` and 1 on the diagonal."""
    rows, columns = lower.shape[-2:]
    vectors = lower + np.eye(rows, columns)
    found = np.broadcast_to(np.eye(rows, columns), lower.shape)
    for i in reversed(range(columns)):
        v = vectors[..., i : i + 1]
        found = found + sign * 2 / np.sum(v * v, -2, keepdims=True) * v * np.sum(v * found, -2, keepdims=True)
    return found


def _reflections(args: Sequence[Bounded], call: Call) -> Bounded:
    """One reflection after the other, or in blocks I - V T V^T: any order of the same terms, each of which has a dot
    product, a factor 2 / |v|^2 (of m squares, a sum and a quotient) and a product by a vector for each reflection, and
    products by a column of T in blocks. What elements of v may be off moves v v^T / |v|^2 by 4 |e| / |v| at most, and
    |v| >= 1; the reflections are orthogonal, so that such moves add up."""
    a = tamed(args[0])
    p = PRECISION[a.dtype]
    rows, columns = a.value.shape[-2:]
    value, error = np.tril(a.value, -1), np.tril(np.where(np.isnan(a.error), np.inf, a.error), -1)
    with np.errstate(all="ignore"):
        size = _product(np.abs(value) + error, 1.0)
        steps = gamma(columns * (4 * rows + columns + 12), p.unit + U64) * size + 64 * rows * columns * p.tiny
        moved = 8 * np.sum(np.sqrt(np.sum(error * error, -2)), -1)[..., None, None]
    return rounded(_product(value, -1.0), np.where(np.isnan(steps), np.inf, steps) + moved, a.dtype)


OPERATORS: tuple[OpSpec, ...] = (
    OpSpec(
        "reflections", "linalg", (matrix(square=False),), _type, _reflections,
        torch="reflections({0})", tensorflow=_NONE, jax="reflections({0})", relax=_NONE, onnx=_NONE,
    ),
)  # fmt: skip
