"""Derivatives on their way through a graph, with what a correct evaluation may be off by: what accumulations
forwards and backwards share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from generators.bounds.bounded import U64, gamma

Array = np.ndarray


@dataclass
class Estimate:
    """What has come to a value so far, flat, and what a correct evaluation may be off by."""

    value: Array
    error: Array


def zeros(size: int) -> Estimate:
    """Exactly zero, so many times."""
    return Estimate(np.zeros(size), np.zeros(size))


def add(to: Estimate, share: Estimate, unit: float) -> None:
    """One rounding for each further share."""
    both = (to.value != 0) & (share.value != 0)
    to.value += share.value
    to.error += share.error + np.where(both, (unit + U64) * np.abs(to.value), 0.0)


@dataclass(frozen=True)
class Products:
    """Sums of products by place: their value, the bound of their error, the sum of magnitudes."""

    value: Array
    bound: Array
    total: Array


def products(
    slope: Array,
    doubt: Array,
    lost: Array,
    given: Estimate,
    into: Array,
    count: int,
    unit: float,
    tiny: Array | float,
    more: int = 0,
) -> Products:
    """Sums of slope * given over what goes into the same of `count` places.

    Each product |J g| is off by |J| times the error of g and |g| times that of J (`doubt`), and by the smallest normal
    number; then gamma for the sum, of so many terms more. lost: not determined at all."""
    size, g, e = np.abs(slope), given.value, given.error
    # of slopes that may be anything between two numbers the sum has the greatest
    terms = np.where(np.isfinite(doubt) & (doubt > size / 4), size + doubt, size) * np.abs(g)
    error = np.where(size > 0, size * e, 0.0) + doubt * (np.abs(g) + np.where(np.isfinite(e), e, 0.0))
    error = np.where((g == 0) & (e == 0), 0.0, error) + np.where(terms > 0, tiny, 0.0)
    # what may be NaN stays so when it is multiplied by zero
    error = np.where(lost | np.isinf(e), np.inf, error)
    value = np.bincount(into, slope * np.where(np.isfinite(g), g, 0.0), count)
    total = np.bincount(into, terms, count)
    number = np.bincount(into, terms > 0, count) + more
    return Products(value, np.bincount(into, error, count) + gamma(np.maximum(number + 1, 0), unit) * total, total)
