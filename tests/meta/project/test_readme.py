"""What README.md and docs/commands.md say works: the code is executed, commands and options exist."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import settings
from syrupy.assertion import SnapshotAssertion
from typer.main import get_command

from generators.graph import Graph, Leaf, Node, TensorType
from generators.graphs import Case
from generators.ops import OPS, check
from harness.backends import TARGETS, probe
from harness.commands import app
from harness.dialects import DIALECTS
from harness.execute.pool import Pool
from harness.search.laboratory import Laboratory
from oracles.judge import verdict
from oracles.judge.outcome import Value
from oracles.questions import forward

ROOT = Path(__file__).parents[3]
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = (ROOT / "docs/commands.md").read_text(encoding="utf-8")


def example(heading: str) -> SimpleNamespace:
    """What the one Python block under a heading defines."""
    section = re.split(rf"^### {heading}$", README, flags=re.MULTILINE)[1]
    section = re.split(r"^##", section, flags=re.MULTILINE)[0]
    (block,) = re.findall(r"^```python\n(.*?)^```$", section, flags=re.MULTILINE | re.DOTALL)
    namespace: dict = {"__name__": "readme"}
    exec(compile(block, f"README.md, {heading}", "exec"), namespace)
    return SimpleNamespace(**namespace)


@pytest.fixture
def case(monkeypatch: pytest.MonkeyPatch) -> Case:
    """The README's operator, registered, applied to one array."""
    monkeypatch.setitem(OPS, "cube", example("Adding an operator").cube)
    type_ = TensorType("float32", (4,))
    graph = Graph((Leaf("x0", type_),), (Node("v0", "cube", ("x0",), (), type_),), ("v0",))
    return Case(check(graph), {"x0": np.array([0.1, -1.5, 3.0, -0.0], "float32")})


def test_every_python_block_is_covered() -> None:
    assert README.count("```python") == 3


def test_adding_an_operator(case: Case, snapshot: SnapshotAssertion) -> None:
    assert [d.unsupported(case.graph) for d in DIALECTS.values()] == [None] * len(DIALECTS)
    assert DIALECTS["torch"].source(case.graph, "") == snapshot
    bound = forward.plan(case)["v0"]
    x = case.arrays["x0"]
    assert np.array_equal(bound.value, x.astype("float64") ** 3)
    right = Value((x * x * x,))
    assert verdict.judge(forward.expect(case), right).status == "agree"
    wrong = Value((x * x * x * np.float32(1 + 2**-20),))
    assert verdict.judge(forward.expect(case), wrong).status == "mismatch"


def test_adding_a_back_end(case: Case, snapshot: SnapshotAssertion) -> None:
    target = example("Adding a back end").TARGETS[0]
    assert target.program(case.graph) == snapshot
    if not probe.probe(target).available:
        pytest.skip(f"{target.name}: {probe.probe(target).reason}")
    with Pool() as pool:
        examination = Laboratory(pool).examine(case, [target])
    assert examination.verdicts["torch-fx"].status == "agree"


def test_adding_an_oracle(case: Case) -> None:
    odd = example("Adding an oracle").QUESTIONS[0]
    assert np.array_equal(odd.arrays(case)["x0"], -case.arrays["x0"])
    x = odd.arrays(case)["x0"]
    assert verdict.judge(odd.expect(case), Value((x * x * x,))).discrepancy is None
    planted = verdict.judge(odd.expect(case), Value((x * x * x + np.float32(1e-3),))).discrepancy
    assert planted is not None
    assert planted.symptom == "value"
    target = TARGETS["torch-eager"]
    if not probe.probe(target).available:
        pytest.skip(f"{target.name}: {probe.probe(target).reason}")
    with Pool() as pool:
        examination = Laboratory(pool, odd).examine(case, [target])
    assert examination.verdicts[target.name].status == "agree"


def test_commands_and_options_exist() -> None:
    commands = get_command(app.app_of()).commands  # pyright: ignore[reportAttributeAccessIssue]
    rows = dict(re.findall(r"^\| `(\w+)[^`]*` \| (.*) \|$", COMMANDS.split("## Campaigns")[0], re.MULTILINE))
    assert set(rows) == set(commands)
    named = re.findall(r"`(\w+)(?: [A-Z ]+)?`", README.split("harness COMMAND`:")[1].split("and more")[0])
    assert len(named) > 5
    assert set(named) <= set(commands)
    names = (
        *("hunt", "cells", "train", "conversions", "quantise", "conformance", "surface", "errors", "baits", "site"),
        *("report", "bisect", "nightly", "bounds"),
    )
    asked = [parameter for name in names for parameter in commands[name].params]
    groups = ("study", "db")
    asked += [parameter for group in groups for one in commands[group].commands.values() for parameter in one.params]
    options = {option for parameter in asked for option in (*parameter.opts, *parameter.secondary_opts)}
    section = COMMANDS.split("## Campaigns")[0]
    named = set(re.findall(r"`(--[a-z][\w-]+)", section)) - {"--help"}
    assert named
    assert named <= options


def test_pytest_options_and_profiles_exist(pytestconfig: pytest.Config) -> None:
    section = COMMANDS.split("## Campaigns")[1]
    for option in set(re.findall(r"(?<!-)--[a-z][\w-]+", section)):
        pytestconfig.getoption(option)  # raises ValueError where there is none
    for name, examples in re.findall(r"^\| `(\w+)` \| (\d+) \|", section, re.MULTILINE):
        assert settings.get_profile(name).max_examples == int(examples)
