"""What known issues excuse, and that a fault planted next to each of them is still found."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from generators import caseio
from generators.graph import Graph, Leaf, Node, TensorType
from generators.graphs import Case
from generators.ops import OPS
from generators.sweep import swept
from harness.backends import TARGETS
from harness.commands.hunt import lanes_of
from harness.execute.pool import Pool
from harness.findings.known import issues
from harness.findings.known.issues import KnownIssue
from harness.questions import QUESTIONS
from harness.questions.forward import FORWARD
from harness.search.blame import planted
from harness.search.blame.blind import measure
from harness.search.blame.culprit import Culprit
from harness.search.blame.excuses import Excuses, may_show
from harness.search.laboratory import Laboratory
from oracles.judge.discrepancy import Discrepancy
from oracles.judge.outcome import Outcome, Rejected, Value
from oracles.judge.verdict import judge

ISSUES = issues.load()
NARROWED = [issue for issue in ISSUES if not issue.unrestricted]
TARGET = TARGETS["torch-eager"]
F = np.float32


def issue(**keys: object) -> KnownIssue:
    """A known issue of argmax on PyTorch."""
    return KnownIssue(
        Path("planted"),
        **{"targets": ("torch-*",), "symptoms": ("value",), "operators": ("argmax",), "reason": "planted"} | keys,  # type: ignore[arg-type]
    )


def argmax(pool: Pool, outcome: Outcome) -> tuple[Laboratory, Culprit]:
    """argmax of two rows, of which the first has a NaN: 1 and 2 are right."""
    array = np.array([[1, np.nan, 3], [4, 5, 6]], np.float32)
    node = Node("v0", "argmax", ("x0",), (("axis", 1), ("keepdims", False)), TensorType("int64", (2,)))
    case = Case(Graph((Leaf("x0", TensorType("float32", (2, 3))),), (node,), ("v0",)), {"x0": array})
    lab = Laboratory(pool)
    expected = lab.question.expect(case)
    found = judge(expected, outcome).discrepancy
    assert found is not None
    return lab, Culprit(node, case, found, expected, outcome)


@pytest.mark.parametrize(
    ("returned", "left"),
    [
        ((2, 2), ""),
        ((2, 0), "mismatched 1 of 2 (50 %)   first at (1): expected 2, got 0"),
        ((1, 0), "mismatched 1 of 2"),
    ],
)
def test_only_elements_that_an_entry_names_are_excused(returned: tuple, left: str, pool: Pool) -> None:
    lab, culprit = argmax(pool, Value((np.array(returned),)))
    explained = Excuses(lab, (issue(where="any(isnan(x0), axis)"),)).explain(TARGET, culprit)
    assert (explained.left.message if explained.left else "").startswith(left)
    assert (explained.left is None) == (left == "")


@pytest.mark.slow
def test_known_issues_keep_few_cases_apart(pool: Pool) -> None:
    """A case that is likely to return nothing has a program of its own, which costs ten times as much: an issue of all
    operators does not make it likely, except of what is empty. Of what a plan goes through unless told otherwise."""
    chosen = [
        one
        for i, name in enumerate(OPS)
        if i % 12 == 0 and FORWARD.why_not(TARGET, (one := swept(name, 0, 1)).graph) is None
    ]
    assert len(chosen) > 40
    apart = {}
    for question in (FORWARD, QUESTIONS["conversion"]):
        excuses = Excuses(Laboratory(pool, question), ISSUES)
        for lane in lanes_of("*", [question.name])[::5]:
            name, target = lane.target.name, lane.target
            silent = excuses.silent(target)
            apart[name] = sum(silent.nearby(target, one.graph) for one in chosen) / len(chosen)
    assert {name: share for name, share in apart.items() if share > 0.3} == {}
    for operators, kept in ((("*",), False), (("neg",), True)):
        silent = Excuses(Laboratory(pool), (issue(symptoms=("rejected",), operators=operators),)).silent(TARGET)
        assert silent.nearby(TARGET, swept("neg", 0, 1).graph) == kept


@pytest.mark.parametrize("question", ["vmap", "dynamic"])
@pytest.mark.parametrize("wrong", ["what it names", "more"])
def test_operands_are_those_of_the_lane_or_of_the_size(question: str, wrong: str, pool: Pool) -> None:
    """Zeros where 3 x is above 6: of each lane, and at each size."""
    type_ = TensorType("float32", (2, 3))
    node = Node("v0", "mul", ("x0", "x1"), (), type_)
    graph = Graph((Leaf("x0", type_), Leaf("x1", type_)), (node,), ("v0",))
    case = Case(graph, {"x0": np.arange(-2, 4, dtype=F).reshape(2, 3), "x1": np.full((2, 3), 3, F)})
    lab = Laboratory(pool, question=QUESTIONS[question])
    expected = lab.question.expect(case)
    limit = 6 if wrong == "what it names" else 2
    outputs = tuple(np.where(y.value > limit, 0, y.value).astype(F) for y in expected.values)
    found = judge(expected, Value(outputs)).discrepancy
    assert found is not None
    known = issue(operators=("mul",), where="x0 * x1 > 6 and got == 0")
    explained = Excuses(lab, (known,)).explain(TARGET, Culprit(node, case, found, expected, Value(outputs)))
    assert (explained.left is None) == (wrong == "what it names")


def test_a_rejection_is_not_excused_by_a_wrong_value(pool: Pool) -> None:
    lab, culprit = argmax(pool, Rejected("RuntimeError", "internal"))
    assert Excuses(lab, (issue(),)).explain(TARGET, culprit).left == culprit.discrepancy
    assert Excuses(lab, (issue(symptoms=("rejected",)),)).explain(TARGET, culprit).left is None


def test_what_shows_beside_others_excuses_nothing_alone(pool: Pool) -> None:
    lab, culprit = argmax(pool, Value((np.array([0, 0]),)))
    assert Excuses(lab, (issue(together=True),)).explain(TARGET, culprit).left == culprit.discrepancy
    assert Excuses(lab, (issue(together="also"),)).explain(TARGET, culprit).left is None


def test_what_is_known_of_an_importer_holds_for_the_target_that_shares_it(pool: Pool) -> None:
    known = issue(oracle="conversion", targets=("torch/tvm-pt2/*",), symptoms=("rejected",), message="no such")
    excuses, shown = Excuses(Laboratory(pool), (known,)), Discrepancy("rejected", "no such operator")
    assert excuses.concerns(known, TARGETS["tvm-fx"], shown)
    assert not excuses.concerns(known, TARGETS["tvm-O2"], shown)
    assert not excuses.concerns(known, TARGETS["tvm-fx"], Discrepancy("rejected", "another"))


def test_what_a_node_alone_may_make_a_graph_show() -> None:
    assert may_show("value", "special")
    assert may_show("crash", "crash")
    assert may_show("rejected", "type")
    assert not may_show("crash", "value")
    assert not may_show("rejected", "value")
    assert not may_show("rejected", "crash")
    assert not may_show("value", "rejected")


def test_how_much_is_hidden(pool: Pool) -> None:
    lab, of = Laboratory(pool), ("argmax",)
    none = measure(lab, (), (TARGET,), of).row("")
    some = measure(lab, (issue(where="any(isnan(x0), axis)"),), (TARGET,), of).row("")
    every = measure(lab, (issue(),), (TARGET,), of)
    assert none["hidden"] == none["blind"] == some["blind"] == 0
    assert every.row("value")["cells"] == every.row("value")["blind"] == every.blind_by_issue["planted"]
    assert every.row("crash")["blind"] == 0


@pytest.mark.slow(one_in=25, ci=12)
@pytest.mark.parametrize("known", NARROWED, ids=lambda known: known.id)
def test_a_fault_next_to_a_known_issue_is_found(known: KnownIssue, pool: Pool) -> None:
    """Same operator, symptom and dtype, all other issues asked, too."""
    question = QUESTIONS[known.oracle]
    lab = Laboratory(pool, question)
    target = next(target for target in question.targets.values() if known.names(target.name))
    one = planted.shown_by(known, caseio.loads(known.case.read_text(encoding="utf-8")))
    assert one is not None
    hidden = [s for s in known.symptoms if planted.hides_all(lab, Excuses(lab, ISSUES), target, known, one, s)]
    assert hidden == []


def test_those_that_nothing_narrows_are_few() -> None:
    """Whoever adds one finds a pattern, or raises the number with a reason in the entry."""
    assert len(ISSUES) - len(NARROWED) <= 51
