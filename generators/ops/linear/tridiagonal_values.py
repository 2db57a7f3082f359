"""Eigenvalues of symmetric matrices of three diagonals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from generators.bounds.bounded import Bounded, rounded
from generators.graph import TensorType
from generators.ops.linear.decompositions import iterated
from generators.ops.linear.matrices import tamed
from generators.ops.slots import draw_dtype
from generators.ops.spec import Attrs, Call, Draw, OpSpec, Slot, TypeRuleError, Types, unsupported

Array = np.ndarray

_FLOATS = ("float32", "float64")
_NONE = unsupported("it has no such operator")


def _accepts(type_: TensorType, earlier: Types) -> bool:
    return type_.dtype in _FLOATS and type_.rank == 2 and type_.shape[0] == 2 and 2 <= type_.shape[1] <= 33


def _fresh(d: Draw, earlier: Types) -> TensorType:
    return TensorType(draw_dtype(d, _FLOATS), (2, d.choice((3, 2, 5, 9, 17, 33))))


_DIAGONALS = Slot(_accepts, _fresh)


def _type(operands: Types, attrs: Attrs) -> TensorType:
    if not _accepts(operands[0], ()):
        raise TypeRuleError(f"{operands[0]} holds no two diagonals")
    return TensorType(operands[0].dtype, operands[0].shape[1:])


def _values(args: Sequence[Bounded], call: Call) -> Bounded:
    """In rising order. Bisection (both frameworks) ends at intervals of u |A|, and its counts are those of a matrix
    next to this one (Demmel, Applied Numerical Linear Algebra, lemma 5.4): within what is allowed to iterations."""
    x = tamed(args[0])

    def whole(rows: Array) -> Array:
        beside = np.diag(rows[1, :-1], 1)
        return np.diag(rows[0]) + beside + beside.T

    a = x.map(whole)
    value = np.linalg.eigvalsh(a.value)
    return rounded(value, np.broadcast_to(iterated(a), value.shape), a.dtype)


OPERATORS: tuple[OpSpec, ...] = (
    OpSpec(
        "tridiagonal_eigenvalues", "linalg", (_DIAGONALS,), _type, _values, torch=_NONE,
        tensorflow="tridiagonal_eigenvalues({0})", jax="tridiagonal_eigenvalues({0})", relax=_NONE, onnx=_NONE,
    ),
)  # fmt: skip
