"""Who is named by what was said of a program that failed; whoever it is, every case is judged."""

from __future__ import annotations

import pytest
from planted.targets import planted

from generators.sweep import swept
from generators.union import Filled, mentions
from harness.execute.pool import Pool
from harness.search.hunting import together
from harness.search.hunting.suspects import suspects
from harness.search.hunting.together import Together
from harness.search.laboratory import Laboratory
from oracles.judge.outcome import Crash, Outcome, Rejected, Timeout, Unsupported

NAMES = ("relu", "log_softmax", "cumsum", "scatter_add", "scatter_reduce", "floor", "floor", "floor_divide")
PROGRAM = (
    "INPUTS = {" + ", ".join(f"'c{i}_x0': ('float32', (2,))" for i in range(7)) + ", 'c7_x0': ('complex128', (2,))}\n"
)
PROGRAM += "".join(f"    c{i}_v0 = torch.{name}(c{i}_x0)\n" for i, name in enumerate(NAMES))


@pytest.mark.parametrize(
    ("outcome", "found"),
    [
        (Rejected("Error", "node c2_v0 is wrong"), [2]),
        (Rejected("Error", "wrong", lines=("return model(*inputs)", "c5_v0 = torch.floor(c5_x0)")), [5]),
        (Unsupported("no kernel", refusal=Rejected("Error", "d_c3_x0 has no kernel of its own")), [3]),
        (Crash("signal SIGABRT", "at c6_v0"), [6]),
        (Rejected("Error", "no kernel for LogSoftmax(13)"), [1]),
        (Rejected("Error", "no ['scatter_reduce.two']"), [4]),
        (Rejected("Error", "no scatter"), [3, 4]),
        (Rejected("Error", "no torch.complex128"), [7]),
        (Rejected("Error", "no float32"), []),  # too many
        (Rejected("Error", "c1_ c2_ c3_"), []),
        (Rejected("Error", "out of luck\nin step floor_divide"), []),
        (Rejected("Error", "c99_v0, and c10::Error"), []),
        (
            Rejected("Error", "c0_x0\na: error: 'tf.LogSoftmax' op\nnote: c1_x0\nb: error: 'tf.Relu' op of \"c7_v0\""),
            [0, 1],
        ),
        (Rejected("Error", "a: error: 'tf.CumsumV2' op"), [2]),
        (Rejected("Error", "a: error: 'tf.Floor' op: c4_v0"), [4]),  # too many have it
        (Unsupported("never run"), []),
        (Timeout(3.0), []),
    ],
)
def test_who_is_named(outcome: Outcome, found: list[int]) -> None:
    assert suspects(outcome, PROGRAM, len(NAMES)) == found


def test_text_behind_names_is_told_apart() -> None:
    assert mentions("a c1_x0: b, d_c12_v0 e abc3_x") == [(1, "x0: b, d_"), (12, "v0 e abc3_x")]
    assert mentions("nobody") == []


def members(operator: str) -> list[Filled]:
    """Sixteen, of which the eleventh is of this operator."""
    names = ["neg"] * 16
    names[10] = operator
    found = []
    for name in names:
        cases = (swept(name, turn, 3) for turn in range(200))
        found.append(next(one for one in cases if {leaf.type.dtype for leaf in one.graph.leaves} == {"float32"}))
    return found


@pytest.mark.parametrize(
    ("text", "most"),
    [
        ("torch.reshape({0}, (-7, 3))", 4),  # whose line tells
        ("[][0 * {0}.ndim] # no 'c2_v0'", 5),  # another one is named, too
    ],
)
def test_few_programs_find_one_that_fails(text: str, most: int, pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[int] = []
    run = together.run

    def counted(lab: Laboratory, target: object, filled: Filled) -> Outcome:
        ran.append(len(filled.graph.outputs))
        return run(lab, target, filled)  # type: ignore[arg-type]

    monkeypatch.setattr(together, "run", counted)
    found = Together(Laboratory(pool), planted("tanh", text)).judge(members("tanh"))
    assert {one.case.graph.operators for one in found if one.verdict.discrepancy} == {("tanh",)}
    assert sum(one.case.graph.operators == ("neg",) for one in found) == 15 * 3
    assert len(ran) <= most
    assert 15 in ran or 14 in ran


def test_a_wrong_guess_costs_no_case(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(together, "suspects", lambda outcome, program, count: [0] if count > 4 else [])
    found = Together(Laboratory(pool), planted("tanh", "torch.reshape({0}, (-7, 3))")).judge(members("tanh"))
    assert {one.case.graph.operators for one in found if one.verdict.discrepancy} == {("tanh",)}
    assert sum(one.case.graph.operators == ("neg",) for one in found) == 15 * 3
