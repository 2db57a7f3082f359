"""Planted faults of every question beside the forward one: found, made small and handed over as a program that fails
with the fault and passes without."""

from __future__ import annotations

from pathlib import Path

import pytest
from planted.faults.modes import MODES
from planted.faults.questions import ASKED, Asked
from planted.sensitivity_of_questions import catch, sight, statuses

from harness.execute.pool import Pool

SOON = {"dynamic": "relu matmul neg tanh exp", "hessian": "sigmoid mul", "jvp": "tanh mul exp matmul"}
SOON |= dict.fromkeys(("layouts", "repeat", "metamorphic"), SOON["dynamic"])
SOON |= dict.fromkeys(("vmap", "autocast"), SOON["jvp"])
"""Operators that soon turn up, by question: the nightly profile looks at faults of all."""
EVERY = (*ASKED, *MODES)
QUICK = [asked for asked in EVERY if asked.fault.operator in SOON[asked.question.name].split()]


@pytest.mark.parametrize("asked", QUICK, ids=str)
def test_fault_is_found(asked: Asked, pool: Pool, tmp_path: Path) -> None:
    assert sight(asked, pool, tmp_path)


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("faults", [ASKED, MODES], ids=["questions", "modes"])
def test_at_least_95_percent_are_found_within_300_cases(faults: tuple[Asked, ...], pool: Pool, tmp_path: Path) -> None:
    missed = [str(asked) for asked in faults if not sight(asked, pool, tmp_path)]
    assert len(missed) <= 0.05 * len(faults), missed


@pytest.mark.parametrize("name", SOON)
def test_reproducer_tells_fault_from_correct(name: str, pool: Pool, tmp_path: Path) -> None:
    asked = next(one for one in QUICK if one.question.name == name)
    seen = sight(asked, pool, tmp_path)
    assert seen
    caught = catch(asked, seen, pool, tmp_path)
    assert caught
    assert caught.finding.oracle == name
    assert caught.finding.nodes <= (3 if name == "metamorphic" else 2)
    assert statuses(asked, caught) == [1, 0]
