"""How well do two runs of a classifier agree? Measures of two outputs of class scores, a row a sample; none of them is
a verdict. Ties are broken by class id, the same in both. NaN ranks last and equals NaN; a NaN or an infinity that only
one run has is a disagreement of that row, and an infinite error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import scipy  # which imports its parts when they are used: statistics take half a second

from oracles.judge.compare import dtype_of

P = 0.9
"""Persistence of rank-biased overlap: the first ten ranks have 86 % of the weight (W. Webber, A. Moffat, J. Zobel, A
similarity measure for indefinite rankings, ACM TOIS 28(4), 2010, section 4.3)."""
FLUSHED = float(np.finfo(np.float32).smallest_normal)
"""Probabilities below the least normal float32, which back ends may flush, count as that in KL divergence."""
SHIFTS = (-2, -1, 0, 1, 2)
"""Offsets of class ids that are tried; TensorFlow's background class makes one of 1."""
CLEAR = 10.0
"""An offset is believed where the residual of any other one is so many times larger, and its own at most 1 / CLEAR."""
TEXT, REAL = "US", "biufV"
"""Kinds of dtypes; bfloat16 is one of V."""
PLAIN, SOFTMAXED, MIXED = "already normalised", "softmaxed", "one softmaxed, one already normalised"


@dataclass(frozen=True)
class Agreement:
    """rows: samples; top1: share of rows with the same class first; top5: mean share of common classes among the first
    five; rbo: mean rank-biased overlap; kendall: mean tau-b (None where a row is constant); kl: mean Kullback-Leibler
    divergence of the second from the first, in nats; scores: what they were taken for; offset: of class ids, the
    second's minus the first's. All of these are None for outputs that are not class scores. largest, mean: absolute
    errors; largest_relative, mean_relative: by the first's magnitude; special: elements of which only one is NaN,
    infinite or infinite with that sign; excess: the greatest difference as a part of what is allowed (None: nothing is
    derived)."""

    rows: int
    largest: float
    mean: float
    largest_relative: float
    mean_relative: float
    special: int
    excess: float | None = None
    top1: float | None = None
    top5: float | None = None
    rbo: float | None = None
    kendall: float | None = None
    kl: float | None = None
    scores: str = ""
    offset: int = 0


@dataclass(frozen=True)
class Failure:
    """No measure: a result is missing, or two results cannot be laid beside each other. Never agreement."""

    why: str


def agreement(first: np.ndarray, second: np.ndarray, allowed: np.ndarray | None = None) -> Agreement | Failure:
    """All measures of two outputs. allowed: how far the elements may be apart, in the shape of the first; infinite
    where nothing is determined. Outputs without elements have none: zero comparisons are no agreement. Text and whole
    numbers beyond what float64 has are the same or infinitely apart."""
    if first.size == 0 or second.size == 0:
        alike = first.shape == second.shape
        return Failure(f"no elements in {first.shape}" if alike else f"shapes {first.shape} and {second.shape}")
    if (first.dtype.kind in TEXT) != (second.dtype.kind in TEXT):
        return Failure(f"{first.dtype} and {second.dtype}")
    classes = scored(first) and scored(second) and len(first) == len(second)
    offset = offset_of(first, second) if classes else 0
    if first.shape != second.shape and (not classes or offset is None):
        return Failure(f"shapes {first.shape} and {second.shape}")
    a, b = first, second
    if offset:
        low, high = max(0, -offset), min(a.shape[1], b.shape[1] - offset)
        a, b = a[:, low:high], b[:, low + offset : high + offset]
        allowed = None if allowed is None else allowed[:, low:high]
    elif classes and a.shape != b.shape:  # the same ids, one has more of them at the end
        width = min(a.shape[1], b.shape[1])
        a, b, allowed = a[:, :width], b[:, :width], None if allowed is None else allowed[:, :width]
    errors = _errors(a, b, allowed)
    if not classes:
        return errors
    kl, scores = divergence(a, b)
    rank_a, rank_b = ranks(a), ranks(b)
    same = ~_special(a, b).any(axis=1)  # a row in which only one run has a NaN agrees in nothing
    taus = [tau for x, y in zip(a, b, strict=True) if (tau := kendall(x, y)) is not None]
    return Agreement(
        **{field: getattr(errors, field) for field in _ERRORS},
        top1=float(np.mean(same * top(rank_a, rank_b, 1))),
        top5=float(np.mean(same * top(rank_a, rank_b, 5))),
        rbo=float(np.mean(same * overlap(rank_a, rank_b))),
        kendall=float(np.mean(taus)) if len(taus) == len(a) else None,
        kl=float(np.mean(kl)),
        scores=scores,
        offset=offset or 0,
    )


