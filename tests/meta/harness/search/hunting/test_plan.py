"""The plan goes through all sweeps: the same for a seed and any number of jobs, gone on with, least tested first."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from planted.targets import planted

from generators.graph import Graph, Leaf, Node, TensorType
from generators.graphs import Case
from generators.ops import OPS, check
from generators.ops.drawing import OFTEN
from generators.sweep import places
from harness.backends import TARGETS
from harness.commands.hunt import lanes_of
from harness.conversions.route import target_of
from harness.execute.reading import FileError
from harness.findings.database import kept, opened
from harness.findings.database.recorder import begin
from harness.questions import QUESTIONS
from harness.questions.conversion import CONVERSION
from harness.questions.forward import FORWARD
from harness.search import hunt
from harness.search.hunting.cut import runnable
from harness.search.hunting.later import SHARE, Later
from harness.search.hunting.plan import STEP, WINDOW, Done, Lane, Plan, costs, load, member, state

EAGER, ORT = TARGETS["torch-eager"], TARGETS["ort-all"]
LANES = (Lane("forward", EAGER), Lane("forward", ORT), Lane("gradient", EAGER))
NAMES = ("add", "tanh", "softmax", "argmax")


def taken(plan: Plan, count: int) -> list[tuple]:
    return [(step.lane.question, step.lane.target.name, step.takes) for step in islice(plan.steps(), count)]


def options(folder: Path, plan: Plan, jobs: int = 1, target: str = "torch-eager") -> hunt.Options:
    return hunt.Options(
        (TARGETS[target],), 300.0, 1, 3, folder, NAMES, cases=0, jobs=jobs, plan=plan, share=1.0, steps=2
    )


def test_a_plan_is_the_same_every_time_and_takes_nothing_twice() -> None:
    plan = Plan(LANES, NAMES, 5)
    steps = taken(plan, 30)
    assert steps == taken(plan, 30)
    assert steps != taken(replace(plan, seed=6), 30)
    places_taken = [(*step[:2], *one) for step in steps for one in step[2]]
    assert len(set(places_taken)) == len(places_taken)
    assert {step[:2] for step in steps[:3]} == {(lane.question, lane.target.name) for lane in LANES}
    assert {operator for operator, _ in steps[0][2]} <= set(NAMES)
    assert not [one for step in steps if step[0] == "gradient" for one in step[2] if one[0] == "argmax"]


def test_a_plan_ends() -> None:
    steps = list(Plan(LANES[:1], ("neg",), 0).steps())
    assert sum(len(step.takes) for step in steps) == len(places("neg"))


def test_levels_go_through_the_places_of_a_window_in_orders_of_their_own() -> None:
    lanes = [Lane("forward", target) for target in TARGETS.values() if target.framework == "onnxruntime"][:4]
    turns = {
        lane.target.name: [turn for step in Plan((lane,), ("conv2d",), 0).steps() for _, turn in step.takes]
        for lane in lanes
    }
    assert all(sorted(found) == list(range(len(places("conv2d")))) for found in turns.values())
    assert all(sorted(found[:WINDOW]) == list(range(WINDOW)) for found in turns.values())
    assert {found[0] for found in turns.values()} == {0}  # of a usual operator the simplest
    assert len({turn for found in turns.values() for turn in found[1:3]}) > 4
    few = {lane: next(Plan((lane,), ("hardmax",), 0).steps()).takes[0][1] for lane in lanes}
    assert len({*few.values()}) > 1


@pytest.mark.slow
def test_routes_of_one_tool_share_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the cube root of their number: eight routes of one cost have four times the places of one, not eight times."""
    monkeypatch.setattr(Lane, "cost", 1.0)
    lanes = lanes_of("*", {CONVERSION.name: CONVERSION})
    routes = [lane for lane in lanes if lane.family == "openvino-onnx"]
    (other,) = (lane for lane in lanes if lane.target.name == "torch/tvm-pt2/tvm")
    shares = []
    for some in (routes[:1], routes[:8]):
        spent: Counter[str] = Counter()
        for step in islice(Plan((*some, other), tuple(sorted(OPS)), 0).steps(), 300):
            spent[step.lane.family] += len(step.takes)
        shares.append(spent["openvino-onnx"] / spent["tvm-pt2"])
    assert 3 < shares[1] / shares[0] < 5


