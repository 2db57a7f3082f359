"""Registries and tracers, on the frameworks that are here."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from generators.ops import OPS
from harness.commands.app import app_of
from harness.conversions.edges import EDGES
from harness.execute.pool import Limits, Pool
from harness.studies.surface import scope, trace
from harness.studies.surface.cell import Listed, Reached, cells_of
from harness.studies.surface.registries import REGISTRIES
from harness.studies.surface.scope import excluded, features_of, tags_of
from harness.studies.surface.trace import Missing, calls, listed


@pytest.fixture
def pool() -> Iterator[Pool]:
    with Pool(Limits(seconds=300), tolerant=True) as pool:
        yield pool


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two operators alone."""
    monkeypatch.setattr(trace, "OPS", {name: OPS[name] for name in ("softmax", "clip")})


def quiet(*told: object) -> None: ...


def test_a_sweep_reaches_what_it_calls_and_is_kept(pool: Pool, few: None, tmp_path: Path) -> None:
    registry = REGISTRIES["onnx"]
    found = listed(pool, registry, tmp_path)
    assert len(found) > 150
    traced = calls(pool, registry.tracer, tmp_path, 12, quiet)
    assert traced.programs > 4
    assert traced.failed == {}
    cells = {str(cell): Reached(traced.observations).by(cell) for cell in cells_of("onnx", found)}
    assert cells["Softmax"] == {"softmax"}
    assert cells["Softmax attribute axis=given"] == {"softmax"}
    assert cells["Softmax type T=float32"] == {"softmax"}
    assert cells["Clip"] == {"clip"}
    assert cells["Conv"] == set()
    with Pool() as other:
        other.run = None  # type: ignore[method-assign]
        assert listed(other, registry, tmp_path) == found
        assert calls(other, registry.tracer, tmp_path, 12, quiet) == traced


def test_what_a_framework_accepts_is_measured(pool: Pool, few: None, tmp_path: Path) -> None:
    traced = calls(pool, REGISTRIES["jax"].tracer, tmp_path, 4, quiet)
    assert {"type float32", "type bfloat16", "type complex64"} <= set(traced.accepted["exp"])
    assert "type int32" not in traced.accepted["exp"]


def test_a_missing_framework_is_a_line(pool: Pool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    absent = replace(REGISTRIES["onnx"], name="absent", modules=("a_framework_that_is_not_here",))
    with pytest.raises(Missing, match=r"^absent: .* No module named 'a_framework_that_is_not_here'$"):
        listed(pool, absent, tmp_path)
    monkeypatch.setattr("harness.commands.reach.surface.REGISTRIES", {"absent": absent})
    result = CliRunner().invoke(app_of(), ["surface", "--findings", str(tmp_path), "--json", str(tmp_path / "s.json")])
    assert result.exit_code == 0, result.output
    assert json.loads((tmp_path / "s.json").read_text())[0]["off"].startswith("absent: ")


def test_a_registry_that_is_not_there_is_a_line() -> None:
    result = CliRunner().invoke(app_of(), ["surface", "--registries", "onxx"])
    assert result.exit_code == 2


def test_registries_name_edges_that_are_there() -> None:
    assert {edge for registry in REGISTRIES.values() for edge in registry.edges} <= set(EDGES)


@pytest.fixture(scope="module")
def lists(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Listed]:
    """Of every registry that is here."""
    found = {}
    with Pool(Limits(seconds=300), tolerant=True) as pool:
        for name, registry in REGISTRIES.items():
            try:
                found[name] = listed(pool, registry, tmp_path_factory.mktemp("surface"))
            except Missing:
                continue
    return found


@pytest.mark.slow
def test_registries_are_not_empty(lists: dict[str, Listed]) -> None:
    assert {name: len(found) for name, found in lists.items() if len(found) < 100} == {}


@pytest.mark.slow
def test_every_rule_leaves_something_out(lists: dict[str, Listed]) -> None:
    rules = scope.load()
    used = {
        id(excluded(cell, tags, rules))
        for name, found in lists.items()
        for tags in [tags_of(found)]
        for cell in cells_of(name, features_of(found))
    }
    assert [rule for rule in rules if id(rule) not in used and {*rule.registries} & {*lists}] == []
    assert all(rule.why and set(rule.registries) <= set(REGISTRIES) for rule in rules)
