"""What second derivatives of linear systems and decompositions lose, in units of the unit roundoff: the formulas of
`matrix_noise` (Giles 2008), differentiated once more along the tangents, all terms without their signs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from generators.bounds.bounded import Bounded
from generators.ops.linear.matrices import SCALED, SIDE
from generators.ops.spec import Call
from oracles.derivatives.rounding.matrix_first_derivatives import (
    from_gram,
    inverses,
    matrix_of,
    norm,
    oriented,
    transposed,
)

Array = np.ndarray
Product = Callable[[Array, Array], Array]


@dataclass(frozen=True)
class Sized:
    """Magnitudes: of a matrix; of what it moves by along the tangents; of what it may be off by; of what its movement
    may be off by. Two numbers whose squares vanish, one for the tangents and one for the roundings."""

    size: Array
    moved: Array
    lost: Array
    both: Array

    def times(self, other: Sized, product: Product = np.matmul) -> Sized:
        """A bilinear product of both."""
        return Sized(
            product(self.size, other.size),
            product(self.moved, other.size) + product(self.size, other.moved),
            product(self.lost, other.size) + product(self.size, other.lost),
            product(self.both, other.size)
            + product(self.moved, other.lost)
            + product(self.lost, other.moved)
            + product(self.size, other.both),
        )

    def __matmul__(self, other: Sized) -> Sized:
        return self.times(other)

    def __add__(self, other: Sized) -> Sized:
        return Sized(*(a + b for a, b in zip(self.parts, other.parts, strict=True)))

    @property
    def parts(self) -> tuple[Array, Array, Array, Array]:
        return self.size, self.moved, self.lost, self.both

    @property
    def transposed(self) -> Sized:
        return Sized(*map(transposed, self.parts))


def _given(size: Array, moved: Array | None = None) -> Sized:
    """What is off by nothing itself."""
    none = np.zeros(size.shape)
    return Sized(size, none if moved is None else moved, none, none)


def _inverted(a: Array, moved: Array, both: Array | None = None) -> Sized:
    """The inverse of a matrix that moves by so much, which itself may be off: d A^-1 = -A^-1 dA A^-1."""
    _, inverse, worn = inverses(a)
    off = worn @ moved @ inverse + inverse @ moved @ worn
    return Sized(inverse, inverse @ moved @ inverse, worn, off if both is None else off + inverse @ both @ inverse)


def noise(
    op: str,
    operands: Sequence[Bounded],
    position: int,
    result: Bounded,
    call: Call,
    g: Array,
    tangents: Sequence[Array],
) -> Array:
    """What each element of `sum_i g_i d/de J_ij(x + e t)` may be off by; g, tangents: magnitudes."""
    x, t = np.abs(operands[0].value), tangents[0]
    a = matrix_of(op, operands[0], call).value
    along = t @ transposed(x) + x @ transposed(t) if from_gram(op, call) else oriented(op, call, t)
    if op == "cholesky":
        found = _through_factor(a, along, _given(transposed(g) if call.attrs["upper"] else g))
    elif op in ("det", "slogdet"):
        if op == "slogdet" and call.attrs["pick"] != "logarithm":
            return np.zeros(x.shape)
        found = _inverted(a, along).transposed.times(_determinant(op, a, result, along), np.multiply)
        found = found.times(_given(g[..., None, None]), np.multiply)
    elif op == "inverse":
        inverse = _inverted(a, along).transposed
        found = inverse @ _given(g) @ inverse
    elif op in ("solve", "triangular_solve"):
        inverse = _inverted(a, along)
        found = inverse.transposed @ _given(g)
        if position == 1:
            return found.both
        found = found @ (inverse @ _given(np.abs(operands[1].value), tangents[1])).transposed
    elif call.attrs["form"] in SCALED:
        return np.full(x.shape, np.inf)  # products with inverses overflow on the way
    else:
        found = _by_norms(op, a, g, along)
    if from_gram(op, call):
        found = (found + found.transposed) @ _given(x, t)
    return oriented(op, call, found.both)


def _through_factor(a: Array, along: Array, g: Sized) -> Sized:
    """By A = L L^T: L^-T P(L^T g) L^-1, with dL = L P(L^-1 dA L^-T), P the lower triangle with half the diagonal."""
    factor = np.linalg.cholesky(a)
    size = np.abs(factor)
    _, inverse, worn = inverses(factor)
    moved = size @ np.tril(inverse @ along @ transposed(inverse))
    both = size @ np.tril(worn @ along @ transposed(inverse) + inverse @ along @ transposed(worn))
    back = _inverted(factor, moved, both)
    lower = Sized(size, moved, np.zeros(size.shape), both)
    return back.transposed @ (lower.transposed @ g) @ back


def _determinant(op: str, a: Array, result: Bounded, along: Array) -> Sized:
    """What A^-T is multiplied with."""
    if op == "slogdet":
        return _given(np.ones((*result.value.shape, 1, 1)))
    size = np.abs(result.value)[..., None, None]
    _, inverse, worn = inverses(a)
    moved, both = (np.sum(transposed(v) * along, axis=(-2, -1), keepdims=True) for v in (inverse, worn))
    return Sized(size, size * moved, np.zeros(size.shape), size * both)


def _by_norms(op: str, a: Array, g: Array, along: Array) -> Sized:
    """Products of orthogonal factors, whose derivatives divide by the gaps between the values, or by the least of
    them; a gap is off by as many of its roundings as the greatest value is larger."""
    values = np.linalg.svd(a, compute_uv=False)
    t, wide = norm(along), np.ones(a.shape)
    if op in ("eigenvalues", "singular_values"):
        size, signed = norm(g[..., None]), -values
        if op == "eigenvalues":
            signed = np.linalg.eigvalsh(a + transposed(a))
        gap = np.min(np.diff(signed, axis=-1), axis=-1, initial=np.inf)
        if a.shape[-2] > a.shape[-1]:
            gap = np.minimum(gap, values[..., -1])
        gap, top = (v[..., None, None] for v in (gap, np.max(np.abs(signed), axis=-1)))
        moved = 4 * SIDE * size * t / gap
        return Sized(size * wide, moved * wide, 4 * SIDE * size * wide, moved * np.square(1 + top / gap) * wide)
    least = values[..., -1:, None]
    condition = values[..., :1, None] / least
    steep = condition * np.square(1 + condition) / least if op == "qr_factor" else np.square(1 + condition) / least**3
    none = np.zeros(a.shape)
    return Sized(none, none, none, 4 * SIDE * norm(g) * t * steep * wide)
