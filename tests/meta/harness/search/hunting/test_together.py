"""Many cases in one program: each is judged on its own, and what is wrong is shown alone, or in company."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from planted.targets import planted

from generators.graph import Graph
from generators.graphs import Case
from generators.ops import check
from generators.sweep import swept
from generators.union import Filled, place, union
from harness.backends import TARGETS, Target
from harness.execute.pool import Limits, Pool
from harness.questions import QUESTIONS
from harness.questions.forward import FORWARD
from harness.search.campaign import Campaign
from harness.search.hunting.silence import ENOUGH, Silence
from harness.search.hunting.together import Judged, Together
from harness.search.laboratory import Laboratory
from oracles.derivatives import gradient, jvp
from oracles.judge.outcome import Outcome
from oracles.questions import forward

OPERATORS = ("add", "tanh", "softmax", "conv2d", "sum", "argmax", "where")
EAGER = TARGETS["torch-eager"]


def members(fills: int = 3, operators: tuple[str, ...] = OPERATORS) -> list[Filled]:
    """A case of each operator that torch takes, of float32 where that is possible."""
    found = []
    for operator in operators:
        for turn in range(200):
            one = swept(operator, turn, fills)
            types = {leaf.type.dtype for leaf in one.graph.leaves}
            if types <= {"float32", "bool"} and all(leaf.type.size > 1 for leaf in one.graph.leaves):
                found.append(one)
                break
    assert len(found) == len(operators)
    return found


def wrong(found: list[Judged]) -> list[Judged]:
    return [one for one in found if one.verdict.discrepancy]


def test_a_union_is_valid_and_holds_every_case() -> None:
    parts = members()
    joined = union(parts)
    check(joined.graph)
    assert len(joined.graph.outputs) == len(parts)
    assert len(joined.fills) == 3
    whole = forward.expect(joined.case(1))
    for i, name in enumerate(whole.names):
        number, plain = place(name)
        alone = forward.expect(parts[number].case(1))
        assert plain == alone.names[0]
        np.testing.assert_array_equal(whole.values[i].value, alone.values[0].value)
        np.testing.assert_array_equal(whole.values[i].error, alone.values[0].error)
    with pytest.raises(ValueError, match="nothing to join"):
        union([])
    with pytest.raises(ValueError, match="of no member"):
        place("v0")


def test_weights_and_tangents_are_those_of_the_case_alone() -> None:
    """A gradient that overflows under one weight and not under another is wrong alone, and needs no company."""
    parts = members(1, ("batch_norm", "add", "sum", "split"))
    joined = union(parts)
    for drawn in (gradient.weights, jvp.tangents):
        whole = drawn(joined.graph)
        assert len(whole) == sum(len(drawn(part.graph)) for part in parts) >= len(parts)
        for name, array in whole.items():
            number, plain = place(name)
            np.testing.assert_array_equal(array, drawn(parts[number].graph)[plain])


def test_parameters_are_the_same_in_all_runs() -> None:
    one = next(
        found for turn in range(300) if (found := swept("linear", turn, 4)).graph.parameters and found.graph.inputs
    )
    for leaf in one.graph.parameters:
        assert all(fill[leaf.name] is one.fills[0][leaf.name] for fill in one.fills)


def test_right_results_agree_one_by_one(pool: Pool) -> None:
    found = Together(Laboratory(pool), EAGER).judge(members())
    assert Counter(one.verdict.status for one in found)["mismatch"] == 0
    assert len(found) == 3 * len(OPERATORS)
    assert {one.case.graph.operators for one in found} == {(name,) for name in OPERATORS}
    assert sum(one.verdict.elements for one in found) > 50


@pytest.mark.slow(one_in=3)
@pytest.mark.parametrize(
    ("text", "symptom"),
    [
        ("torch.tanh({0}) * 1.001", "value"),
        ("torch.reshape({0}, (-7, 3))", "rejected"),
        ("torch.stack([{0}, {0}])", "type"),
        ("__import__('os').abort()", "crash"),
    ],
)
def test_a_fault_in_one_case_is_found_and_shown_alone(text: str, symptom: str, pool: Pool) -> None:
    found = Together(Laboratory(pool), planted("tanh", text)).judge(members())
    assert {one.case.graph.operators for one in wrong(found)} == {("tanh",)}
    assert not any(one.company for one in wrong(found))
    for one in wrong(found):
        assert one.verdict.discrepancy
        assert one.verdict.discrepancy.symptom == symptom
        assert one.case.graph.leaves[0].name == "x0"  # as it was given, not as the union calls it
    rest = [one for one in found if one.case.graph.operators != ("tanh",)]
    assert len(rest) == 3 * (len(OPERATORS) - 1)
    assert all(one.verdict.status in ("agree", "undetermined") for one in rest)


@pytest.mark.slow
def test_a_hang_is_taken_apart() -> None:
    with Pool(Limits(seconds=3.0)) as pool:
        target = replace(planted("tanh", "__import__('time').sleep(60)"), framework="hanger")
        found = Together(Laboratory(pool), target).judge(members(1, ("add", "tanh", "sum")))
    (shown,) = wrong(found)
    assert shown.case.graph.operators == ("tanh",)
    assert shown.verdict.status == "timeout"


def many(then: str) -> Target:
    """torch-eager, with a fault of programs with four outputs and more."""
    load = EAGER.load.replace("def load(", "def right(")
    text = f"""
