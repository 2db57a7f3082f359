"""TFLite's quantised operators: levels next to the real value are accepted, one further away is found, by the rules of
its own kernels and by those of back ends that compute with real numbers between; and TVM on such files."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from generators.graph import Graph, Leaf, Node, TensorType
from generators.graphs import Case
from generators.ops import check
from harness.execute.pool import Pool
from harness.quantisers import QUANTISERS
from harness.questions.quantisers import QUANTISATION
from harness.search.laboratory import Laboratory
from oracles.judge.outcome import Value
from oracles.quantised import model as quantised_model
from oracles.quantised.integers import Quantisation
from oracles.quantised.model import Judgement, Operation, RecordedModel, judge_tensor, observed
from oracles.quantised.tflite import kernels, real_numbers

Array = np.ndarray
SCALES = {"a": 0.03, "b": 0.05, "y": 0.11}
TENSORS = {name: Quantisation(np.array([scale]), np.array([3.0]), 0) for name, scale in SCALES.items()}
ALIKE = dict.fromkeys(SCALES, TENSORS["a"])
DRAW = np.random.default_rng(3)
A, B = (DRAW.integers(-128, 128, (8, 6)).astype(np.int8) for _ in range(2))


def worth(levels: Array, name: str, tensors: dict[str, Quantisation]) -> Array:
    return (levels.astype(np.float64) - tensors[name].zero) * tensors[name].scale


def level(real: Array, tensors: dict[str, Quantisation]) -> Array:
    return np.clip(np.rint(real / tensors["y"].scale) + tensors["y"].zero, -128, 127).astype(np.int8)


def prelu(a: Array, b: Array) -> Array:
    return np.where(a < 0, a * b, a)


FUNCTIONS: dict[str, tuple[Callable[..., Array], dict[str, Quantisation]]] = {
    "ABS": (lambda a, b: np.abs(a), TENSORS),
    "EXP": (lambda a, b: np.exp(a), TENSORS),
    "ADD": (lambda a, b: a + b, TENSORS),
    "MUL": (lambda a, b: a * b, TENSORS),
    "SQUARED_DIFFERENCE": (lambda a, b: (a - b) ** 2, TENSORS),
    "PRELU": (prelu, TENSORS),
    "MAXIMUM": (lambda a, b: np.maximum(a, b), ALIKE),
    "MINIMUM": (lambda a, b: np.minimum(a, b), ALIKE),
}
UNARY = ("ABS", "EXP")


@pytest.mark.parametrize("rules", ["kernels", "real numbers"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_nearest_levels_are_right_and_one_further_is_not(name: str, rules: str) -> None:
    function, tensors = FUNCTIONS[name]
    right = level(function(worth(A, "a", tensors), worth(B, "b", tensors)), tensors)
    names = ("a",) if name in UNARY else ("a", "b")
    values = {"a": A, "b": B, "y": right}
    compute = kernels.computer(tensors, "reference") if rules == "kernels" else real_numbers.computer(tensors, values)
    node = Operation(name, "", names, ("y",), {})
    owed = compute(node, [observed(values[n]) for n in names], 0, values)
    judge_tensor(found := Judgement(), right, owed, name)
    assert not found.wrong
    inside = np.flatnonzero((right > -127) & (right < 126))
    moved = right.copy()
    moved.reshape(-1)[inside[0]] += 2
    judge_tensor(found := Judgement(), moved, owed, name)
    assert "1 of 48 levels wrong" in found.wrong[0]


def test_comparisons_are_judged_but_for_what_lies_within_their_rounding() -> None:
    real = worth(A, "a", TENSORS), worth(B, "b", TENSORS)
    values = {"a": A, "b": B, "y": real[0] < real[1]}
    given = {name: TENSORS[name] for name in ("a", "b")}
    for compute in (kernels.computer(given, "reference"), real_numbers.computer(given, values)):
        owed = compute(Operation("LESS", "", ("a", "b"), ("y",), {}), [observed(A), observed(B)], 0, values)
        judge_tensor(found := Judgement(), values["y"], owed, "LESS")
        assert not found.wrong
        judge_tensor(found := Judgement(), ~values["y"], owed, "LESS")
        assert found.wrong


MOVES: dict[str, tuple[tuple[Array, ...], dict, list[Array]]] = {
    "TRANSPOSE": ((A, np.array([1, 0])), {}, [A.T]),
    "SLICE": ((A, np.array([2, 1]), np.array([3, -1])), {}, [A[2:5, 1:]]),
    "STRIDED_SLICE": (
        (A, np.array([1, 5]), np.array([8, 0]), np.array([3, -2])),
        {"beginMask": 0, "endMask": 2, "shrinkAxisMask": 0},
        [A[1:8:3, 5::-2]],
    ),
    "GATHER": ((A, np.array([[3, 0]])), {"axis": 0, "batchDims": 0}, [A[[[3, 0]]]]),
    "SPLIT": ((np.array(1), A), {}, [A[:, :3], A[:, 3:]]),
    "SPLIT_V": ((A, np.array([3, -1]), np.array(0)), {}, [A[:3], A[3:]]),
    "RESIZE_NEAREST_NEIGHBOR": (
        (A.reshape(1, 8, 6, 1), np.array([4, 12])),
        {"alignCorners": False, "halfPixelCenters": False},
        [A[::2].repeat(2, 1).reshape(1, 4, 12, 1)],
    ),
}


@pytest.mark.parametrize("name", MOVES)
def test_operators_that_move_elements_give_the_same_levels_in_their_places(name: str) -> None:
    given, attrs, results = MOVES[name]
    operands, made = [f"x{i}" for i in range(len(given))], [f"y{i}" for i in range(len(results))]
    values = dict(zip((*operands, *made), (*given, *results), strict=True))
    tensors = {key: TENSORS["a"] for key, array in values.items() if array.dtype == np.int8}
    node = Operation(name, "", tuple(operands), tuple(made), attrs)
    for compute in (kernels.computer(tensors, "reference"), real_numbers.computer(tensors, values)):
        for index, key in enumerate(made):
            owed = compute(node, [observed(values[o]) for o in operands], index, values)
            judge_tensor(found := Judgement(), values[key], owed, name)
            assert not found.wrong
            judge_tensor(found := Judgement(), np.flip(values[key]), owed, name)
            assert found.wrong


def pooled() -> Case:
    """A product of matrices, an activation, a sum."""
    x, w, y = (TensorType("float32", shape) for shape in ((16, 24), (24, 32), (16, 32)))
    nodes = (
        Node("y0", "matmul", ("x", "w"), (), y),
        Node("y1", "tanh", ("y0",), (), y),
        Node("y2", "add", ("y1", "b"), (), y),
    )
    graph = check(Graph((Leaf("x", x), Leaf("b", y), Leaf("w", w, "parameter")), nodes, ("y2",)))
    draw = np.random.default_rng(11)
    return Case(graph, {leaf.name: draw.normal(size=leaf.type.shape).astype(np.float32) for leaf in graph.leaves})


@pytest.fixture(scope="module")
def run(pool: Pool) -> Value:
    """The case, quantised by TFLite's converter and run by TVM."""
    (found,) = Laboratory(pool, QUANTISATION).outcomes([(QUANTISERS["tvm-tflite-int8"], pooled())])
    assert isinstance(found, Value), found
    return found