def test_targets_of_a_framework_begin_with_different_operators() -> None:
    """Four of them come to all operators four times as soon as one of them alone."""
    names = tuple(sorted(OPS))
    lanes = tuple(Lane("forward", TARGETS[f"ort-{level}"]) for level in ("disable", "basic", "extended", "all"))
    steps = list(islice(Plan(lanes, names, 3).steps(), len(lanes)))
    met = [{operator for operator, _ in step.takes} for step in steps]
    assert len({step.lane for step in steps}) == len(lanes)
    assert len(set().union(*met)) == len(lanes) * STEP


def test_gradients_of_usual_operators_come_first() -> None:
    """Drawn cases are full of these, and ask another question."""
    names = tuple(sorted(OPS))
    for question in ("gradient", "forward"):
        steps = islice(Plan((Lane(question, EAGER),), names, 3).steps(), 1)
        usual = [operator in OFTEN for step in steps for operator, _ in step.takes]
        assert all(usual) == (question == "gradient")


def test_a_dear_target_has_turns_by_the_root_of_its_cost() -> None:
    cheap, dear = Lane("forward", TARGETS["ort-all"]), Lane("forward", TARGETS["torch-inductor"])
    turns = Counter(step.lane for step in islice(Plan((cheap, dear), tuple(OPS), 3).steps(), 60))
    assert turns[cheap] / turns[dear] == pytest.approx((dear.cost / cheap.cost) ** 0.5, rel=0.2)
    unmeasured = Lane("forward", replace(TARGETS["ort-all"], name="new"))
    assert cheap.cost < unmeasured.cost < dear.cost
    assert Lane("jvp", TARGETS["torch-inductor"]).cost == dear.cost


@pytest.mark.parametrize("whole", ["torch/tvm-pt2-whole/tvm", "torch-open/tvm-pt2/tvm", "onnx/tvm-onnx-parameters/tvm"])
def test_a_route_that_is_asked_on_request_has_a_plan_where_it_is_named(whole: str) -> None:
    assert [lane.target.name for lane in lanes_of(whole, [CONVERSION.name])] == [whole]
    assert whole not in {lane.target.name for lane in lanes_of("*", [CONVERSION.name])}


def test_costs_are_of_targets_that_there_are() -> None:
    for question, measured in costs().items():
        known = QUESTIONS[question].targets
        for name, seconds in measured.items():
            assert seconds > 0
            assert name in known or (question == CONVERSION.name and target_of(name).name == name), name


def test_what_is_tested_least_comes_first() -> None:
    tested = {("forward", "torch-eager", name): 1000 for name in NAMES} | {("forward", "ort-all", "tanh"): 500}
    steps = taken(Plan(LANES, NAMES, 5, tested=tested), 6)
    assert all(step[1] != "torch-eager" or step[0] == "gradient" for step in steps)
    assert not [one for step in steps if step[1] == "ort-all" for one in step[2] if one[0] == "tanh"]


def test_what_is_done_is_kept_and_left_out(tmp_path: Path) -> None:
    plan = Plan(LANES, NAMES, 5)
    first, second, third = islice(plan.steps(), 3)
    for step in (first, third):  # the second was interrupted
        done = Done()
        done.add(step)
        done.save(tmp_path)
    kept = load(tmp_path)
    assert kept.count == len(first.takes) + len(third.takes)
    again = list(islice(replace(plan, done=kept.bits).steps(), 40))
    left = {(step.lane, *one) for step in again for one in step.takes}
    assert not left & {(step.lane, *one) for step in (first, third) for one in step.takes}
    assert {(second.lane, *one) for one in second.takes} <= left


