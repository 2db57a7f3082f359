"""Quantisers: what they and their kernels do right is accepted; other rounding, a scale that is a little off and a
wrong zero point are found, on each path."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from generators import caseio
from generators.bounds.bounded import Bounded
from generators.graph import Graph, Leaf, Node, TensorType
from generators.graphs import Case, seeded_case
from generators.ops import check
from harness.backends import TARGETS
from harness.execute.isolation.jobs import Numbers, Share
from harness.execute.pool import Pool
from harness.findings.known import issues as known_issues
from harness.findings.store import Store
from harness.quantisers import QUANTISERS
from harness.quantisers.cases import OPERATORS, STYLE, prepare
from harness.questions.quantisers import QUANTISATION
from harness.questions.question import reproduction_of
from harness.search.campaign import Campaign
from harness.search.laboratory import Laboratory
from harness.search.quantisation import Options, Tally, do_share, schedule, total
from oracles.judge.discrepancy import Discrepancy
from oracles.judge.outcome import Rejected, Value
from oracles.quantised import model as quantised_model
from oracles.quantised.integers import along, away, dequantised, known, quantised, rescaled, settled
from oracles.quantised.model import Judgement, RecordedModel
from oracles.quantised.onnx import integers as onnx_integers
from oracles.quantised.onnx.quantiser import parameters

F = np.float32
Change = Callable[[RecordedModel], None]


def product() -> Case:
    """A product of matrices, an activation, a sum: enough elements that a small error of a scale shows."""
    x, w, y = (TensorType("float32", shape) for shape in ((16, 24), (24, 32), (16, 32)))
    nodes = (
        Node("y0", "matmul", ("x", "w"), (), y),
        Node("y1", "relu", ("y0",), (), y),
        Node("y2", "add", ("y1", "b"), (), y),
    )
    graph = check(Graph((Leaf("x", x), Leaf("b", y), Leaf("w", w, "parameter")), nodes, ("y2",)))
    draw = np.random.default_rng(11)
    return Case(graph, {leaf.name: draw.normal(size=leaf.type.shape).astype(F) for leaf in graph.leaves})


CASE = product()
PATHS = (
    "ort-qdq-u8s8-channels",
    "ort-qdq-s16s8",
    "ort-qoperator-s8s8",
    "ort-dynamic-u8",
    "tflite-int8",
    "tvm-qdq-u8s8",
)


@pytest.fixture(scope="module")
def runs(pool: Pool) -> dict[str, Value]:
    """The case on each path, once."""
    found = Laboratory(pool, QUANTISATION).outcomes([(QUANTISERS[name], CASE) for name in PATHS])
    values = {name: outcome for name, outcome in zip(PATHS, found, strict=True) if isinstance(outcome, Value)}
    assert set(values) == set(PATHS), found
    return values


def judged(name: str, run: Value, change: Change = lambda record: None) -> Judgement:
    """The judgement of a run in which something is changed first."""
    record = quantised_model.read([array.copy() for array in run.outputs])
    change(record)
    return QUANTISERS[name].judge(record)


@pytest.mark.parametrize("name", PATHS)
def test_a_correct_run_is_accepted(name: str, runs: dict[str, Value]) -> None:
    found = judged(name, runs[name])
    assert not found.wrong
    assert found.exact > 0
    assert found.checked > 0
    assert found.loss is not None
    assert (found.loss["sqnr_db"] or 0) > 20
    assert quantised_model.verdict(found).status == "agree"


def integers(record: RecordedModel) -> list[np.ndarray]:
    """Levels that nodes of the models returned, of 8 or 16 bits and of more than a few elements."""
    made = {(group, name) for group, nodes in record.nodes.items() for node in nodes for name in node.results}
    found = [record.groups[group][name] for group, name in made if name in record.groups[group]]
    return [array for array in found if array.dtype.kind in "iu" and array.dtype.itemsize < 4 and array.size > 100]


def truncated(record: RecordedModel) -> None:
    """Levels as they are where kernels round down: half of them are one less."""
    for array in integers(record):
        array -= (np.arange(array.size).reshape(array.shape) % 2 * (array > array.min())).astype(array.dtype)


def one_level(record: RecordedModel) -> None:
    """A single level of a single tensor is one off."""
    array = integers(record)[0]
    middle = np.argmin(np.abs(array.astype(float) - np.median(array.astype(float))))
    array.reshape(-1)[middle] += 1


@pytest.mark.parametrize("name", PATHS)
@pytest.mark.parametrize("change", [truncated, one_level])
def test_another_rounding_is_found(name: str, change: Change, runs: dict[str, Value]) -> None:
    found = judged(name, runs[name], change)
    assert "levels wrong" in found.wrong[0]


def scaled(record: RecordedModel) -> None:
    """Every scale that the quantiser wrote is off in the fifth digit, and with it all that was computed by it."""
    for group in record.groups.values():
        for name, array in group.items():
            if str(name).endswith("_scale"):
                array *= F(1 + 1e-5)
    for how in record.header.get("tensors", {}).values():
        how["scale"] = [scale * (1 + 1e-5) for scale in how["scale"]]


@pytest.mark.parametrize("name", PATHS)
def test_a_scale_that_is_off_in_the_fifth_digit_is_named(name: str, runs: dict[str, Value]) -> None:
    found = judged(name, runs[name], scaled)
    assert any("scale" in text for text in found.wrong)


@pytest.mark.parametrize("name", PATHS)
def test_a_wrong_zero_point_is_named(name: str, runs: dict[str, Value]) -> None:
    def shifted(record: RecordedModel) -> None:
        if "tensors" in record.header:
            made = next(n.results[0] for n in record.nodes["BUILTIN_REF"] if n.op == "QUANTIZE")
            record.header["tensors"][made]["zero"][0] += 2
        else:
            which = "w_zero_point" if record.header["dynamic"] else "x_zero_point"
            for level in record.nodes:
                if which in record.groups[level]:
                    record.groups[level][which][...] = record.groups[level][which] + 1

    found = judged(name, runs[name], shifted)
    assert any("zero point of " in text for text in found.wrong), found.wrong
    assert any("levels wrong" in text or "mismatched" in text for text in found.wrong)


def test_a_quantiser_that_writes_a_wrong_zero_point_is_found_and_shown(pool: Pool) -> None:
    """The same in a program, as far as the reproducer."""
    good = QUANTISERS["ort-qdq-u8s8"]
    fault = """quantised = onnx.load(path)
            for item in quantised.graph.initializer:
                if item.name == "x_zero_point":
                    item.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(item) + np.uint8(1), item.name))"""
    bad = replace(good, name="planted", load=good.load.replace("quantised = onnx.load(path)", fault))
    lab = Laboratory(pool, QUANTISATION)
    verdict = lab.judge(CASE, [bad]).verdicts["planted"]
    assert verdict.status == "mismatch"
    assert verdict.discrepancy is not None
    assert "zero point of x" in verdict.discrepancy.message
    (outcome,) = lab.outcomes([(bad, CASE)])
    shown = reproduction_of(QUANTISATION, bad, CASE, outcome)
    assert isinstance(outcome, Value)
    assert len(shown.expected.types) == len(outcome.outputs)
    assert "OUTPUTS = []" not in shown.program


def test_what_is_not_recomputed_is_counted_and_nothing_judged_is_no_agreement(runs: dict[str, Value]) -> None:
    def unknown(record: RecordedModel) -> None:
        for level, nodes in record.nodes.items():
            record.nodes[level] = tuple(replace(node, op="Mystery") for node in nodes)  # type: ignore[index]

    found = judged("ort-qdq-s16s8", runs["ort-qdq-s16s8"], unknown)
    assert found.skipped["Mystery"] > 10
    assert quantised_model.verdict(Judgement()).status == "undetermined"


# ---- arithmetic ----------------------------------------------------------------------------------------


def exact(*values: float) -> Bounded:
    return Bounded(np.array(values), np.zeros(len(values)), "float32")


def test_ties_have_one_level() -> None:
    scale, zero = np.asarray(0.5), np.asarray(3.0)
    even = quantised(exact(0.25, 0.75, -0.25), scale, zero, "uint8")
    assert even.low.tolist() == even.high.tolist() == [3, 5, 3]
    upward = quantised(exact(0.25, 0.75, -0.25), scale, zero, "uint8", away)
    assert upward.low.tolist() == upward.high.tolist() == [4, 5, 2]


def test_near_a_tie_a_level_may_be_either_and_elsewhere_it_may_not() -> None:
    found = settled(np.array([2.4999, 2.4, 300.0]), np.asarray(1e-3), np.asarray(0.0), "uint8")
    assert found.low.tolist() == [2, 2, 255]
    assert found.high.tolist() == [3, 2, 255]


def test_powers_of_two_leave_nothing_to_rounding() -> None:
    found = rescaled(np.array([1.0, 3.0, 5.0]), np.asarray(0.5), np.asarray(0.0), "int8", 5, exact=True)
    assert found.low.tolist() == found.high.tolist() == [0, 2, 2]


def test_levels_come_back_as_float32_has_them() -> None:
    scale = np.asarray(np.float32(0.1), np.float64)
    found = dequantised(known(np.array([7, 250], np.uint8)), scale, np.asarray(128.0))
    assert found.value.tolist() == [float(F(-121) * F(0.1)), float(F(122) * F(0.1))]
    assert not found.error.any()
    assert along(np.array([1.0, 2.0]), 3, 1).shape == (1, 2, 1)


def test_ranges_give_scales_and_zero_points() -> None:
    assert parameters(-1.0, 3.0, "uint8", False) == (4 / 255, 63.75)
    assert parameters(-1.0, 3.0, "int8", True) == (6 / 254, 0.0)
    assert parameters(0.0, 0.0, "uint8", False) == (1.0, 0.0)


# ---- cases ---------------------------------------------------------------------------------------------


def test_weights_are_parameters_of_their_own_and_all_else_is_input() -> None:
    for index in range(30):
        graph = prepare(seeded_case(3, index, 6, OPERATORS, STYLE)).graph
        check(graph)
        for node in graph.nodes:
            if node.op in ("conv2d", "linear", "matmul"):
                taken = [leaf for leaf in graph.leaves if leaf.name in node.operands[1:]]
                assert all(leaf.role == "parameter" for leaf in taken)


def test_slow_paths_take_fewer_turns() -> None:
    fast, slow = QUANTISERS["ort-dynamic-u8"], replace(QUANTISERS["tflite-int8"], sample_every=3)
    assert [path.name for path in schedule([fast, slow])] == ["ort-dynamic-u8", "tflite-int8", *["ort-dynamic-u8"] * 2]


def test_shares_of_jobs_make_the_whole_and_a_lost_one_is_gone_on_with(tmp_path: Path) -> None:
    paths = (QUANTISERS["ort-dynamic-u8"], QUANTISERS["ort-dynamic-s8"], QUANTISERS["ort-qdq-s16s8"])
    options = Options(paths, 3, 4, tmp_path, cases=9)
    whole = do_share(options, Share(0, lambda tally: None))
    numbers, told = Numbers(), list[Tally]()
    do_share(replace(options, cases=3), Share(0, told.append, take=partial(numbers.take, 0)))
    lost = next(copy for copy in told if copy.cases == 2)  # it has not told what came of case 2

    def two_cases(kind: str, had: int) -> int:
        return numbers.take(1, kind, had) if had < 2 else options.cases or 0

    other = do_share(options, Share(1, lambda tally: None, take=two_cases))
    gone_on = do_share(options, Share(0, lambda tally: None, lost, partial(numbers.take, 0)))
    assert (whole.cases, other.cases, gone_on.cases) == (9, 2, 7)
    together = total({0: gone_on, 1: other})
    assert {name: row.to_json() for name, row in together.rows.items()} == {
        name: row.to_json() for name, row in whole.rows.items()
    }


def test_only_quantisers_are_asked() -> None:
    assert not set(QUANTISATION.targets) & set(TARGETS)
    empty = Graph(
        (Leaf("x", TensorType("float32", (0,))),), (Node("v", "relu", ("x",), (), TensorType("float32", (0,))),), ("v",)
    )
    assert QUANTISATION.why_not(QUANTISERS["ort-dynamic-u8"], empty) == "an empty tensor has no range"
    full = TensorType("float32", (2,))
    relu = Graph((Leaf("x", full),), (Node("v", "relu", ("x",), (), full),), ("v",))
    assert QUANTISATION.why_not(QUANTISERS["ort-dynamic-u8"], relu) is None
    assert QUANTISATION.why_not(QUANTISERS["keras-int8"], relu) == "nothing of what keras-int8 quantises"


def test_channels_in_blocks_are_not_judged_by_their_shape() -> None:
    """ONNX Runtime's NCHWc kernels keep 16 channels of a pixel side by side."""
    values = Bounded(np.arange(32, dtype=np.float64).reshape(1, 16, 1, 2), np.zeros((1, 16, 1, 2)), "float32")
    attrs = {"kernel_shape": [1, 1]}
    node = quantised_model.Operation("AveragePool", onnx_integers.BLOCKED, ("x",), ("y",), attrs)
    with pytest.raises(quantised_model.NotRecomputed, match="AveragePool of channels in blocks"):
        onnx_integers.compute(node, [values], 0, {})
    plain = onnx_integers.compute(replace(node, domain=""), [values], 0, {})
    assert isinstance(plain, Bounded)
    assert np.array_equal(plain.value, values.value)