def judged(run: Value, change: Callable[[RecordedModel], None] = lambda record: None) -> Judgement:
    record = quantised_model.read([array.copy() for array in run.outputs])
    change(record)
    return QUANTISERS["tvm-tflite-int8"].judge(record)


def test_tvm_on_a_quantised_file_is_accepted(run: Value) -> None:
    found = judged(run)
    assert not found.wrong
    assert found.exact > 2
    assert found.loss is not None
    assert (found.loss["sqnr_db"] or 0) > 20


def test_a_level_of_one_operator_that_is_off_is_found(run: Value) -> None:
    def change(record: RecordedModel) -> None:
        product = next(node for node in record.nodes["alone"] if node.op == "FULLY_CONNECTED")
        record.groups["alone"][product.results[0]].reshape(-1)[5] ^= 1

    found = judged(run, change)
    assert "alone: FULLY_CONNECTED of (16, 24), (32, 24)" in found.wrong[0]
    assert "1 of 512 levels wrong, by up to 1" in found.wrong[0]


def test_an_output_of_the_whole_that_is_off_by_two_quanta_is_found(run: Value) -> None:
    def change(record: RecordedModel) -> None:
        (name,) = record.header["outputs"]
        quantum = min(how["scale"][0] for how in record.header["tensors"].values())
        record.groups["whole"][name].reshape(-1)[7] += 8 * quantum

    assert "whole as source" in judged(run, change).wrong[0]


def test_a_model_without_an_operator_that_the_importer_takes_is_refused(pool: Pool) -> None:
    x = TensorType("float32", (4, 6))
    graph = check(Graph((Leaf("x", x),), (Node("y", "concat", ("x",), (("axis", 0),), x),), ("y",)))
    case = Case(graph, {"x": np.ones((4, 6), np.float32)})
    verdict = Laboratory(pool, QUANTISATION).judge(case, [QUANTISERS["tvm-tflite-int8"]]).verdicts["tvm-tflite-int8"]
    assert verdict.status == "unsupported"
