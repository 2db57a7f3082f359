"""How small an error the oracles see: faults are struck where they say, and counted as they are."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from generators.bounds.bounded import Bounded
from generators.graph import TensorType
from generators.training.runs import seeded_training
from harness.commands.app import app_of
from harness.execute.pool import Pool
from harness.execute.ranks import RankPools
from harness.strategies import STRATEGIES
from harness.studies.faults.mutation import EXTENTS, SIZES, STRATEGY, WORLD, Mutant, Seen, _seen, mutants
from harness.studies.faults.sensitivity import shares, tables_of
from oracles.judge.compare import Expected
from oracles.judge.outcome import Crash, Value

ONE = Mutant("forward", 0, "add", "float32", "element", 1e-4, 1e-4, True)


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool() as pool:
        yield pool


@pytest.mark.parametrize(("oracle", "count"), [("forward", 9), ("gradient", 4)])
def test_great_errors_are_caught_and_small_ones_are_smaller(oracle: str, count: int, pool: Pool) -> None:
    with RankPools() as pools:
        found = [one for number in range(count) for one in mutants(oracle, 0, number, pool, pools)]
        again = list(mutants(oracle, 0, 2, pool, pools))
    assert again == [one for one in found if one.number == 2]  # the seed and the number alone decide
    assert {(one.extent, one.size) for one in found} == {(extent, size) for extent in EXTENTS for size in SIZES}
    great = [one for one in found if one.size == 1.0 and one.visible and one.determined]
    assert great
    # what is struck may be a number so near 0 that flushing it is allowed
    assert sum(one.caught for one in great) >= 0.75 * len(great)
    assert not any(one.caught for one in found if not one.visible)
    by = {line.group: line for line in shares(found, lambda one: (one.oracle, one.size))}
    assert by[f"{oracle}, 1e-07"].caught < by[f"{oracle}, 1"].caught


@pytest.mark.slow
@pytest.mark.distributed
def test_a_gradient_after_all_reduce() -> None:
    number = next(n for n in range(99) if not STRATEGIES[STRATEGY].refusal(seeded_training(0, n), WORLD))
    with RankPools() as pools, Pool() as pool:
        one = list(mutants("sharding", 0, number, pool, pools))
        all_ = list(mutants("reduction", 0, number, pool, pools))
    for found in (one, all_):
        assert len(found) == len(SIZES) * len(EXTENTS)
        assert all(one.caught for one in found if one.size == 1.0 and one.visible)
    assert [m.caught for m in one] == [m.visible for m in one]  # replicas are apart: no tolerance
    assert not all(m.caught for m in all_)  # they agree on what is wrong


def test_what_is_seen_of_a_change() -> None:
    kinds = (TensorType("float32", (2,)), TensorType("int64", (1,)))
    bounds = (
        Bounded(np.array([1.0, 2.0]), np.array([1e-3, np.inf]), "float32"),
        Bounded(np.array([3]), np.zeros(1), "int64"),
    )
    expected = Expected(("v0", "v1"), kinds, bounds)

    def value(first: float, second: float, third: int) -> Value:
        return Value((np.array([first, second], np.float32), np.array([third])))

    right = value(1.0, 2.0, 3)
    assert _seen(expected, right, right) == Seen(0.0)
    assert _seen(expected, right, value(1.0, 2.5, 3)) == Seen(0.25, False)  # only what is undetermined changed
    assert _seen(expected, right, value(1.0, float("nan"), 3)) == Seen(1.0, False)
    assert _seen(expected, right, value(1.5, 2.0, 3)) == Seen(0.5)
    assert _seen(expected, right, value(1.0, 2.0, 4)) == Seen(1.0)
    assert _seen(expected, right, Crash("signal", "")) == Seen(1.0)
    small = 1e-39
    seen = _seen(expected, value(small, 2.0, 3), value(2e-39, 2.0, 3))
    assert (seen.shown == pytest.approx(1.0), seen.determined, seen.subnormal) == (True, True, True)
    assert not _seen(expected, value(small, 2.0, 3), value(2e-38, 2.0, 3)).subnormal


def test_shares_by_hand() -> None:
    found = [
        ONE, replace(ONE, caught=False), replace(ONE, caught=False, determined=False),
        replace(ONE, caught=False, subnormal=True), replace(ONE, shown=0.0, caught=False),
        replace(ONE, size=1e-2, shown=3e-2),
    ]  # fmt: skip
    small, large = shares(found, lambda one: (one.oracle, one.size))
    assert (small.group, small.all, small.visible, small.caught) == ("forward, 0.0001", 5, 4, 1)
    assert (small.undetermined, small.subnormal, small.told, small.told_caught) == (1, 1, 2, 1)
    assert (large.group, large.visible, large.caught) == ("forward, 0.01", 1, 1)
    assert small.interval.low < 1 / 4 < small.interval.high
    assert small.told_interval.low < 1 / 2 < small.told_interval.high
    by_change = tables_of(found)["oracle and greatest relative change in what was returned"]
    assert [line.group for line in by_change] == ["forward, 0.0001", "forward, 0.01"]


def test_the_command(tmp_path: Path) -> None:
    given = ["study", "sensitivity", "--runs", "0", "--oracles", "forward", "--record", str(tmp_path / "r")]
    files = ["--csv", str(tmp_path / "a.csv"), "--html", str(tmp_path / "a.html"), "--json", str(tmp_path / "a.json")]
    assert CliRunner().invoke(app_of(), [*given, "--cases", "2"]).exit_code == 0
    found = CliRunner().invoke(app_of(), [*given, "--cases", "3", *files])
    assert found.exit_code == 0, found.output
    faults = json.loads((tmp_path / "a.json").read_text())["faults"]
    assert len(faults) == (tmp_path / "a.csv").read_text().count("\n") - 1
    assert {one["number"] for one in faults} <= {0, 1, 2}
    assert "How small an error" in (tmp_path / "a.html").read_text()
    wrong = CliRunner().invoke(app_of(), ["study", "sensitivity", "--oracles", "backward"])
    assert wrong.exit_code == 2