def load(parameters):
    run = right(parameters)

    def wrong(*inputs):
        outputs = run(*inputs)
        if len(outputs) > 3:
            {then}
        return outputs

    return wrong
"""
    return replace(EAGER, name="many", load=load + text)


@pytest.mark.parametrize(
    ("then", "symptom"),
    [
        ("outputs[1] = outputs[1] + 1", "value"),
        ("torch.reshape(torch.zeros(3), (-7, 3))", "rejected"),
        ("outputs = outputs[1:]", "outputs"),
    ],
)
def test_what_shows_only_in_company_is_shown_by_all(then: str, symptom: str, pool: Pool) -> None:
    found = Together(Laboratory(pool), many(then)).judge(members(2))
    assert wrong(found)
    for one in wrong(found):
        assert one.company
        assert one.verdict.discrepancy
        assert one.verdict.discrepancy.symptom == symptom
        assert len(one.case.graph.outputs) > 3
        check(one.case.graph)


def test_what_only_a_later_run_shows_is_counted(pool: Pool) -> None:
    """A program that keeps state between its runs is what the question `repeat` is for."""
    load = EAGER.load.replace("def load(", "def right(")
    text = """
def load(parameters):
    run, calls = right(parameters), []

    def wrong(*inputs):
        calls.append(1)
        return [output + (len(calls) > 1) for output in run(*inputs)]

    return wrong
"""
    together = Together(Laboratory(pool), replace(EAGER, name="stateful", load=load + text))
    found = together.judge(members(2, ("tanh", "softmax")))
    assert not wrong(found)
    assert together.unconfirmed == {"a result of several cases together was wrong once, and not again": 2}


def test_what_is_known_or_stored_is_not_run_again(pool: Pool) -> None:
    lab, target = Laboratory(pool), planted("tanh", "torch.tanh({0}) * 1.001")
    together = Together(lab, target, known=lambda case, *_: case.graph.operators == ("tanh",))
    found = wrong(together.judge(members()))
    assert found
    assert all(one.known for one in found)


def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The operators of each program that runs from now on."""
    programs: list[str] = []
    outcomes = Laboratory.outcomes

    def noted(lab: Laboratory, runs: Sequence[tuple[Target, Case]], confirm: bool = True) -> list[Outcome]:
        programs.extend(" ".join(case.graph.operators) for _, case in runs)
        return outcomes(lab, runs, confirm)

    monkeypatch.setattr(Laboratory, "outcomes", noted)
    return programs


