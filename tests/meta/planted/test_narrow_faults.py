"""Planted faults of narrow dtypes are found by hunts that favour these (`hunt --dtypes … --operators …`), and handed
over as small programs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from statistics import median

import pytest
from planted.faults.narrow import NARROW_FAULTS
from planted.sensitivity import detect, exit_statuses, investigate_fault, repaired

from generators.graphs import Style
from harness.execute.pool import Pool
from harness.questions.forward import FORWARD
from harness.search.hypothesis_profiles import nightly
from harness.search.laboratory import Laboratory

OPERATORS = frozenset(fault.operator for fault in NARROW_FAULTS)
NARROW = replace(FORWARD, style=Style(("float16", "bfloat16", "int8", "uint8")), concerns=OPERATORS.__contains__)
SEED = 20
IN_FULL = NARROW_FAULTS[::5]


@pytest.mark.slow
def test_at_least_95_percent_are_found_within_300_cases(pool: Pool, tmp_path: Path) -> None:
    """The nightly profile plants all of them, the others every second."""
    assert len(set(NARROW_FAULTS)) == len(NARROW_FAULTS) >= 20
    lab, faults = Laboratory(pool, NARROW), NARROW_FAULTS if nightly() else NARROW_FAULTS[::2]
    missed = [f"{f.operator}: {f.name}" for f in faults if detect(f, lab, tmp_path, SEED) is None]
    assert len(missed) <= 0.05 * len(faults), missed


@pytest.mark.slow
@pytest.mark.parametrize(
    "chosen", [IN_FULL, pytest.param(NARROW_FAULTS, marks=pytest.mark.nightly)], ids=["some", "all"]
)
def test_they_are_minimised(chosen: tuple, pool: Pool, tmp_path: Path) -> None:
    nodes = []
    for number, fault in enumerate(chosen):
        found = investigate_fault(fault, Laboratory(pool, NARROW), tmp_path / str(number), (SEED,))
        assert found is not None, fault
        assert exit_statuses([Path(found.finding.path) / "reproducer.py", repaired(found)]) == [1, 0], fault
        nodes.append(found.finding.nodes)
    assert median(nodes) <= 2
