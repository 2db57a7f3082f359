"""What entries ask of the nodes beside one, and that each of those that show beside other nodes only explains its own
case, and the same node elsewhere not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from generators import caseio
from generators.graph import Graph, Leaf, Node, TensorType
from generators.graphs import Case
from harness.backends import TARGETS
from harness.execute.pool import Pool
from harness.findings.known import issues
from harness.findings.known.entry import KnownFileError
from harness.findings.known.issues import KnownIssue
from harness.findings.known.neighbours import Neighbours
from harness.findings.known.predicate import Predicate, values_of
from harness.questions import QUESTIONS
from harness.search.blame.culprit import single
from harness.search.blame.culprit import values_of as reference_of
from harness.search.blame.excuses import Excuses
from harness.search.laboratory import Laboratory
from oracles.judge.discrepancy import Discrepancy

TOGETHER = [issue for issue in issues.load() if issue.together]
ASKING = [issue for issue in TOGETHER if "below(" in str(issue.where) or "above(" in str(issue.where)]
SQUARE = TensorType("float32", (2, 2))


def node(name: str, operator: str, *operands: str) -> Node:
    """Of matrices of two rows."""
    attributes = {"transpose": (("perm", (1, 0)),), "mul_scalar": (("scalar", 2.0),)}.get(operator, ())
    return Node(name, operator, operands, attributes, SQUARE)


def graph(*nodes: Node) -> Graph:
    """Of an input x and a parameter w."""
    return Graph((Leaf("x", SQUARE), Leaf("w", SQUARE, "parameter")), nodes, (nodes[-1].name,)).validate()


CHAIN = graph(
    node("t", "transpose", "x"),
    node("c", "neg", "w"),
    node("m", "matmul", "t", "c"),
    node("r", "relu", "m"),
    node("s", "sqrt", "r"),
)


@pytest.mark.parametrize(
    ("text", "at", "expected"),
    [
        ("before('transpose')", "m", True),
        ("before('trans*', 0)", "m", True),
        ("before('transpose', 1)", "m", False),
        ("before('neg,transpose', 1)", "m", True),
        ("before('transpose')", "r", False),
        ("above('transpose')", "r", True),
        ("above('transpose', 1)", "m", False),
        ("above('matmul')", "m", False),
        ("before('constant', 1)", "m", True),
        ("before('constant', 0)", "m", False),
        ("before('input')", "t", True),
        ("before('input', 0)", "m", False),
        ("above('input', 0) and not above('input', 1)", "m", True),
        ("before('*')", "t", False),
        ("before('constant', 2)", "m", False),
        ("after('relu')", "m", True),
        ("after('sqrt')", "m", False),
        ("below('sqrt')", "t", True),
        ("below('relu')", "r", False),
        ("after('*')", "s", False),
    ],
)
def test_what_stands_beside(text: str, at: str, expected: bool) -> None:
    (one,) = (one for one in CHAIN.nodes if one.name == at)
    assert Predicate(text).holds(Neighbours(CHAIN, one).facts, ()) == expected


def test_an_operator_that_follows_from_another_one_is_that_one_too() -> None:
    made = graph(node("a", "transpose_otherwise", "x"), node("b", "neg", "a"))
    assert Predicate("before('transpose')").holds(Neighbours(made, made.nodes[1]).facts, ())


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("above('matmull')", "no operator matches 'matmull'"),
        ("above('matmul,parameter')", "no operator matches 'parameter'"),
        ("above('matmul', 2)", "there is no operand 2"),
        ("above(x0)", "above(x0) is not part of the language"),
        ("above('matmul', 'neg')", "above('matmul', 'neg') is not part of the language"),
        ("below('matmul', 0)", "below('matmul', 0) is not part of the language"),
        ("above()", "above() is not part of the language"),
    ],
)
def test_what_may_not_be_asked(where: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(KnownFileError) as caught:
        issues.load(written(tmp_path, where, "true"))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_only_entries_of_several_nodes_ask(tmp_path: Path) -> None:
    with pytest.raises(KnownFileError, match="by entries with `together` only"):
        issues.load(written(tmp_path / "alone", "above('neg')", "false"))
    assert [issue.id for issue in issues.load(written(tmp_path / "beside", "above('neg')", "true"))] == ["x"]


def written(root: Path, where: str, together: str) -> Path:
    """A folder of one entry, of add."""
    folder = root / "torch" / "x"
    folder.mkdir(parents=True)
    text = 'targets = ["torch-*"]\nsymptoms = ["value"]\noperators = ["add"]\nreason = "planted"\n'
    (folder / "issue.toml").write_text(f'{text}together = {together}\nwhere = "{where}"\n')
    (folder / "case.json").write_text("{}")
    return root


def test_a_fault_beside_other_nodes_is_found(pool: Pool) -> None:
    """An entry of a product by quantised weights explains that one, and no other product."""
    known = KnownIssue(
        Path("planted"), ("torch-*",), ("value",), ("matmul",), "planted", together=True, where="above('neg', 1)"
    )
    excuses = Excuses(Laboratory(pool), (known,))
    for first, second, excused in (("t", "c", True), ("c", "t", False), ("x", "w", False)):
        made = graph(node("t", "transpose", "x"), node("c", "neg", "w"), node("m", "matmul", first, second)).pruned()
        arrays = {leaf.name: np.ones((2, 2), np.float32) for leaf in made.leaves}
        values = reference_of(Case(made, arrays))
        shown = Discrepancy("value", "planted")
        found = excuses.together(TARGETS["torch-eager"], made, made.nodes[-1], shown, values)
        assert found == (known if excused else None)


def explaining(issue: KnownIssue, case: Case) -> Iterator[Node]:
    """The nodes of a case by which the entry would explain what the case shows, its message apart."""
    question, values = QUESTIONS[issue.oracle], reference_of(case)
    made = case.graph
    constants = {leaf.name for leaf in made.parameters}
    for one in made.nodes:
        types = [made.types[name] for name in one.operands]
        given = [made.types[name] for name in one.operands if name in constants]
        predicate = issue.predicate(one.op)
        known = values_of([values[name] for name in one.operands], one.attributes, one.type.dtype, values[one.name])
        known |= {**question.facts(made, one), **Neighbours(made, one).facts}
        if issue.covers(one.op, one.type, types, given) and (predicate is None or predicate.holds(known, ()).any()):
            yield one


def case_of(issue: KnownIssue) -> Case:
    return caseio.loads(issue.case.read_text(encoding="utf-8"))


@pytest.mark.parametrize("issue", TOGETHER, ids=lambda issue: issue.id)
def test_an_entry_is_about_its_own_case(issue: KnownIssue) -> None:
    assert [*explaining(issue, case_of(issue))]


@pytest.mark.parametrize("issue", ASKING, ids=lambda issue: issue.id)
def test_an_entry_is_not_about_the_same_node_elsewhere(issue: KnownIssue) -> None:
    """Of leaves that have its operands' values, alone and before a node that changes nothing."""
    case = case_of(issue)
    values = reference_of(case)
    for guilty in explaining(issue, case):
        one = single(case, guilty, values)
        behind = Node("behind", "identity", (guilty.name,), (), guilty.type)
        more = replace(one.graph, nodes=(*one.graph.nodes, behind), outputs=(behind.name,)).validate()
        assert [*explaining(issue, one), *explaining(issue, Case(more, one.arrays))] == []


def test_what_shows_beside_others_says_beside_which() -> None:
    """Otherwise whatever is wrong with one of its operators would be excused in each graph of several nodes."""
    narrow = [issue.where or issue.message or issue.empty or issue.constant or issue.unrestricted for issue in TOGETHER]
    assert [issue.id for issue, said in zip(TOGETHER, narrow, strict=True) if not said] == []
