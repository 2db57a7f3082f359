"""Array contents: one drawn seed and one drawn distribution a leaf, so that shrinking need not walk elements."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from ml_dtypes import finfo

from generators.graph import COMPONENT, FLOATS, Graph, Leaf

Rng = np.random.Generator
Arrays = Mapping[str, np.ndarray]


def _normal(rng: Rng, n: int, dtype: str) -> np.ndarray:
    return rng.standard_normal(n)


def _uniform(rng: Rng, n: int, dtype: str) -> np.ndarray:
    return rng.uniform(0.0, 1.0, n)


def _small_integers(rng: Rng, n: int, dtype: str) -> np.ndarray:
    return rng.integers(0 if dtype.startswith("uint") else -4, 5, n)


def _halves(rng: Rng, n: int, dtype: str) -> np.ndarray:
    """Multiples of one half: ties of rounding, ties of max, zeros."""
    return rng.integers(-9, 10, n) / 2


def _with_zeros(rng: Rng, n: int, dtype: str) -> np.ndarray:
    """Normal numbers with zeros of both signs among them."""
    values = rng.standard_normal(n)
    kind = rng.integers(0, 4, n)
    return np.where(kind == 0, 0.0, np.where(kind == 1, -0.0, values))


def _tiny(rng: Rng, n: int, dtype: str) -> np.ndarray:
    """Normal numbers near the smallest one."""
    return rng.standard_normal(n) * float(finfo(dtype).tiny) * 2.0**10


def _huge(rng: Rng, n: int, dtype: str) -> np.ndarray:
    """Large, far from overflow in one product: about 1e4 of both signs."""
    return rng.standard_normal(n) * 1e4


def _hundreds(rng: Rng, n: int, dtype: str) -> np.ndarray:
    """Too large for a bare exp in float32, harmless to everything else."""
    return rng.standard_normal(n) * 1e2


def _extreme(rng: Rng, n: int, dtype: str) -> np.ndarray:
    """All magnitudes that the dtype has, log-uniform."""
    info = finfo(dtype)
    exponent = rng.uniform(np.log2(float(info.tiny)), np.log2(float(info.max)), n)
    return np.exp2(exponent) * rng.choice([-1.0, 1.0], n)


def _subnormals(rng: Rng, n: int, dtype: str) -> np.ndarray:
    return rng.uniform(-0.99, 0.99, n) * float(finfo(dtype).tiny)  # 0.999 may round up to it


def _specials(rng: Rng, n: int, dtype: str) -> np.ndarray:
    """Normal numbers with NaN, infinities and zeros among them."""
    values = rng.standard_normal(n)
    special = np.array([np.nan, np.nan, np.inf, -np.inf, 0.0, -0.0])[rng.integers(0, 6, n)]
    return np.where(rng.integers(0, 4, n) == 0, special, values)


def _infinities(rng: Rng, n: int, dtype: str) -> np.ndarray:
    values = rng.standard_normal(n)
    return np.where(rng.integers(0, 6, n) == 0, rng.choice([-np.inf, np.inf], n), values)


def _full_range(rng: Rng, n: int, dtype: str) -> np.ndarray:
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, n, dtype=dtype, endpoint=True)


def _boundaries(rng: Rng, n: int, dtype: str) -> np.ndarray:
    """Both ends and their neighbours beyond (which wrap: -1 of an unsigned dtype is its greatest), 0 to 2."""
    info = np.iinfo(dtype)
    edges = [0, 1, info.max if info.min == 0 else -1, info.max, info.min, 2, info.max - 1, info.min + 1]
    return np.array(edges, dtype)[rng.integers(0, len(edges), n)]


def beside(rng: Rng, n: int, dtype: str, numbers: Sequence[float]) -> np.ndarray:
    """Those of the numbers that the dtype holds, and its numbers next to each, in a drawn order, each once before any
    comes again; then those negated, and the second ones beside each."""
    if dtype not in FLOATS:
        info = np.iinfo(dtype)
        least, most = int(info.min), int(info.max)
        held = [min(int(number), most) for number in numbers if least <= number <= float(most)] or [0]
        beside_them = zip(*(part.tolist() for part in _neighbours(rng, n, len(held))), strict=True)
        wide = [sign * held[k] + step for k, step, sign in beside_them]
        return np.array([min(max(value, least), most) for value in wide], dtype)
    with np.errstate(over="ignore"):
        all_of_them = np.asarray(numbers, np.float64).astype(dtype)
    finite = np.unique(all_of_them[np.isfinite(all_of_them)])
    if not len(finite):
        return np.zeros(n, dtype)
    bits, largest = f"i{finite.dtype.itemsize}", np.asarray(float(finfo(dtype).max), dtype)
    chosen, steps, signs = _neighbours(rng, n, len(finite))
    size = np.abs(finite[chosen]).view(bits).astype(np.int64) + steps
    size = np.clip(size, 0, largest.view(bits).astype(np.int64)).astype(bits).view(finite.dtype)
    return np.copysign(size.astype(np.float64), signs * finite[chosen].astype(np.float64))


def _neighbours(rng: Rng, n: int, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """n times: which of so many numbers, how many steps beside it, and its sign's change."""
    which, step, sign = (axis.ravel() for axis in np.meshgrid(range(count), range(-2, 3), (1, -1), indexing="ij"))
    far = (abs(step) == 2) | (sign < 0)
    order = np.lexsort((rng.random(len(which)), far))[np.arange(n) % len(which)]
    return which[order], step[order], sign[order]


