"""Does each target compute what the graph says?"""

from __future__ import annotations

from generators.graphs import Case
from harness.backends import Target
from harness.trial import Failure, Trial


def test_forward(target: Target, trial: Trial) -> None:
    """Each drawn case on one target, against the float64 reference and its error bound."""
    campaign = trial.campaign

    def examine(case: Case) -> Failure | None:
        discrepancy = campaign.lab.examine(case, [target]).verdicts[target.name].discrepancy
        rest = campaign.unexplained(target, case, discrepancy) if discrepancy else None
        return Failure(target, *rest) if rest else None

    trial.run([target], examine)
