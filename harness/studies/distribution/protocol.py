"""D3's protocol: each model is trained on each input for one step under each setting, and its softmaxed predictions are
compared with those of one device, by D3's thresholds and by our own oracle."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np

from generators.training.d3 import Protocol, quarter_of, study_training
from generators.training.runs import Training
from harness.strategies.strategy import Strategy
from harness.studies.distribution.settings import PRESETS, Setting, strategy_of, why_not
from harness.studies.distribution.store import Result, Store
from harness.training.judge import Arrays, Judgement, NoResult, TrainingJudge
from oracles.training import d3

StudyCase = tuple[int, int, Setting]
"""A model's number, an input's number, a setting."""


@dataclass(frozen=True)
class Study:
    """preset: of PRESETS; models, inputs: how many; protocol: what they are drawn by."""

    preset: str
    models: int
    inputs: int
    protocol: Protocol

    @cached_property
    def settings(self) -> tuple[Setting, ...]:
        """Those that can be run here."""
        preset = PRESETS[self.preset]()
        return tuple(setting for setting in preset.settings if not why_not(preset, setting))

    @cached_property
    def unavailable(self) -> dict[str, str]:
        """Those that cannot be run here, with the reason."""
        preset = PRESETS[self.preset]()
        reasons = {setting.name: why_not(preset, setting) for setting in preset.settings}
        return {name: why for name, why in reasons.items() if why}

    @property
    def about(self) -> dict[str, str]:
        """What results depend on, the numbers of models and inputs apart: these may grow."""
        p = self.protocol
        return {"preset": self.preset, "seed": str(p.seed), "batch": str(p.batch), "image": str(p.image)}

    def cases(self) -> Iterator[StudyCase]:
        """All of them, a model and an input at a time."""
        yield from product(range(self.models), range(self.inputs), self.settings)

    def missing(self, store: Store) -> list[StudyCase]:
        """Those that are not in the store."""
        done = {(result.model, result.input, result.setting) for result in store.results()}
        return [case for case in self.cases() if (case[0], case[1], case[2].name) not in done]

    def within(self, results: Sequence[Result]) -> list[Result]:
        """Those of the results that are of this study's models, inputs and settings."""
        names = {setting.name for setting in self.settings}
        return [r for r in results if r.model < self.models and r.input < self.inputs and r.setting in names]


Found = Callable[[Training, Strategy, int, Judgement], None]
"""What is told of a deviation that is not known: the run, the strategy, the ranks, the judgement."""


def run_case(judge: TrainingJudge, study: Study, case: StudyCase, found: Found | None = None) -> Result:
    """Run one setting on one model and input. judge: its arrays are `study_arrays`."""
    model, data, setting = case
    preset = PRESETS[study.preset]()
    training = study_training(study.protocol, model, data)
    strategy, world = strategy_of(preset, setting), max(1, setting.world)

    def result(outcome: str, reason: str = "", cpu: float = 0.0) -> Result:
        return Result(model, data, setting.name, quarter_of(model), outcome, reason, cpu=cpu)

    why = strategy.refusal(training, world)
    if why:
        return result("left out", why)
    try:
        base = judge.on_one_device(training, strategy, world)
    except NoResult as error:
        return result("failed", f"one device: {error}")
    judgement, ranks = judge.observe(training, strategy, world)
    if found and judgement.discrepancy:
        found(training, strategy, world, judgement)
    if not ranks:
        told = judgement.discrepancy.message if judgement.discrepancy else judgement.reason
        return result("failed", told.splitlines()[0] if told else judgement.status, judgement.cpu)
    if any("prediction" not in given for given in ranks):
        return result("failed", "a rank returns no prediction", judgement.cpu)
    return compared(training, judge.arrays(training), base, ranks, judgement, result("compared", cpu=judgement.cpu))


def compared(
    training: Training, arrays: Arrays, base: Arrays, ranks: Sequence[Arrays], judgement: Judgement, blank: Result
) -> Result:
    """What is made of a run that returned predictions: both judgements, of the rank that is farthest off, and the
    cluster of an inconsistency. base: what one device returned; blank: the result without these."""
    each = [d3.closeness(base["prediction"], given["prediction"]) for given in ranks]
    farthest = max(range(len(ranks)), key=lambda rank: (not each[rank].consistent, each[rank].largest))
    ours, part, ratio = _ours(judgement)
    wrong = not each[farthest].consistent or ours == "deviates"
    return replace(
        blank,
        close=each[farthest].consistent,
        largest=each[farthest].largest,
        finite=all(one.finite for one in each),
        ours=ours,
        part=part,
        ratio=ratio,
        undetermined=judgement.undetermined / judgement.elements if judgement.elements else None,
        cluster=_cluster(training, base, ranks[farthest], arrays["x"]) if wrong else "",
    )


def _ours(judgement: Judgement) -> tuple[str, str, float | None]:
    """The word for it, the part that it is about, and the greatest error as a part of what is allowed."""
    if judgement.discrepancy:
        worst = judgement.discrepancy.worst
        return "deviates", judgement.part or judgement.discrepancy.message.splitlines()[0], worst
    ratio = None if math.isnan(judgement.largest) else judgement.largest
    return "known" if judgement.excused else judgement.status, ", ".join(judgement.excused), ratio


def _cluster(training: Training, base: Arrays, given: Arrays, x: np.ndarray) -> str:
    """D3's, of a run that returned all that was trained."""
    absent = sorted(name for name in base if name.split(".")[0] in ("parameter", "buffer") and name not in given)
    return f"without {absent[0]}" if absent else d3.cluster(training.network, base, given, x)
