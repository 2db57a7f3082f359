"""Planted faults of derivatives: nearly all are found within 300 cases, and handed over as small programs that fail
with the fault and pass without."""

from __future__ import annotations

from pathlib import Path
from statistics import median

import pytest
from planted.faults.gradients import COMPLEX_FAULTS, GRADIENT_FAULTS, SELDOM_FAULTS, Fault
from planted.sensitivity import detect, exit_statuses, investigate_fault, repaired
from planted.targets import planted

from generators.graphs import SMOOTH, SeededDraw, build_case
from harness.backends import TARGETS
from harness.execute.pool import Pool
from harness.questions.derivatives.gradient import GRADIENT
from harness.search.hypothesis_profiles import nightly
from harness.search.laboratory import Laboratory

SEED = 20
IN_FULL = GRADIENT_FAULTS[::12]
"""Those that are minimised, too: the nightly profile does it for all."""


@pytest.mark.slow
def test_at_least_95_percent_are_found_within_300_cases(pool: Pool, tmp_path: Path) -> None:
    """The nightly profile plants all of them, the others every fifth."""
    assert len(set(GRADIENT_FAULTS)) == len(GRADIENT_FAULTS) >= 40
    lab = Laboratory(pool, GRADIENT)
    faults = GRADIENT_FAULTS if nightly() else GRADIENT_FAULTS[::5]
    missed = [f"{f.operator}: {f.name}" for f in faults if detect(f, lab, tmp_path, SEED) is None]
    assert len(missed) <= 0.05 * len(faults), missed


@pytest.mark.slow(one_in=4)
@pytest.mark.parametrize(
    "fault", [*SELDOM_FAULTS, *COMPLEX_FAULTS], ids=lambda fault: f"{fault.operator}: {fault.name}"
)
def test_faults_of_operators_that_are_drawn_seldom_are_found(fault: Fault, pool: Pool) -> None:
    """Within 30 cases of the operator alone, in the first of which PyTorch itself is right."""
    lab, wrong, right = Laboratory(pool, GRADIENT), planted(fault.operator, fault.text), TARGETS["torch-eager"]
    for number in range(30):
        case = build_case(SeededDraw(f"{SEED}/{fault.operator}/{number}"), 1, (fault.operator,), SMOOTH)
        if lab.judge(case, [wrong], confirm=False).verdicts[wrong.name].status == "mismatch":
            assert lab.judge(case, [right], confirm=False).verdicts[right.name].status == "agree"
            return
    raise AssertionError(f"{fault} was not found")


def _hand_over(faults: tuple[Fault, ...], pool: Pool, folder: Path) -> None:
    """Each becomes a finding with a program that tells the fault from its repair."""
    nodes = []
    for number, fault in enumerate(faults):
        found = investigate_fault(fault, Laboratory(pool, GRADIENT), folder / str(number), (SEED,))
        assert found is not None, fault
        assert fault.operator in found.finding.operators
        programs = [Path(found.finding.path) / "reproducer.py", repaired(found, GRADIENT)]
        assert exit_statuses(programs) == [1, 0], fault
        nodes.append(found.finding.nodes)
    assert median(nodes) <= 2


@pytest.mark.slow
def test_some_are_minimised(pool: Pool, tmp_path: Path) -> None:
    _hand_over(IN_FULL, pool, tmp_path)


@pytest.mark.nightly
def test_all_are_minimised(pool: Pool, tmp_path: Path) -> None:
    lab = Laboratory(pool, GRADIENT)
    _hand_over(tuple(f for f in GRADIENT_FAULTS if detect(f, lab, tmp_path, SEED)), pool, tmp_path)
