"""Do the optimisation levels of one compiler agree?"""

from __future__ import annotations

import pytest

from generators.graphs import Case
from harness.backends import Target
from harness.search.laboratory import level_pairs
from harness.search.trial import Failure, Trial
from oracles.judge.outcome import Value
from oracles.questions import levels


@pytest.mark.slow(one_in=31, ci=2)
def test_opt_levels(compiler: tuple[Target, ...], trial: Trial) -> None:
    """Each drawn case on all levels, each level against the lowest: bit for bit, or within both bounds. What a
    level does wrong against the reference is test_forward's business and not judged again here."""
    campaign = trial.campaign

    def examine(case: Case) -> Failure | None:
        examination = campaign.lab.examine(case, compiler)
        for high, low in level_pairs(compiler, examination.outcomes):
            first, second = examination.outcomes[low.name], examination.outcomes[high.name]
            if not isinstance(first, Value) or not isinstance(second, Value):
                continue
            judgement = levels.judge(examination.expected, first.outputs, second.outputs)
            if judgement.discrepancy is None:
                continue
            # farther apart than both may err: at least one is outside its own bound
            for target in (low, high):
                wrong = examination.verdicts[target.name].discrepancy
                rest = campaign.unexplained(target, case, wrong) if wrong else None
                if rest:
                    return Failure(target, *rest)
        return None

    trial.run(compiler, examine)
