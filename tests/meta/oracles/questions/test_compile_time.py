"""How long a program takes to compile: a compiler that takes its time over one operator is found, others are not."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from generators.graph import Graph, Leaf, Node, TensorType
from generators.graphs import Case
from harness.backends import TARGETS, Target
from harness.execute.pool import Pool
from harness.findings.store import Store
from harness.questions.compile_time import COMPILE_TIME
from harness.search.campaign import Campaign
from harness.search.laboratory import Laboratory
from harness.search.reduce import Budget
from oracles.questions import compile_time

_BUSY = """def load(parameters):
    import time

    end = time.process_time() + 1.2
    while "sqrt" in model.__code__.co_names and time.process_time() < end:
        pass
"""


@pytest.fixture(scope="module")
def lab() -> Iterator[Laboratory]:
    with Pool() as pool:
        yield Laboratory(pool, COMPILE_TIME)


def busy() -> Target:
    """Compiles square roots for longer than anybody waits."""
    target = TARGETS["torch-eager"]
    return replace(target, load=target.load.replace("def load(parameters):\n", _BUSY, 1))


def case(*operators: str) -> Case:
    """A chain of operators of one operand."""
    type_ = TensorType("float32", (2, 3))
    names = ["x0", *(f"v{number}" for number in range(len(operators)))]
    nodes = (Node(names[i + 1], op, (names[i],), (), type_) for i, op in enumerate(operators))
    return Case(Graph((Leaf("x0", type_),), tuple(nodes), (names[-1],)), {"x0": np.ones((2, 3), np.float32)})


def test_the_plain_program_has_as_many_nodes_of_the_greatest_size() -> None:
    made = compile_time.plain(case("sqrt", "exp", "tanh").graph)
    assert made.operators == ("neg",)
    assert len(made.nodes) == 3
    assert {node.type for node in made.nodes} == {TensorType("float32", (2, 3))}


@pytest.mark.slow(one_in=5)
@pytest.mark.parametrize("name", ["torch-eager", "tf-graph", "jax-jit", "ort-all", "tvm-O2"])
def test_what_is_compiled_at_once_is_right(name: str, lab: Laboratory) -> None:
    assert lab.judge(case("sqrt", "exp"), [TARGETS[name]]).verdicts[name].status == "agree"


def test_what_takes_long_is_found(lab: Laboratory) -> None:
    target = busy()
    assert lab.judge(case("exp"), [target]).verdicts[target.name].status == "agree"
    discrepancy = lab.judge(case("exp", "sqrt"), [target]).verdicts[target.name].discrepancy
    assert discrepancy
    assert discrepancy.symptom == "slow"
    assert "allowed 20" in discrepancy.message


@pytest.mark.nightly
def test_it_is_made_small_and_handed_over(lab: Laboratory, tmp_path: Path) -> None:
    target, slow = busy(), case("exp", "sqrt")
    discrepancy = lab.judge(slow, [target]).verdicts[target.name].discrepancy
    assert discrepancy
    campaign = Campaign(lab, [target], Store(tmp_path), reduction=lambda: Budget(4, 20), confirmations=1)
    finding = campaign.investigate(target, slow, discrepancy)
    assert finding
    assert finding.path
    assert (finding.symptom, finding.oracle, finding.operators) == ("slow", "compile_time", ("sqrt",))
    assert "SlowCompilation  sqrt" in (Path(finding.path) / "report.md").read_text(encoding="utf-8")
    script = Path(finding.path) / "reproducer.py"
    assert subprocess.run([sys.executable, str(script)], capture_output=True, timeout=100).returncode == 1
    repaired = script.with_name("repaired.py")
    repaired.write_text(script.read_text(encoding="utf-8").replace("+ 1.2", "+ 0.0"), encoding="utf-8")
    assert subprocess.run([sys.executable, str(repaired)], capture_output=True, timeout=100).returncode == 0
