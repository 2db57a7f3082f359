"""Are two targets wrong in the same way?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from generators.graphs import Case
from harness.backends import Target
from harness.search.laboratory import Laboratory
from oracles.judge.compare import Expected, wide, wrong_elements
from oracles.judge.outcome import Value


def as_wrong(lab: Laboratory, one: Target, other: Target, case: Case) -> bool:
    """Do both return the same for a case on which both are wrong, as far as each may be off? False only where the
    values say so: True where one has none, or returns something else the second time, as what was never written
    does."""
    if lab.question.observe:
        return True
    outcomes = lab.outcomes([(one, case), (other, case)] * 2, confirm=False)
    values = [outcome.outputs for outcome in outcomes if isinstance(outcome, Value)]
    if len(values) < len(outcomes):
        return True
    mine, theirs, mine_again, theirs_again = values
    if not (_same_bits(mine, mine_again) and _same_bits(theirs, theirs_again)):
        return True
    return near(mine, theirs, lab.question.expected(one, case))


def near(mine: Sequence[np.ndarray], theirs: Sequence[np.ndarray], expected: Expected) -> bool:
    """Are these outputs the same, within twice what a correct one may be off by?"""
    if [(a.dtype, a.shape) for a in mine] != [(b.dtype, b.shape) for b in theirs]:
        return False
    for a, b, reference in zip(mine, theirs, expected.values, strict=True):
        if a.shape != reference.value.shape:
            return True  # of another type than is expected, both of the same
        around = replace(reference, value=wide(b, reference), error=2 * reference.error, zero_sign=False)
        if any(wrong.any() for _, wrong in wrong_elements(a, around)):
            return False
    return True


def _same_bits(first: Sequence[np.ndarray], second: Sequence[np.ndarray]) -> bool:
    return [a.tobytes() for a in first] == [b.tobytes() for b in second]
