"""What a correct evaluation of a whole network may return. Running error bounds of real networks blow up, so the noise
floor is measured: the network is run in float64, exactly and several times with random rounding errors (Monte Carlo
arithmetic, D. S. Parker 1997). The root mean square of what moves an element, times FACTOR, is allowed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from generators.bounds.bounded import PRECISION, Bounded
from generators.graph import COMPONENT, TensorType
from oracles.judge.compare import Expected

RUNS = 8
FACTOR = 8.0
"""Of the noise of an element, which is estimated from its own runs and from all elements of the same sample and output,
half each (which elements eight runs happen to move little is chance): 8 standard deviations where the noise is the same
everywhere, and for a single element that is noisier than all others 5.7 of its own, which Student's t of 8 degrees of
freedom exceeds with a probability of 5e-4. The errors of correct runs are smaller than the noise: it has each sum made
one term after the other, which fast kernels do not (SIMD, blocks)."""
OWN = 4
"""Roundings of the value itself that are allowed beside."""
CHAOS = 0.25
"""Where what is allowed is this part of the greatest element of a sample, nothing can be told of it."""


def expect(
    names: Sequence[str], dtypes: Sequence[str], exact: Sequence[np.ndarray], noisy: Sequence[np.ndarray]
) -> Expected:
    """What a correct run returns. dtypes: of the model's outputs; exact: their float64 values; noisy: the same with
    noise, runs along a new first axis. Integers and booleans that noise changes are undetermined, all others exact."""
    types = tuple(TensorType(dtype, array.shape) for dtype, array in zip(dtypes, exact, strict=True))
    values = tuple(_bounded(d, e, n) for d, e, n in zip(dtypes, exact, noisy, strict=True))
    return Expected(tuple(names), types, values)


def _bounded(dtype: str, exact: np.ndarray, noisy: np.ndarray) -> Bounded:
    if dtype not in PRECISION:
        moved = (noisy != exact).any(axis=0)
        value = exact.astype(str if dtype == "string" else dtype)
        return Bounded(value, np.where(moved, np.inf, 0.0), dtype)
    wide = np.complex128 if dtype in COMPONENT else np.float64
    value, noisy, p = exact.astype(wide), noisy.astype(wide), PRECISION[dtype]
    axes = tuple(range(1, value.ndim)) if value.ndim > 1 else None
    with np.errstate(all="ignore"):
        squares = np.mean(np.abs(noisy - value) ** 2, axis=0)
        finite = np.isfinite(squares)
        total = np.sum(squares, axis=axes, keepdims=True, where=finite)
        typical = total / np.maximum(1, np.sum(finite, axis=axes, keepdims=True))
        noise = np.sqrt((squares + typical) / 2)
        allowed = FACTOR * noise + OWN * p.unit * np.abs(value) + p.tiny
        top = np.max(np.abs(value), axis=axes, keepdims=True, initial=0.0, where=np.isfinite(value))
        special = ~np.isfinite(value)
        settled = special & ((noisy == exact) | np.isnan(noisy) & np.isnan(exact)).all(axis=0)
        lost = ~special & (~np.isfinite(noise) | (allowed > CHAOS * top) & (noise > 0)) | special & ~settled
    return Bounded(value, np.where(lost, np.inf, np.where(settled, 0.0, allowed)), dtype)