def test_what_mostly_returns_nothing_no_longer_takes_a_program_apart(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    together = Together(Laboratory(pool), planted("tanh", "torch.reshape({0}, (-7, 3))"))
    programs = counted(monkeypatch)
    for _ in range(2):
        programs.clear()
        assert {one.case.graph.operators for one in wrong(together.judge(members()))} == {("tanh",)}
    assert programs == ["tanh", " ".join(sorted({*OPERATORS} - {"tanh"}))]


def test_one_alone_is_one_program_unless_such_mostly_return_nothing(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All sets of arrays at once, else the first one before the others."""
    together = Together(Laboratory(pool), EAGER)
    programs = counted(monkeypatch)
    (tanh,) = members(3, ("tanh",))
    for number, nothing in ((1, False), (2, True)):
        programs.clear()
        for _ in range(1 + 2 * nothing):
            together.silence.note(("forward", EAGER.name, "tanh", "float32"), nothing)
        assert len(together.judge([tanh])) == 3
        assert programs == ["tanh"] * number


def test_where_many_return_nothing_cases_are_alone_until_fewer_do(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    together = Together(Laboratory(pool), EAGER)
    for i in range(8):
        together.silence.note(("forward", EAGER.name, f"operator {i}", "float32"), i < 3)
    programs = counted(monkeypatch)
    assert not wrong(together.judge(members()))
    assert programs == [*OPERATORS[:4], " ".join(sorted(OPERATORS[4:]))]  # 3 of 12 by then


@pytest.mark.parametrize("name", [name for name, question in QUESTIONS.items() if question.fills > 1])
def test_programs_of_every_question_can_be_run_several_times(name: str, pool: Pool) -> None:
    """Whatever names its text has of its own: a whole that fails where no part does is a fault of ours."""
    question = QUESTIONS[name]
    (tanh,) = members(4, ("tanh",))
    cases = [question.prepare(tanh.case(k)) for k in range(4)]
    member = Filled(cases[0].graph, tuple(case.arrays for case in cases))
    target = next(t for t in TARGETS.values() if not question.why_not(t, member.graph))
    together = Together(Laboratory(pool, question), target)
    found = [one.verdict.status for one in together.judge([member])]
    assert len(found) == 4
    assert set(found) <= {"agree", "undetermined"}  # the fourth has NaN and infinities
    assert not question.worth(cases[0]) or found.count("agree") >= 3
    assert not together.unconfirmed


@pytest.mark.parametrize("name", ["gradient", "jvp", "vmap", "layouts", "quantized"])
def test_other_questions_join_their_cases(name: str, campaign: Campaign) -> None:
    """Known issues apart: PyTorch fake-quantises 3.4e38 to the least number."""
    question = QUESTIONS[name]
    questioned = campaign.with_question(question)
    parts = []
    for one in members(2, ("tanh", "softmax", "linear", "sum")):
        prepared = [question.prepare(Case(one.graph, fill)) for fill in one.fills]
        graph: Graph = prepared[0].graph
        assert question.why_not(EAGER, graph) is None
        parts.append(Filled(graph, tuple(case.arrays for case in prepared)))
    together = Together(questioned.lab, EAGER)
    found = together.judge(parts)
    told = [(one.case, one.verdict.discrepancy) for one in found if one.verdict.discrepancy]
    assert not [case for case, discrepancy in told if questioned.unexplained(EAGER, case, discrepancy)]
    assert not together.unconfirmed
    assert len(found) == 8
    assert sum(one.verdict.elements for one in found) > 20


def test_a_fault_of_gradients_is_found_in_a_union(pool: Pool) -> None:
    target = planted("tanh", "torch.tanh({0}) + 0.001 * ({0} - {0}.detach())")
    lab = Laboratory(pool, QUESTIONS["gradient"])
    found = Together(lab, target).judge(members(2, ("tanh", "softmax", "linear")))
    assert {one.case.graph.operators for one in wrong(found)} == {("tanh",)}
    assert not wrong(Together(Laboratory(pool, FORWARD), target).judge(members(2, ("tanh", "softmax"))))


def test_a_wrong_type_is_shown_once_whatever_the_values(pool: Pool) -> None:
    """Values that are wrong may be so for another reason each time: all of them are shown alone."""
    lab = Laboratory(pool)
    for wrong, shown in (("torch.tanh({0}).double()", 1), ("torch.tanh({0}) + 1", 3)):
        found = Together(lab, planted("tanh", wrong)).judge(members(3, ("tanh", "add", "sum")))
        assert len([one for one in found if one.verdict.discrepancy]) == 3
        assert len([one for one in found if one.verdict.discrepancy and not one.known]) == shown


def test_what_is_doubted_runs_alone_until_it_is_seen() -> None:
    silence, doubted, other = Silence(), ("q", "t", "add", "uint16"), ("q", "t", "add", "float32")
    assert silence.share(doubted) == 0
    silence.doubted.add(doubted)
    assert silence.share(doubted) == 1
    for _ in range(ENOUGH):
        silence.note(doubted, nothing=True)
    assert silence.share(other) == 0
    assert silence.share(doubted) == 1
    silence.note(other, nothing=False)
    silence.note(("q", "t", "add", "int8"), nothing=True)
    assert silence.share(("q", "t", "add", "int64")) == 0.5
    silence.note(("q", "t", "add", "int64"), nothing=False)
    assert silence.share(("q", "t", "add", "int64")) == 0


def test_doubts_that_were_wrong_are_no_longer_had(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    together = Together(Laboratory(pool), EAGER)
    together.silence.doubted.update(("forward", EAGER.name, name, "float32") for name in OPERATORS)
    programs = counted(monkeypatch)
    assert not wrong(together.judge(members(1)))
    assert programs == [*OPERATORS[:3], " ".join(sorted(OPERATORS[3:]))]