@pytest.mark.parametrize("text", ["{", '{"forward": 3}', '{"forward": {"t": {"add": {"places": 1, "done": "x"}}}}'])
def test_a_plan_file_that_cannot_be_read_is_one_line(text: str, tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text(text)
    with pytest.raises(FileError, match=r"plan\.json"):
        state(tmp_path)


def test_a_sweep_of_another_length_begins_anew(tmp_path: Path) -> None:
    cells = {"add": {"places": 3, "done": "7"}, "no_such": {"places": 3, "done": "7"}}
    (tmp_path / "plan.json").write_text(json.dumps({"forward": {"torch-eager": cells}}))
    assert load(tmp_path).count == 0


@pytest.mark.slow
def test_a_hunt_carries_out_the_plan_with_any_number_of_jobs(tmp_path: Path) -> None:
    plan = Plan(LANES[:1], NAMES, 5)
    tallies = []
    for jobs in (1, 2):
        folder = tmp_path / str(jobs)
        record = begin(opened.url_of(folder), "hunt", folder, 5, {}, "")
        tallies.append(hunt.run(replace(options(folder, plan, jobs), record=record), lambda tally: None))
    for tally in tallies:
        assert tally.taken == 2 * STEP
        assert tally.planned["forward"]["agree"] > 2 * STEP
        assert not tally.findings
    assert tallies[0].planned == tallies[1].planned
    files = [load(tmp_path / name).bits for name in ("1", "2")]
    assert files[0] == files[1]
    tested = state(tmp_path / "1")[1]
    assert {name for _, _, name in tested} >= set(NAMES)  # and those in whose company large cases stand
    kept_rows = [kept.rows(opened.url_of(tmp_path / name), "examined") for name in ("1", "2")]
    outcomes = [sum((Counter(row["outcomes"]) for row in rows), Counter()) for rows in kept_rows]
    assert outcomes[0] == outcomes[1] == tallies[0].planned["forward"]


@pytest.mark.slow
def test_a_planted_fault_is_found_by_the_plan_once(tmp_path: Path) -> None:
    target = replace(planted("tanh", "torch.tanh({0}) * 1.001"), framework="planted")
    plan = Plan((Lane("forward", target),), NAMES, 5)
    given = replace(options(tmp_path, plan), targets=(target,), reduction=2.0)
    tally = hunt.run(given, lambda tally: None)
    found = [finding for finding in tally.findings.values() if finding.symptom == "value"]
    assert found
    assert {finding.operators for finding in found} == {("tanh",)}
    assert {finding.nodes for finding in found} == {1}
    assert len(found) == 1
    assert tally.counts[found[0].fingerprint] > 1
    assert (Path(found[0].path) / "reproducer.py").exists()


def test_a_place_is_prepared_as_its_question_asks() -> None:
    for name in ("forward", "vmap", "metamorphic", "dynamic"):
        one = member(QUESTIONS[name], "tanh", 0)
        check(one.graph)
        assert 1 <= len(one.fills) <= QUESTIONS[name].fills


def chain(operator: str) -> Case:
    """tanh, then an operator, then neg; of float64."""
    t = TensorType("float64", (3,))
    names = (("v0", "tanh", "x0"), ("v1", operator, "v0"), ("v2", "neg", "v1"))
    graph = check(Graph((Leaf("x0", t),), tuple(Node(n, op, (x,), (), t) for n, op, x in names), ("v2",)))
    return Case(graph, {"x0": np.array([0.25, -1.0, 3.0])})


def test_what_is_refused_is_cut_out_and_the_rest_runs() -> None:
    case, target = chain("exp"), replace(ORT, refuses={("exp", "float64"): "a test"})
    found = runnable(FORWARD, target, case)
    assert found
    rest, refused = found
    check(rest.graph)
    assert [node.op for node in refused] == ["exp"]
    assert rest.graph.outputs == ("v2", "v0")
    np.testing.assert_array_equal(rest.arrays["v1"], np.exp(np.tanh(case.arrays["x0"])))
    assert runnable(FORWARD, ORT, case) == (case, ())
    everything = {(name, "float64"): "a test" for name in ("tanh", "exp", "neg")}
    assert runnable(FORWARD, replace(ORT, refuses=everything), case) is None


def test_findings_get_a_share_of_the_time() -> None:
    later = Later(0.0, 100.0)
    assert later.reserve == 0.0  # nothing waits
    assert not list(later.due())
    later.spent = 2 * SHARE * 1e9
    assert not later.affordable
    assert Later(-1000.0, 1e9, spent=1.0).affordable
