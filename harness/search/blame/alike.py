"""Are two targets wrong in the same way?"""

from __future__ import annotations

from generators.graphs import Case
from harness.backends import Target
from harness.search.laboratory import Laboratory
from oracles.judge.outcome import Value
from oracles.questions import levels


def as_wrong(lab: Laboratory, one: Target, other: Target, case: Case) -> bool:
    """Do both return the same for a case on which both are wrong, within twice what a correct result may be off by, as
    two levels of a compiler have to? False only where the values say so: True where one has none, or returns something
    else the second time, as what was never written does."""
    if lab.question.observe:
        return True
    outcomes = lab.outcomes([(one, case), (other, case)] * 2, confirm=False)
    values = [outcome.outputs for outcome in outcomes if isinstance(outcome, Value)]
    if len(values) < len(outcomes):
        return True
    for first, again in zip(values[:2], values[2:], strict=True):
        if len(first) != len(again) or not all(map(levels.identical, first, again)):
            return True
    return levels.judge(lab.question.expected(one, case), *values[:2]).agreement != "different"
