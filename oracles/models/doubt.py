"""Is the reference wrong, and not those that are judged by it?

The rule: at least two owners of kernels return the same within what two correct runs may differ by, of files that no
common conversion made, and no owner returns what the reference says. One implementation is wrong oftener than a
reference; that two which share neither kernels nor a conversion are wrong in the same way to the last digits is less
likely than that one reference is. What shares a conversion with the reference, or follows the text of the standard as
it does (ONNX' own evaluator), has its faults, too, and is no witness for it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from generators.bounds.bounded import PRECISION, Bounded
from oracles.judge.compare import Expected
from oracles.models.noise import CHAOS

LEAST = 64
"""Units of roundoff, of the greatest element, that two may be apart in outputs of another shape than the reference's:
nothing is derived element by element there."""


@dataclass(frozen=True, eq=False)
class Opinion:
    """What one implementation returns. owner: of its kernels; through: the conversions that made its file; outputs: for
    each set of inputs; agrees: are they what the reference says?"""

    name: str
    owner: str
    through: frozenset[str]
    outputs: Sequence[Sequence[np.ndarray]]
    agrees: bool


def against(
    expected: Sequence[Expected],
    opinions: Sequence[Opinion],
    through: Collection[str] = (),
    akin: Collection[str] = ("ONNX",),
) -> tuple[Opinion, ...]:
    """Those that agree with each other and not with the reference; none where that is not in doubt. through: the
    conversions that made the model that the reference is of; akin: owners that are no witnesses for it."""
    if any(one.agrees and one.owner not in akin and not one.through & set(through) for one in opinions):
        return ()
    others = [one for one in opinions if not one.agrees]
    best: tuple[Opinion, ...] = ()
    kinds = {(one.owner, one.through): one for one in reversed(others)}  # the first of each
    for first in reversed(kinds.values()):
        found = [first]
        for other in others:
            apart = all(other.owner != one.owner and not other.through & one.through for one in found)
            if apart and together(expected, first.outputs, other.outputs):
                found.append(other)
        best = max(best, tuple(found), key=len)
    return best if len(best) > 1 else ()


def together(
    expected: Sequence[Expected], first: Sequence[Sequence[np.ndarray]], second: Sequence[Sequence[np.ndarray]]
) -> bool:
    """May these be two correct runs, whatever the value is?"""
    for bounds, one, other in zip(expected, first, second, strict=True):
        if not len(one) == len(other) == len(bounds.values):
            return False
        if not all(_near(*three) for three in zip(bounds.values, one, other, strict=True)):
            return False
    return True


def _near(bound: Bounded, first: np.ndarray, second: np.ndarray) -> bool:
    """Are two outputs no farther apart than two correct runs?"""
    if first.shape != second.shape:
        return False
    fits = first.shape == bound.value.shape
    if not bound.floating or not all(array.dtype.kind in "biufcV" for array in (first, second)):
        return bool(((first == second) | (bound.undetermined if fits else False)).all())
    wide = np.complex128 if bound.complex else np.float64
    a, b = first.astype(wide), second.astype(wide)
    with np.errstate(all="ignore"):
        allowed = bound.error if fits else _share(bound) * np.max(np.abs(a), initial=0.0, where=np.isfinite(a))
        same = (a == b) | (np.isnan(a) & np.isnan(b)) | np.isinf(allowed)
        return bool((same | (np.abs(a - b) <= 2 * allowed)).all())


def _share(bound: Bounded) -> float:
    """What is allowed of an output as a part of its greatest element."""
    settled = np.isfinite(bound.error) & np.isfinite(bound.value)
    top = float(np.max(np.abs(bound.value), initial=0.0, where=settled))
    allowed = float(np.max(bound.error, initial=0.0, where=settled))
    return min(CHAOS, max(LEAST * PRECISION[bound.dtype].unit, allowed / top if top else 0.0))
