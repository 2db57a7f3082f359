"""State that steps update: the same program by hand, with and without writes, and faults that are found."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from generators.graph import Graph
from generators.graphs import Case, seeded_case
from generators.ops import check
from harness.backends import TARGETS, Target
from harness.backends.target.text import swapped
from harness.execute.pool import Pool
from harness.questions.memory.state import STATE
from harness.search.campaign import Campaign
from harness.search.laboratory import Laboratory
from oracles.questions import cells, forward, state


def drawn(index: int) -> Case:
    """Case number `index`, of numbers that show a change."""
    return state.prepare(seeded_case(22, index, 4, ("add", "neg", "sub", "maximum")))


def test_the_graph_without_writes_computes_the_first_step() -> None:
    updated = 0
    for case in map(drawn, range(60)):
        pure = check(state.functional(case.graph))
        assert all(node.op != cells.WRITE for node in pure.nodes)
        values = forward.plan(Case(pure, case.arrays))
        expected = state.expect(case)
        for name, value in zip(pure.outputs, expected.values, strict=False):
            np.testing.assert_array_equal(values[name].value, value.value)
        updated += bool(state.written(case.graph))
    assert updated >= 55


@pytest.mark.parametrize("name", ["torch-eager", "tf-eager", "tf-graph", "jax-jit", "ort-all"])
def test_correct_programs_are_accepted(name: str, campaign: Campaign) -> None:
    asked, target, agreed = campaign.with_question(STATE), TARGETS[name], 0
    for case in map(drawn, range(8)):
        verdict = asked.lab.examine(case, [target]).verdicts[name]
        assert verdict.discrepancy is None or asked.unexplained(target, case, verdict.discrepancy) is None
        agreed += verdict.status == "agree"
    assert agreed >= 5


FAULTS = {
    "torch-eager": (
        "outputs = compiled(*leaves.values())",
        "outputs = compiled(*[x.clone() for x in leaves.values()])",
    ),
    "tf-eager": ("outputs = step(*constants)", "outputs = step(*constants) if not held else outputs"),
    "jax-jit": ("leaves[place] = outputs[number]", "leaves[place] = leaves[place] if held else outputs[number]"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_state_that_is_not_kept_is_found(name: str, pool: Pool) -> None:
    """The state is a copy; the step is not run again; the old state is given again, which no longer exists."""
    load = swapped(TARGETS[name].question_loads[state.NAME], FAULTS[name])
    target = replace(TARGETS[name], name="faulty", question_loads={state.NAME: load})
    verdicts = [Laboratory(pool, STATE).judge(drawn(index), [target]).verdicts["faulty"] for index in range(6)]
    assert any(verdict.discrepancy for verdict in verdicts)


def test_the_returned_state_is_given_to_the_next_step(pool: Pool) -> None:
    def forgetful(target: Target, graph: Graph) -> str:
        return swapped(STATE.program(target, graph), ("given |= {", "given | {"))

    target, asked = TARGETS["ort-all"], replace(STATE, program=forgetful)
    verdicts = [Laboratory(pool, asked).judge(drawn(index), [target]).verdicts[target.name] for index in range(12)]
    assert any(verdict.discrepancy for verdict in verdicts)