_ERRORS = ("rows", "largest", "mean", "largest_relative", "mean_relative", "special", "excess")


def scored(output: np.ndarray) -> bool:
    """May it be scores of classes, a row a sample?"""
    return output.ndim == 2 and output.shape[1] > 1 and output.size > 0 and output.dtype.kind in REAL


def _wide(array: np.ndarray) -> np.ndarray:
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def _special(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Where only one is NaN, or infinite, or they are infinite with different signs."""
    a, b = _wide(first), _wide(second)
    nan = np.isnan(a) != np.isnan(b)
    return nan | ((np.isinf(a) | np.isinf(b)) & ~np.isnan(a) & ~np.isnan(b) & (a != b))


def _errors(first: np.ndarray, second: np.ndarray, allowed: np.ndarray | None) -> Agreement:
    if first.dtype.kind in TEXT:
        first, second = np.zeros(first.shape), np.where(first == second, 0.0, np.inf)
    a, b = _wide(first), _wide(second)
    special = _special(a, b)
    with np.errstate(all="ignore"):
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        if first.dtype.kind in "biu" and second.dtype.kind in "biu":
            special |= same & (first != second)
            same &= first == second
        apart = np.where(same, 0.0, np.where(special, np.inf, np.abs(a - b)))
        relative = np.where(apart == 0, 0.0, apart / np.abs(a))
        relative = np.where(np.isnan(relative), np.inf, relative)
        excess = None
        if allowed is not None:
            parts = np.where(apart == 0, 0.0, apart / allowed)
            excess = float(np.max(np.where(np.isinf(allowed), 0.0, parts)))
    rows = len(a) if a.ndim else 1
    most, typical = float(apart.max()), float(apart.mean())
    return Agreement(rows, most, typical, float(relative.max()), float(relative.mean()), int(special.sum()), excess)


def ranks(scores: np.ndarray) -> np.ndarray:
    """The rank of each class in its row, 0 for the highest score; NaN last, ties by class id."""
    wide = scores.astype(np.float64)
    order = np.argsort(np.where(np.isnan(wide), np.inf, -wide), axis=1, kind="stable")
    found = np.empty_like(order)
    np.put_along_axis(found, order, np.arange(order.shape[1])[None, :], axis=1)
    return found


def top(first: np.ndarray, second: np.ndarray, k: int) -> np.ndarray:
    """By row, the share of the first k ranks that both have in common, in any order. k: at most the number of
    classes."""
    k = min(k, first.shape[1])
    return np.sum((first < k) & (second < k), axis=1) / k


def overlap(first: np.ndarray, second: np.ndarray, p: float = P) -> np.ndarray:
    """Rank-biased overlap by row, extrapolated from all n ranks (Webber et al., equation 32):
    p^n X_n / n + (1 - p) / p * sum over d of p^d X_d / d, X_d the classes that are among the first d of both. 1 for
    equal rankings. first, second: ranks from 0."""
    rows, n = first.shape
    late = np.maximum(first, second)  # the depth from which on both have the class
    joined = np.zeros((rows, n))
    np.add.at(joined, (np.arange(rows)[:, None], late), 1.0)
    depth = np.arange(1, n + 1)
    shares = np.cumsum(joined, axis=1) / depth
    return shares[:, -1] * p**n + (1 - p) / p * np.sum(shares * p**depth, axis=1)


def kendall(first: np.ndarray, second: np.ndarray) -> float | None:
    """Kendall's tau-b of the scores of one sample (scipy); None where one is constant: there is no order to compare."""
    wide = [np.where(np.isnan(x), -np.inf, x.astype(np.float64)) for x in (first, second)]
    if any(np.all(x == x[0]) for x in wide):
        return None
    return float(scipy.stats.kendalltau(*wide)[0])  # pyright: ignore[reportArgumentType] (scipy's tuple of floats)


def normalised(scores: np.ndarray) -> bool:
    """Are all rows distributions: not negative, and with a sum of 1 up to n roundings of float32?"""
    wide = scores.astype(np.float64)
    loss = wide.shape[1] * float(np.finfo(np.float32).eps)
    with np.errstate(all="ignore"):
        return bool((wide >= 0).all() and (np.abs(wide.sum(axis=1) - 1) <= loss).all())


def divergence(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, str]:
    """KL divergence of the second from the first by row, in nats, and what the scores were taken for. Rows that are not
    all finite: 0 where they are the same, else infinite."""
    plain = [normalised(first), normalised(second)]
    a, b = (x.astype(np.float64) if as_is else _softmax(x) for x, as_is in zip((first, second), plain, strict=True))
    with np.errstate(all="ignore"):
        p, q = np.maximum(a, FLUSHED), np.maximum(b, FLUSHED)
        found = np.maximum(0.0, np.sum(p * np.log(p / q), axis=1))
    finite = np.isfinite(first).all(axis=1) & np.isfinite(second).all(axis=1)
    same = first.shape == second.shape
    equal = np.array([same and np.array_equal(x, y, equal_nan=True) for x, y in zip(first, second, strict=True)])
    found = np.where(finite, found, np.where(equal, 0.0, np.inf))
    return found, MIXED if plain[0] != plain[1] else PLAIN if plain[0] else SOFTMAXED


def _softmax(scores: np.ndarray) -> np.ndarray:
    wide = scores.astype(np.float64)
    with np.errstate(all="ignore"):
        powers = np.exp(wide - wide.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)


def offset_of(first: np.ndarray, second: np.ndarray) -> int | None:
    """By how much class ids of the second are higher than those of the first: the shift that aligns the scores best,
    where that is clear; otherwise 0, or None for different numbers of classes. Detected from the scores (each row
    centred, the residual beside the size of both), never from a number of classes."""
    a, b = first.astype(np.float64), second.astype(np.float64)
    unclear = 0 if a.shape == b.shape else None
    if not (np.isfinite(a).all() and np.isfinite(b).all()) or np.array_equal(a, b):
        return unclear
    residuals = {}
    for shift in SHIFTS:
        low, high = max(0, -shift), min(a.shape[1], b.shape[1] - shift)
        if high - low < max(2, min(a.shape[1], b.shape[1]) // 2):
            continue
        x, y = a[:, low:high], b[:, low + shift : high + shift]
        x, y = x - x.mean(axis=1, keepdims=True), y - y.mean(axis=1, keepdims=True)
        size = float(np.sum(x * x) + np.sum(y * y))
        residuals[shift] = float(np.sum((x - y) ** 2)) / size if size else 1.0
    best, *others = sorted(residuals, key=lambda shift: residuals[shift])
    least = residuals[best]
    clear = least <= 1 / CLEAR and all(residuals[other] > CLEAR * least for other in others)
    return best if clear else unclear


def accuracy(scores: np.ndarray, classes: np.ndarray) -> tuple[float, float] | None:
    """Share of rows whose true class has the greatest score, and is among the five greatest; None for what is no scores
    of so many rows. A class that has no score is not among them."""
    if scores.ndim != 2 or scores.shape[1] < 2 or len(scores) != len(classes):
        return None
    known = (classes >= 0) & (classes < scores.shape[1])
    found = ranks(scores)[np.arange(len(classes)), np.where(known, classes, 0)]
    return float(np.mean(known & (found < 1))), float(np.mean(known & (found < 5)))


def table(
    outputs: Mapping[str, np.ndarray | None], allowed: np.ndarray | None = None
) -> dict[tuple[str, str], Agreement | Failure]:
    """N x N over named outputs, each against each and itself. None: the result is missing. allowed: how far each may be
    from the reference, so that two of them may be twice as far apart. Raises ValueError for no outputs."""
    if not outputs:
        raise ValueError("nothing to compare")
    twice = None if allowed is None else 2 * allowed
    found: dict[tuple[str, str], Agreement | Failure] = {}
    for one, first in outputs.items():
        for other, second in outputs.items():
            absent = [name for name, array in ((one, first), (other, second)) if array is None]
            if first is None or second is None:
                found[one, other] = Failure(f"no result of {' and '.join(dict.fromkeys(absent))}")
                continue
            fits = twice is not None and twice.shape == first.shape
            found[one, other] = agreement(first, second, twice if fits else None)
    return found


def spread_of(repeats: Sequence[np.ndarray]) -> float:
    """The greatest difference of repeated runs of one variant from its first; 0: the same every time. Raises ValueError
    where there are fewer than two."""
    if len(repeats) < 2:
        raise ValueError("nothing to compare")
    if any(again.shape != repeats[0].shape or dtype_of(again) != dtype_of(repeats[0]) for again in repeats[1:]):
        return float("inf")
    if repeats[0].size == 0:
        return 0.0
    return max(_errors(repeats[0], again, None).largest for again in repeats[1:])