Distribution = Callable[[Rng, int, str], np.ndarray]

FLOATING: dict[str, Distribution] = {
    "normal": _normal,
    "uniform": _uniform,
    "small_integers": _small_integers,
    "halves": _halves,
    "with_zeros": _with_zeros,
    "hundreds": _hundreds,
    "huge": _huge,
    "tiny": _tiny,
    "extreme": _extreme,
    "subnormals": _subnormals,
    "infinities": _infinities,
    "specials": _specials,
}
INTEGER: dict[str, Distribution] = {
    "small_integers": _small_integers,
    "full_range": _full_range,
    "boundaries": _boundaries,
}

# How often each is drawn. Special values make much of a graph undetermined: they come to some graphs only.
FLOAT_CHOICES = (
    *("normal",) * 5,
    *("uniform",) * 2,
    *("halves",) * 3,
    *("small_integers",) * 2,
    *("with_zeros",) * 2,
    *("hundreds",) * 3,
    "huge",
)
MIXED_CHOICES = (
    "normal",
    "hundreds",
    "halves",
    "with_zeros",
    "huge",
    "tiny",
    "extreme",
    "subnormals",
    "infinities",
    "specials",
)
SMOOTH_CHOICES = (*("normal",) * 6, *("uniform",) * 3, "hundreds", "with_zeros", "halves")
NONFINITE_CHOICES = ("specials", "hundreds", "specials", "infinities", "normal")
INTEGER_CHOICES = ("small_integers", "small_integers", "full_range", "boundaries")


@dataclass(frozen=True, slots=True)
class Recipe:
    """How one leaf is filled: the name of a distribution and a seed."""

    distribution: str
    seed: int


THRESHOLDS = "thresholds"
"""Of a recipe: elements from beside an operator's thresholds."""


def fill(leaf: Leaf, recipe: Recipe, numbers: Sequence[float] = ()) -> np.ndarray:
    """The leaf's array: a new C-contiguous array of its dtype and shape, within its domain. numbers: thresholds, for
    the recipe of that name."""
    dtype, n = leaf.type.dtype, leaf.type.size
    rng = np.random.default_rng(recipe.seed)
    if dtype in COMPONENT:  # both parts from the same distribution
        part = COMPONENT[dtype]
        with np.errstate(over="ignore"):
            parts = np.asarray(_drawn(rng, 2 * n, part, recipe.distribution, numbers)).astype(part)
        return parts.view(dtype).reshape(leaf.type.shape)
    if leaf.domain is not None:
        low, high = leaf.domain
        values = rng.uniform(low, high, n) if dtype in FLOATS else rng.integers(low, high, n, endpoint=True)
    elif dtype == "bool":
        values = rng.integers(0, 2, n)
    else:
        values = _drawn(rng, n, dtype, recipe.distribution, numbers)
    with np.errstate(over="ignore"):
        return np.asarray(values).astype(dtype).reshape(leaf.type.shape)


def _drawn(rng: Rng, n: int, dtype: str, distribution: str, numbers: Sequence[float]) -> np.ndarray:
    if distribution == THRESHOLDS:
        return beside(rng, n, dtype, numbers)
    return (FLOATING if dtype in FLOATS else INTEGER)[distribution](rng, n, dtype)


def fill_all(graph: Graph, recipes: Mapping[str, Recipe], numbers: Sequence[float] = ()) -> dict[str, np.ndarray]:
    """Arrays of all leaves by name."""
    return {leaf.name: fill(leaf, recipes[leaf.name], numbers) for leaf in graph.leaves}
