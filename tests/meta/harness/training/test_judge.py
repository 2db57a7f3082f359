"""The judge of training runs: a failure is believed when it comes again, and counted where it does not."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

from generators.training.runs import seeded_training
from harness.execute.ranks import RankOutcome, RankOutputs, RankPools
from harness.strategies import STRATEGIES
from harness.training.judge import Judgement, NoResult, TrainingJudge, _agreeing
from oracles.judge.outcome import Crash, Rejected, Timeout
from oracles.training.sharding import disagreements

HANG = Timeout(60.0, missing="rank 0")
OUTPUTS = RankOutputs(({"loss": np.zeros(1)},), 0.1)


class Answers:
    """In place of ranks: these outcomes, one after the other."""

    def __init__(self, *outcomes: RankOutcome) -> None:
        self.left = list(outcomes)

    def run(self, *call: Any) -> RankOutcome:
        return self.left.pop(0)


def judge_of(answers: Answers) -> TrainingJudge:
    return TrainingJudge(cast(RankPools, answers))


@pytest.mark.parametrize(
    ("outcomes", "unconfirmed"),
    [
        ((OUTPUTS,), {}),
        ((HANG, OUTPUTS), {"torch-ddp: no result after 60 s": 1}),
        ((Crash("signal SIGABRT", "rank 1: what\n it said"), OUTPUTS), {"torch-ddp: signal SIGABRT: rank 1: what": 1}),
        ((Rejected("RuntimeError", "rank 0: busy"), OUTPUTS), {"torch-ddp: RuntimeError: rank 0: busy": 1}),
    ],
)
def test_a_failure_that_does_not_come_again_is_counted(
    outcomes: tuple[RankOutcome, ...], unconfirmed: dict[str, int]
) -> None:
    answers = Answers(*outcomes)
    judge = judge_of(answers)
    assert judge.returned(seeded_training(1, 0), STRATEGIES["torch-ddp"], 1) is OUTPUTS.ranks[0]
    assert judge.unconfirmed == unconfirmed
    assert answers.left == []


@pytest.mark.parametrize(
    ("failure", "message"),
    [
        (HANG, "no result after 60 s"),
        (Crash("signal SIGSEGV"), "signal SIGSEGV$"),
        (Rejected("ValueError", "rank 0: no"), "ValueError: rank 0: no"),
    ],
)
def test_a_failure_that_comes_again_is_one(failure: RankOutcome, message: str) -> None:
    judge = judge_of(Answers(failure, failure))
    with pytest.raises(NoResult, match=message):
        judge.returned(seeded_training(1, 0), STRATEGIES["torch-ddp"], 1)
    assert judge.unconfirmed == {}


def replica(weight: float, mean: float = 0.0) -> dict[str, np.ndarray]:
    """What a rank returns: a parameter, and a running statistic."""
    return {"parameter.l0.weight": np.array([1.0, weight], np.float32), "buffer.l1.mean": np.array([mean], np.float32)}


def test_replicas_are_the_same_bit_for_bit() -> None:
    one = float(np.nextafter(np.float32(2.0), np.float32(3.0)))
    assert list(disagreements([replica(2.0), replica(2.0, mean=5.0)])) == []  # statistics are each rank's own
    assert list(disagreements([replica(float("nan")), replica(float("nan"))])) == []
    ((name, told),) = disagreements([replica(2.0), replica(2.0), replica(one)])
    assert name == "parameter.l0.weight"
    assert told.message == "rank 2 is apart from rank 0: 1 of 2 elements, by at most 1 ulps"
    right = Judgement("agree", elements=2)
    assert _agreeing(right, (), [replica(2.0), replica(2.0)]) == right
    wrong = _agreeing(right, (), [replica(2.0), replica(one)])
    assert (wrong.status, wrong.part, wrong.discrepancy) == (
        "mismatch", "parameter.l0.weight", next(disagreements([replica(2.0), replica(one)]))[1],
    )  # fmt: skip
