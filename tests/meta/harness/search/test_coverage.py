"""What was examined is counted, added up over runs, and shown."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from examples.small_graphs import chain_case
from typer.testing import CliRunner

from generators.bounds.bounded import Bounded
from harness.commands import app
from harness.findings.database import opened
from harness.findings.database.recorder import Recorder, begin
from harness.search import coverage
from harness.search.coverage import Coverage, CoverageError
from oracles.judge.compare import Expected
from oracles.judge.verdict import Verdict
from oracles.questions import forward


def begun(folder: Path) -> Recorder:
    """A run in the store of a folder."""
    return begin(opened.url_of(folder), "hunt", folder, 0, {}, "")


def counted() -> Coverage:
    found = Coverage()
    case = chain_case()
    verdicts = {"torch-eager": Verdict("agree"), "tf-eager": Verdict("mismatch")}
    found.add(case.graph, forward.expect(case), verdicts)
    return found


def test_nodes_outcomes_and_pairs_are_counted() -> None:
    graph = chain_case().graph
    found = counted()
    for node in graph.nodes:
        dtype = graph.types[node.operands[0]].dtype
        assert found.cells[node.op, dtype, "torch-eager", "agree"] >= 1
        assert found.cells[node.op, dtype, "tf-eager", "mismatch"] >= 1
    producers = {node.name: node.op for node in graph.nodes}
    assert set(found.pairs) == {(producers[o], n.op) for n in graph.nodes for o in n.operands if o in producers}


def test_undetermined_elements_are_counted_by_operator() -> None:
    case = chain_case()
    name = case.graph.outputs[0]
    error = np.array([0.0, np.inf, np.inf])
    expected = Expected((name,), (case.graph.types[name],), (Bounded(np.zeros(3), error, "float32"),))
    found = Coverage()
    found.add(case.graph, expected, {"torch-eager": Verdict("agree")})
    operator = next(node.op for node in case.graph.nodes if node.name == name)
    assert (found.elements[operator], found.undetermined[operator]) == (3, 2)


def test_runs_add_up(tmp_path: Path) -> None:
    once = counted()
    coverage.save(begun(tmp_path), {"forward": once})
    coverage.save(begun(tmp_path), {"forward": counted(), "levels": counted()})
    total = coverage.load(tmp_path)
    assert total["levels"] == once
    assert total["forward"].cells == once.cells + once.cells
    assert total["forward"].pairs == once.pairs + once.pairs


@pytest.mark.parametrize("text", ["", "[1]", '{"forward": {"cells": 3}}'])
def test_a_corrupt_file_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / coverage.FILE).write_text(text)
    with pytest.raises(CoverageError, match=coverage.FILE):
        coverage.load_file(tmp_path / coverage.FILE)
    with pytest.raises(CoverageError, match=coverage.FILE):
        coverage.load(tmp_path)


def test_the_command_shows_and_writes_it(tmp_path: Path) -> None:
    coverage.save(begun(tmp_path), {"forward": counted()})
    arguments = [
        "coverage",
        "--findings",
        str(tmp_path),
        "--operators",
        "neg,exp",
        "--json",
        str(tmp_path / "out.json"),
    ]
    result = CliRunner().invoke(app.app_of(), arguments)
    assert result.exit_code == 0, result.output
    assert "operator" in result.output
    assert "ordered pairs of operators" in result.output
    assert json.loads((tmp_path / "out.json").read_text()) == counted().to_json()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--findings", "nowhere"], "nowhere: nothing on 'forward'; there is nothing"),
        (["--operators", "softmux"], "softmux"),
        (["--question", "weather"], "nothing on 'weather'; there is forward"),
    ],
)
def test_what_is_not_there_is_named(tmp_path: Path, arguments: list[str], message: str) -> None:
    coverage.save(begun(tmp_path), {"forward": counted()})
    result = CliRunner().invoke(app.app_of(), ["coverage", "--findings", str(tmp_path), *arguments])
    assert result.exit_code == 2
    assert message in result.output.replace("\n", " ")
