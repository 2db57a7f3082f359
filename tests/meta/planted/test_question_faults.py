"""Planted faults of every question beside the forward one: found, made small and handed over as a program that fails
with the fault and passes without."""

from __future__ import annotations

from pathlib import Path

import pytest
from planted.faults.modes import MODE_FAULTS
from planted.faults.questions import QUESTION_FAULTS, QuestionFault
from planted.question_sensitivity import detect, investigate_fault, statuses

from harness.execute.pool import Pool

SOON = {"dynamic": "relu matmul neg tanh exp", "hessian": "sigmoid mul", "jvp": "tanh mul exp matmul"}
SOON |= dict.fromkeys(("layouts", "repeat", "metamorphic"), SOON["dynamic"])
SOON["scalars"] = "tril roll elu clip"
SOON["mixed"] = "div atan2 squared_difference greater"
SOON |= dict.fromkeys(("tangent_gradient", "tangent_tangent"), "mul exp")
SOON["memory"] = "slice transpose unstack diagonal sliding_windows identity slice_update"
SOON |= dict.fromkeys(("vmap", "autocast", "dynamic_gradient"), SOON["jvp"])
"""Operators that soon turn up, by question: the nightly profile looks at faults of all."""
EVERY = (*QUESTION_FAULTS, *MODE_FAULTS)
QUICK = [
    planted_fault
    for planted_fault in EVERY
    if planted_fault.fault.operator in SOON[planted_fault.question.name].split()
]


@pytest.mark.slow(one_in=11, ci=8)
@pytest.mark.parametrize("planted_fault", QUICK, ids=str)
def test_fault_is_found(planted_fault: QuestionFault, pool: Pool, tmp_path: Path) -> None:
    assert detect(planted_fault, pool, tmp_path)


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("faults", [QUESTION_FAULTS, MODE_FAULTS], ids=["questions", "modes"])
def test_at_least_95_percent_are_found_within_300_cases(
    faults: tuple[QuestionFault, ...], pool: Pool, tmp_path: Path
) -> None:
    missed = [str(planted_fault) for planted_fault in faults if not detect(planted_fault, pool, tmp_path)]
    assert len(missed) <= 0.05 * len(faults), missed


@pytest.mark.slow(one_in=15, ci=8)
@pytest.mark.parametrize("name", SOON)
def test_reproducer_tells_fault_from_correct(name: str, pool: Pool, tmp_path: Path) -> None:
    planted_fault = next(one for one in QUICK if one.question.name == name)
    seen = detect(planted_fault, pool, tmp_path)
    assert seen
    caught = investigate_fault(planted_fault, seen, pool, tmp_path)
    assert caught
    assert caught.finding.oracle == name
    assert caught.finding.nodes <= (3 if name in ("metamorphic", "mixed") else 2)
    assert statuses(planted_fault, caught) == [1, 0]
