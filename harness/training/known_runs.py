"""Stored runs of known deviations again, for their reproducers."""

from __future__ import annotations

from collections.abc import Sequence

from generators.training.runs import loads
from harness.execute.environments import versions_of
from harness.execute.reading import read_by
from harness.findings.known.deviations import KnownDeviation
from harness.strategies import STRATEGIES
from harness.training.findings import Deviation, write_reproducer
from harness.training.judge import NoResult, TrainingJudge, adapted, available, version_of


def write_reproducers(judge: TrainingJudge, deviations: Sequence[KnownDeviation]) -> list[str]:
    """Write the reproducer of each entry that has none yet into its folder, of the first of its strategies that shows
    it here. judge: one that knows of no deviations. Returns the ids of those that no strategy shows."""
    missing = []
    for known in deviations:
        if not known.reproducer.exists() and not _written(judge, known):
            missing.append(known.id)
    return missing


def _written(judge: TrainingJudge, known: KnownDeviation) -> bool:
    training = read_by(known.case, loads)
    for strategy in STRATEGIES.values():
        if available(strategy) or not known.concerns(strategy.name, training.traits, version_of(strategy)):
            continue
        world = next(ranks for ranks in strategy.worlds if ranks >= known.world)
        run = adapted(training, strategy, world)
        found = judge.examine(run, strategy, world)
        if found.discrepancy is None or not known.covers(found.part, found.discrepancy):
            continue
        try:
            expected = judge.expected(run, strategy, world)
        except NoResult:
            continue
        versions = versions_of(["numpy", *strategy.packages], strategy.environment)
        symptom, message = found.discrepancy.symptom, found.discrepancy.message
        shown = Deviation(
            known.id, symptom, strategy.name, world, found.part, message, None, run.network.kinds, versions
        )
        write_reproducer(known.folder, run, strategy, world, expected, shown, judge.arrays(run))
        return True
    return False
