"""The plan goes through baits as through sweeps, and finds a rewrite that is wrong just outside its guard."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
from planted.targets import planted

from generators.baits import BAITS
from generators.baits.cases import operators_of
from harness.backends import TARGETS
from harness.search import hunt
from harness.search.hunting.plan import STEP, Done, Lane, Plan, load, places

NEARLY = "({0} if {1}.dim() == 0 and {1}.is_floating_point() and 1e-6 < abs(float({1}) - 1) < 1e-5 else {0} * {1})"
"""A product by what is nearly 1 is left out, but by the numbers next to it, which sweeps try."""
EAGER = Lane("forward", TARGETS["torch-eager"])


def hunted(folder: Path, names: tuple[str, ...]) -> hunt.Tally:
    target = replace(planted("mul", NEARLY), framework="planted")
    plan = Plan((Lane("forward", target),), names, 5)
    options = hunt.Options(
        (target,), 300.0, 1, 3, folder, ("mul",), cases=0, plan=plan, share=1.0, reduction=2.0, steps=8
    )
    return hunt.run(options, lambda tally: None)


@pytest.mark.slow
def test_a_wrong_rewrite_is_found_by_baits_alone(tmp_path: Path) -> None:
    swept = hunted(tmp_path / "swept", ("mul",))
    tally = hunted(tmp_path / "baited", ("mul-constant",))
    assert tally.taken == places("mul-constant")
    assert swept.taken == 8 * STEP >= 3 * tally.taken
    assert not swept.findings
    (finding,) = tally.findings.values()
    assert (finding.symptom, finding.operators) == ("value", ("mul",))
    assert (Path(finding.path) / "reproducer.py").exists()


def test_baits_are_planned_like_sweeps_and_gone_on_with(tmp_path: Path) -> None:
    names = ("add", "gelu-by-erf", "shift-back")
    plan = Plan((EAGER,), names, 5)
    first, *_ = islice(plan.steps(), 1)
    assert {name for name, _ in first.takes} == set(names)
    assert first.takes == next(plan.steps()).takes
    done = Done()
    done.add(first)
    done.save(tmp_path)
    again = next(replace(plan, done=load(tmp_path).bits).steps())
    assert not set(first.takes) & set(again.takes)


def test_a_lane_has_the_baits_that_it_can_express() -> None:
    gradient = Lane("gradient", TARGETS["torch-eager"]).operators(tuple(BAITS))
    assert "shift-back" not in gradient
    assert "gelu-by-erf" in gradient
    only_tensorflow = {"fused-batch-norm-far-from-zero", "mean-of-many-rows"}
    only_jax = {"block-of-block", "block-of-moved", "block-written-back"}  # blocks that begin where a tensor says
    assert set(EAGER.operators(tuple(BAITS))) == set(BAITS) - only_tensorflow - only_jax
    assert only_jax <= set(Lane("forward", TARGETS["jax-eager"]).operators(tuple(BAITS)))
    assert only_tensorflow <= set(Lane("forward", TARGETS["tf-eager"]).operators(tuple(BAITS)))
    assert operators_of("gelu-by-erf") == {"div", "erf", "add", "mul"}
