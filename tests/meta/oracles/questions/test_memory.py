"""Programs that write: the cells are those of a program written by hand, PyTorch is accepted, and faults are found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from generators.graph import Graph, Leaf, Node, TensorType
from generators.graphs import Case, seeded_case
from generators.ops import check
from harness.backends import TARGETS, Target
from harness.backends.target.text import swapped
from harness.execute.pool import Pool
from harness.findings.known.issues import KnownIssue
from harness.questions.memory.writes import MEMORY
from harness.search.campaign import Campaign
from harness.search.laboratory import Laboratory
from oracles.questions import cells, memory

EAGER = TARGETS["torch-eager"]


def drawn(index: int) -> Case:
    """Case number `index`, of numbers that show a change."""
    return memory.prepare(seeded_case(21, index, 4, ("add", "neg", "transpose", "slice", "mul")))


def float32(*shape: int) -> TensorType:
    return TensorType("float32", shape)


def columns() -> Case:
    """A read, a write through a view of a view, a read again; the view and its operand are returned."""
    graph = Graph(
        (Leaf("x0", float32(2, 3)),),
        (
            Node("v0", "neg", ("x0",), (), float32(2, 3)),
            Node("v1", "transpose", ("x0",), (("perm", (1, 0)),), float32(3, 2)),
            Node("v2", "slice", ("v1",), (("starts", (1, 0)), ("stops", (3, 2)), ("steps", (1, 1))), float32(2, 2)),
            Node("v3", "square", ("v2",), (), float32(2, 2)),
            Node("v4", "write", ("v2", "v3"), (("mode", "copy"),), float32(2, 2)),
            Node("v5", "neg", ("x0",), (), float32(2, 3)),
        ),
        ("v0", "v4", "v5"),
    )
    return Case(check(graph), {"x0": np.array([[1, 2, 3], [4, 5, 6]], "float32")})


def test_cells_are_those_of_a_program_by_hand() -> None:
    x = np.array([[1, 2, 3], [4, 5, 6]], "float64")
    by_hand, part, before = [], x, x
    for _ in range(memory.CALLS):
        before = -x
        part = x.T[1:3]
        part[...] = part**2
        by_hand += [before, part.copy(), -x, x.copy()]
    strides = [(3, 1), (1, 3), (3, 1)]
    part[...] = memory.POKE
    by_hand += [*strides, before, part, by_hand[-2], x]
    expected = memory.expect(columns())
    assert len(expected.values) == len(by_hand)
    for value, right in zip(expected.values, by_hand, strict=True):
        np.testing.assert_array_equal(value.value, np.array(right))


def test_windows_and_a_dropout_that_drops_nothing_are_views() -> None:
    graph = Graph(
        (Leaf("x0", float32(2, 5)),),
        (
            Node("v0", "dropout_off", ("x0",), (("rate", 0.5),), float32(2, 5)),
            Node("v1", "sliding_windows", ("v0",), (("axis", 1), ("size", 2), ("step", 3)), float32(2, 2, 2)),
            Node("v2", "neg", ("v1",), (), float32(2, 2, 2)),
            Node("v3", "write", ("v1", "v2"), (("mode", "copy"),), float32(2, 2, 2)),
            Node("v4", "sliding_windows", ("x0",), (("axis", 1), ("size", 3), ("step", 1)), float32(2, 3, 3)),
        ),
        ("v4",),
    )
    found = cells.layout(check(graph))
    assert found.views == {"v0", "v1", "v4"}
    assert found.strides("v1") == (5, 3, 1)
    assert not found.cells["v4"].flags.writeable, "windows that overlap"
    x = np.arange(10, dtype="float32").reshape(2, 5)
    once = x * np.array([-1, -1, 1, -1, -1])
    windows = np.stack([once[:, i : i + 3] for i in range(3)], 1)
    for value, right in zip(memory.expect(Case(graph, {"x0": x})).values, (windows, once), strict=False):
        np.testing.assert_array_equal(value.value, right)


def test_the_program_says_what_it_writes() -> None:
    text = MEMORY.program(EAGER, columns().graph)
    assert "v3 = v2.square_()" in text
    assert "POKED = 1 " in text


@pytest.mark.parametrize(
    ("mode", "text"),
    [
        ("slice", "v4 = assigned_slice(x0, (1, 0), (3, 3), (1, 1), v3)"),
        ("rows", "v4 = copied_by_index(v2, v3)"),
        ("copy", "v3 = torch.square(x1, out=v2)"),
    ],
)
def test_writes_are_said_in_several_ways(mode: str, text: str, pool: Pool) -> None:
    """By a subscript no view of what is written to is there before. All of them do the same, and PyTorch does it."""
    graph = Graph(
        (Leaf("x0", float32(3, 3)), Leaf("x1", float32(2, 3))),
        (
            Node("v2", "slice", ("x0",), (("starts", (1, 0)), ("stops", (3, 3)), ("steps", (1, 1))), float32(2, 3)),
            Node("v3", "square", ("x1",), (), float32(2, 3)),
            Node("v4", "write", ("v2", "v3"), (("mode", mode),), float32(2, 3)),
        ),
        ("v4",),
    )
    assert text in MEMORY.program(EAGER, check(graph))
    case = Case(graph, {"x0": np.arange(9, dtype="float32").reshape(3, 3), "x1": np.ones((2, 3), "float32")})
    assert Laboratory(pool, MEMORY).judge(case, [EAGER]).verdicts[EAGER.name].status == "agree"


@pytest.mark.parametrize(
    ("nodes", "why"),
    [
        ((Node("v0", "broadcast_to", ("x0",), (("shape", (3, 2)),), float32(3, 2)),), "several elements in one cell"),
        ((Node("v0", "transpose", ("y0",), (("perm", (1, 0)),), float32(2, 2)),), "views that overlap"),
    ],
)
def test_what_is_not_defined_is_not_run(nodes: tuple[Node, ...], why: str) -> None:
    to = nodes[0]
    graph = Graph(
        (Leaf("x0", float32(2)), Leaf("y0", float32(2, 2)), Leaf("z0", float32(3, 2))),
        (*nodes, Node("v1", "write", (to.name, "y0" if to.op == "transpose" else "z0"), (("mode", "copy"),), to.type)),
        ("v1",),
    )
    assert why in (MEMORY.unsupported(EAGER, check(graph)) or "")


def test_slices_overlap_and_what_was_changed_is_written_over() -> None:
    """Among the drawn programs; `test_question_faults.py` plants what they find."""
    graphs = [drawn(index).graph for index in range(200)]
    said = [memory.facts(graph, node) for graph in graphs for node in graph.nodes if node.op == cells.WRITE]
    assert sum(fact["overlaps"] for fact in said) >= 10
    assert sum(fact["copied"] for fact in said) >= 10
    updates = [(graph, node) for graph in graphs for node in graph.nodes if node.op.endswith(("_update", "_scatter"))]
    assert sum(memory.facts(graph, node)["overwritten"] for graph, node in updates) >= 10


def test_an_update_is_drawn_over_after_it_is_made() -> None:
    """Also one that was drawn, with indices."""
    graphs = [memory.prepare(seeded_case(3, index, 2, ("index_put", "index_fill"))).graph for index in range(60)]
    updates = [(graph, node) for graph in graphs for node in graph.nodes if node.op in ("index_put", "index_fill")]
    assert sum(memory.facts(graph, node)["overwritten"] for graph, node in updates) >= 10


# ---- what is known ----------------------------------------------------------------------------------------


def written_twice(copied: bool, part: bool) -> Case:
    """A write to all of a leaf, or to its first row, a copy or a negative of the leaf, a write to all of it."""
    row = (("starts", (0, 0)), ("stops", (1, 3)), ("steps", (1, 1)))
    to, what = ("v0", "x1") if part else ("x0", "x2")
    graph = Graph(
        (Leaf("x0", float32(2, 3)), Leaf("x1", float32(1, 3)), Leaf("x2", float32(2, 3))),
        (
            Node("v0", "slice", ("x0",), row, float32(1, 3)),
            Node("v1", "write", (to, what), (("mode", "copy"),), float32(1 if part else 2, 3)),
            Node("v2", "identity" if copied else "neg", ("x0",), (), float32(2, 3)),
            Node("v3", "square", ("x0",), (), float32(2, 3)),
            Node("v4", "write", ("x0", "v3"), (("mode", "copy"),), float32(2, 3)),
            Node("v5", "neg", ("x2",), (), float32(2, 3)),
        ),
        ("v1", "v2", "v4", "v5"),
    )
    values = np.arange(2, 17, dtype="float32")
    arrays = {"x0": values[:6].reshape(2, 3), "x1": values[6:9].reshape(1, 3), "x2": values[9:].reshape(2, 3)}
    return Case(check(graph), arrays)


def test_what_is_said_of_a_statement() -> None:
    graph = written_twice(copied=True, part=True).graph
    _, first, copy, _, last, _ = graph.nodes
    true = {fact for fact, holds in memory.facts(graph, first).items() if holds}
    assert true == {"part", "written", "copied", "overwritten"}
    assert {fact for fact, holds in memory.facts(graph, copy).items() if holds} == {"written", "overwritten", "changed"}
    assert {fact for fact, holds in memory.facts(graph, last).items() if holds} == {"written"}, "through an output"
    assert set(memory.facts(graph, last)) == set(memory.FACTS)


def late(graph: Graph) -> Graph:
    """What is read between two writes is read after the last one: a fault of programs that write."""
    nodes = {node.name: node for node in graph.nodes}
    order = [*nodes] if "v1" not in nodes else ["v0", "v1", "v3", "v4", "v2", "v5"]
    return replace(graph, nodes=tuple(nodes[name] for name in order))


@pytest.mark.parametrize(
    ("copied", "part", "more", "left"),
    [(True, True, False, False), (False, True, False, True), (True, False, False, True), (True, True, True, True)],
    ids=["what it is about", "no copy", "no part", "and something else"],
)
def test_known_statements_are_taken_out(copied: bool, part: bool, more: bool, left: bool, campaign: Campaign) -> None:
    """An entry about a part that is copied and written over excuses that, nothing near, and nothing beside it."""

    def program(target: Target, graph: Graph) -> str:
        text = MEMORY.program(target, late(graph))
        return swapped(text, ("torch.neg(x2)", "torch.abs(x2)")) if more else text

    about = KnownIssue(
        Path("planted"), ("torch-eager",), ("value",), ("write",), "x", memory.NAME, where="copied and part"
    )
    asked = replace(campaign.with_question(replace(MEMORY, program=program)), issues=(about,))
    case = written_twice(copied, part)
    assert asked.with_question(MEMORY).verdict(EAGER, case).status == "agree"
    wrong = asked.verdict(EAGER, case).discrepancy
    assert wrong
    assert bool(asked.unexplained(EAGER, case, wrong)) == left


def test_correct_programs_are_accepted(campaign: Campaign) -> None:
    asked, agreed, written = campaign.with_question(MEMORY), 0, 0
    for index in range(80):
        case = drawn(index)
        verdict = asked.lab.examine(case, [EAGER]).verdicts[EAGER.name]
        assert verdict.discrepancy is None or asked.unexplained(EAGER, case, verdict.discrepancy) is None
        agreed += verdict.status == "agree"
        written += any(node.op == cells.WRITE for node in case.graph.nodes)
    assert agreed >= 70
    assert written >= 75


# ---- faults -----------------------------------------------------------------------------------------------


def faulty(old: str, new: str) -> Target:
    """PyTorch, which calls the model otherwise."""
    load = swapped(EAGER.question_loads[memory.NAME], (old, new))
    return replace(EAGER, name="faulty", question_loads={memory.NAME: load})


CALL = "outputs = compiled(*leaves)"
FAULTS = {
    "inputs are copied": faulty(CALL, "outputs = compiled(*[leaf.clone() for leaf in leaves])"),
    "what the first call left is not there in the second": faulty(
        CALL, "leaves = [torch.from_numpy(np.array(array)) for array in given.values()]; " + CALL
    ),
    "the first call's outputs are returned again": faulty(
        "compiled = model", "kept = []\n    compiled = lambda *x: (kept.append(model(*x)), kept[0])[1]"
    ),
    "outputs are copies": faulty(CALL, "outputs = [output.clone() for output in compiled(*leaves)]"),
    "outputs that share memory are copied, but for one": faulty(
        CALL, "outputs = compiled(*leaves); outputs = [outputs[0], *(output.clone() for output in outputs[1:])]"
    ),
    "strides of a transposed matrix": faulty(
        CALL,
        "outputs = [o.mT.contiguous().mT if o.ndim == 2 and o.is_contiguous() else o for o in compiled(*leaves)]",
    ),
    "all outputs contiguous": faulty(CALL, "outputs = [output.contiguous() for output in compiled(*leaves)]"),
    "outputs in one memory": faulty(
        CALL,
        "outputs = list(compiled(*leaves)); same = {}\n"
        "                outputs = [same.setdefault((o.shape, o.dtype, str(o)), o) for o in outputs]",
    ),
}


def found(target: Target, pool: Pool, cases: int = 60) -> bool:
    """Is one of the drawn cases wrong on it?"""
    lab = Laboratory(pool, MEMORY)
    return any(lab.judge(drawn(index), [target]).verdicts[target.name].discrepancy for index in range(cases))


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_is_found(fault: str, pool: Pool) -> None:
    assert found(FAULTS[fault], pool)


def read_late(graph: Graph) -> Graph | None:
    """The first read that a write follows comes after that write."""
    for index, node in enumerate(graph.nodes):
        later = graph.nodes[index + 1 :]
        if node.op not in ("neg", "add", "mul"):
            continue
        for at, after in enumerate(later, index + 1):
            if node.name in after.operands:
                break
            if after.op == cells.WRITE and not cells.layout(graph).apart(after.operands[0], node.operands[0]):
                nodes = (*graph.nodes[:index], *graph.nodes[index + 1 : at + 1], node, *graph.nodes[at + 1 :])
                return replace(graph, nodes=nodes)
    return None


def write_forgotten(graph: Graph) -> Graph | None:
    """The last statement that writes does nothing."""
    writes = [node for node in graph.nodes if node.op == cells.WRITE]
    if not writes:
        return None
    gone = writes[-1]
    nothing = replace(gone, op="reshape", operands=gone.operands[:1], attrs=(("shape", gone.type.shape),))
    return replace(graph, nodes=tuple(nothing if node == gone else node for node in graph.nodes))


@pytest.mark.parametrize("fault", [read_late, write_forgotten])
def test_statements_out_of_order_are_found(fault: Callable[[Graph], Graph | None], pool: Pool) -> None:
    """The program of other statements against what is expected of these."""
    asked = replace(MEMORY, program=lambda target, graph: MEMORY.program(target, fault(graph) or graph))
    cases = [case for case in map(drawn, range(120)) if fault(case.graph)]
    assert len(cases) >= 20
    verdicts = [Laboratory(pool, asked).judge(case, [EAGER]).verdicts[EAGER.name] for case in cases]
    wrong = sum(verdict.discrepancy is not None for verdict in verdicts)
    assert wrong >= len(cases) // 2, f"{wrong} of {len(cases)}"