@pytest.mark.parametrize(
    ("name", "kind", "message"),
    [
        (
            "keras-int8",
            "ValueError",
            "The number of input channels must match the kernel's input channels. Received: 4",
        ),
        (
            "torchao-int8-dynamic-int4",
            "TypeError",
            "torch.finfo() requires a floating point input type. Use torch.iinfo",
        ),
        (
            "torchao-pt2e-x86-dynamic",
            "AssertionError",
            "Expecting input to have dtype torch.float32/16/b16, but got dtype",
        ),
    ],
)
def test_refusals_of_groups_and_of_integers_are_named(name: str, kind: str, message: str) -> None:
    assert QUANTISERS[name].declined(Rejected(kind, message))
    assert QUANTISERS[name].declined(Rejected(kind, "something else")) is None


def test_known_issues_of_tvm_hold_for_its_paths(pool: Pool, tmp_path: Path) -> None:
    """Those of the levels that the paths run, and of the forward question; those of other targets do not."""
    issues = {issue.id: issue for issue in known_issues.load()}
    path = QUANTISERS["tvm-qdq-u8u8"]
    campaign = Campaign(Laboratory(pool, QUANTISATION), [path], Store(tmp_path), tuple(issues.values()))
    wrong = Discrepancy("value", "O0: Tanh of (3, 4, 2) -> t0_0: mismatched 1 of 24")
    assert campaign.excuses.concerns(issues["tvm-tanh-approximation"], path, wrong)
    assert not campaign.excuses.concerns(issues["tvm-fast-tanh-double"], path, wrong)


def test_a_known_issue_of_nodes_together_explains_a_quantised_model(pool: Pool, tmp_path: Path) -> None:
    """No node is wrong alone, and no other question can be asked of what shows how it was computed."""
    (issue,) = (one for one in known_issues.load() if one.id == "ort-quantise-relu-clip-double")
    path, case = QUANTISERS["ort-qdq-u8s8"], caseio.loads(issue.case.read_text(encoding="utf-8"))
    lab = Laboratory(pool, QUANTISATION)
    campaign = Campaign(lab, [path], Store(tmp_path), (issue,))
    discrepancy = lab.judge(case, [path]).verdicts[path.name].discrepancy
    assert discrepancy
    assert campaign.unexplained(path, case, discrepancy) is None
    assert campaign.excused == {issue.id: 1}
