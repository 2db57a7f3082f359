"""Tokens one after the other, each call with the cache of the one before, or all of them in one call: a model returns
the same for each token, and the same cache at the end. In the reference they differ only where the model itself is
another function of one token than of several; a variant, which rounds, may be as far apart as both results may err."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from oracles.judge.compare import Expected


def joined(steps: Sequence[np.ndarray], shape: tuple[int, ...]) -> np.ndarray | None:
    """One output of several calls as the one of a call with all tokens has it, of that shape: that of the last call,
    where it has this shape (a cache, or the scores of the last token); else all along the axis that counts tokens. None
    where they are neither."""
    if steps[-1].shape == shape:
        return steps[-1]
    if any(step.ndim != len(shape) for step in steps):
        return None
    for axis, size in enumerate(shape):
        others = [step.shape[:axis] + step.shape[axis + 1 :] == shape[:axis] + shape[axis + 1 :] for step in steps]
        if all(others) and sum(step.shape[axis] for step in steps) == size:
            return np.concatenate(steps, axis)
    return None


def apart(
    whole: Sequence[np.ndarray],
    steps: Sequence[Sequence[np.ndarray]],
    at_once: Expected | None,
    one_by_one: Sequence[Expected],
) -> float | None:
    """The greatest difference between what one call returns for all tokens and what calls for each return, as a part of
    what both may err by. at_once, one_by_one: what they are expected to return. Without these the difference is a part
    of the greatest element of an output. None: no output can be laid beside the other. A difference of what is not
    floating, of NaN or of infinities is infinite."""
    found: list[float] = []
    for place, first in enumerate(whole):
        second = joined([step[place] for step in steps], first.shape)
        if second is None or first.dtype.kind in "OSU":
            continue
        if first.dtype.kind in "biu":
            found.append(0.0 if np.array_equal(first, second) else np.inf)
            continue
        a, b = first.astype(np.float64), second.astype(np.float64)
        with np.errstate(all="ignore"):
            same = (a == b) | (np.isnan(a) & np.isnan(b))
            if at_once is None:
                allowed = np.max(np.abs(a), initial=0.0, where=np.isfinite(a))
            else:
                errors = joined([one.values[place].error for one in one_by_one], first.shape)
                allowed = at_once.values[place].error + (0.0 if errors is None else errors)
            ratio = np.where(same | np.isinf(allowed), 0.0, np.abs(a - b) / allowed)
        found.append(float(np.max(np.where(np.isnan(ratio), np.inf, ratio), initial=0.0)))
    return max(found, default=None)
