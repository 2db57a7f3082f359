"""Narrow and unsigned dtypes: on their way to a worker and into files, in the distributions, in the bounds."""

from __future__ import annotations

import io
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from ml_dtypes import finfo

from generators import caseio
from generators.bounds.bounded import PRECISION, Bounded, gamma, leaf
from generators.graph import FLOATS, INTEGERS, MEASURED, RARE, Graph, Leaf, Node, TensorType
from generators.graphs import Case, seeded_case
from generators.inputs import FLOATING, INTEGER, Recipe, fill
from generators.ops import OPS, check
from generators.ops.composed import compute
from generators.retype import float64_twin
from harness.backends import TARGETS
from harness.execute.processes.worker import read_message, write_message
from harness.findings import reproducer
from harness.questions.forward import FORWARD
from harness.questions.question import reproduction_of
from harness.search.dtype_support import samples
from oracles.judge import reference
from oracles.judge.compare import Expected
from oracles.judge.outcome import Value
from oracles.judge.verdict import judge
from oracles.questions import forward, levels


def unary(op: str, dtype: str, values: np.ndarray) -> Case:
    """One operator applied to one input."""
    type_ = TensorType(dtype, values.shape)
    graph = Graph((Leaf("x0", type_),), (Node("v0", op, ("x0",), (), type_),), ("v0",))
    return Case(check(graph), {"x0": values.astype(dtype)})


@pytest.mark.parametrize("dtype", MEASURED)
def test_messages_and_files_keep_every_bit(dtype: str) -> None:
    array = np.arange(6).reshape(2, 3).astype(dtype)
    stream = io.BytesIO()
    write_message(stream, {}, {"x": array})
    stream.seek(0)
    received = read_message(stream)[1]["x"]
    assert received.dtype == array.dtype
    assert received.tobytes() == array.tobytes()
    case = unary("identity", dtype, array)
    assert caseio.loads(caseio.dumps(case)).arrays["x0"].tobytes() == array.tobytes()


@pytest.mark.slow(one_in=2)
@pytest.mark.parametrize(("size", "wrong"), [(3, False), (100, True)])
def test_a_reproducer_with_bfloat16_stands_alone(tmp_path: Path, size: int, wrong: bool) -> None:
    """Inline and beside it; right and wrong (one expected value is another number)."""
    case = unary("neg", "bfloat16", np.linspace(-2, 2, size))

    def expect(case: Case) -> Expected:
        right = forward.expect(case)
        values = np.where(np.arange(size) == 1, 7.0 if wrong else right.values[0].value, right.values[0].value)
        return replace(right, values=(replace(right.values[0], value=values),))

    question = replace(FORWARD, expect=expect)
    path = reproducer.write(tmp_path, reproduction_of(question, TARGETS["torch-eager"], case), "value", "a title", 60.0)
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == int(wrong), done.stdout + done.stderr
    assert ("1 of 100 wrong, at (1,)" if wrong else "output 0: correct") in done.stdout


def test_only_programs_with_bfloat16_import_ml_dtypes() -> None:
    target = TARGETS["torch-eager"]
    assert "ml_dtypes" in target.program(samples("neg", "bfloat16")[0].graph)
    assert "ml_dtypes" not in target.program(samples("neg", "float16")[0].graph)


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
def test_distributions_stay_in_the_dtype_and_reach_its_edges(dtype: str) -> None:
    leaf = Leaf("x0", TensorType(dtype, (500,)))
    for name in FLOATING if dtype in FLOATS else INTEGER:
        array = fill(leaf, Recipe(name, 0))
        assert str(array.dtype) == dtype
        assert len(np.unique(array.astype(np.float64))) > 1, name
    if dtype in INTEGERS:
        edges = fill(leaf, Recipe("boundaries", 0))
        assert {np.iinfo(dtype).min, np.iinfo(dtype).max} <= set(edges.tolist())
        assert np.abs(fill(leaf, Recipe("small_integers", 0)).astype(np.float64)).max() <= 4
    else:
        subnormal = np.abs(fill(leaf, Recipe("subnormals", 0)).astype(np.float64))
        assert subnormal.max() < float(finfo(dtype).smallest_normal)
        assert np.isfinite(fill(leaf, Recipe("extreme", 0)).astype(np.float64)).all()


def test_a_graph_has_one_rare_dtype_unless_it_casts() -> None:
    rare = 0
    for index in range(400):
        graph = seeded_case(5, index).graph
        present = {t.dtype for t in graph.types.values()} & set(RARE)
        rare += bool(present)
        assert len(present) <= 1 or "cast" in graph.operators
    assert 20 < rare < 100  # about one graph in eight


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_sums_in_the_dtype_itself_are_within_the_bound(dtype: str) -> None:
    """One addition after the other, each rounded; and an error of a few roundings more is not."""
    rng = np.random.default_rng(1)
    values = rng.uniform(0.5, 1, (6, 40)).astype(dtype)
    type_, result = TensorType(dtype, (6, 40)), TensorType(dtype, (6,))
    node = Node("v0", "sum", ("x0",), (("axes", (1,)), ("keepdims", False)), result)
    case = Case(check(Graph((Leaf("x0", type_),), (node,), ("v0",))), {"x0": values})
    total = np.zeros(6, dtype)
    for column in values.T:
        total = (total + column).astype(dtype)
    expected = forward.expect(case)
    assert judge(expected, Value((total,))).status == "agree"
    beyond = expected.values[0].value + 1.1 * expected.values[0].error
    assert judge(expected, Value((beyond.astype(dtype),))).status == "mismatch"


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_result_two_units_off_is_seen(dtype: str) -> None:
    case = unary("neg", dtype, np.array([1.0, 1.5, 3.0]))
    right = -case.arrays["x0"]
    expected = forward.expect(case)
    assert judge(expected, Value((right,))).status == "agree"
    off = (right.astype(np.float64) * (1 + 4 * PRECISION[dtype].unit)).astype(dtype)
    assert judge(expected, Value((off,))).status == "mismatch"


def test_the_bound_of_many_roundings_means_something_for_any_number() -> None:
    n, unit = np.arange(0, 5000), PRECISION["bfloat16"].unit
    bound = gamma(n, unit)
    assert np.isfinite(bound).all()
    assert (np.diff(bound) > 0).all()
    short = n * unit < 0.5  # never beyond Higham's gamma_n, and at least n roundings up
    assert (bound[short] <= n[short] * unit / (1 - n[short] * unit) * (1 + 1e-12)).all()
    assert (bound >= np.expm1(n * np.log1p(unit)) * (1 - 1e-12)).all()


def test_casts_between_the_16_bit_formats_round_and_overflow() -> None:
    from_, to = TensorType("bfloat16", (3,)), TensorType("float16", (3,))
    node = Node("v0", "cast", ("x0",), (("to", "float16"),), to)
    graph = check(Graph((Leaf("x0", from_),), (node,), ("v0",)))
    bound = forward.plan(Case(graph, {"x0": np.array([1.5, 1e10, 1e-10], "bfloat16")}))["v0"]
    assert bound.value[:2].tolist() == [1.5, np.inf]
    assert bound.error[:2].tolist() == [0.0, 0.0]
    assert 0 < bound.error[2] <= 2 * PRECISION["float16"].tiny


def test_any_nan_of_bfloat16_equals_any_other() -> None:
    a = np.array([1.0, np.nan], "bfloat16")
    b = a.copy()
    b.view(np.uint16)[1] ^= 1
    assert a.tobytes() != b.tobytes()
    assert levels.identical(a, b)
    assert not levels.identical(a, np.array([1.0, 2.0], "bfloat16"))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_the_twin_of_a_narrow_case_is_float64(dtype: str) -> None:
    twin = float64_twin(unary("exp", dtype, np.array([1.0, 2.0])))
    assert twin
    assert {t.dtype for t in twin.graph.types.values()} == {"float64"}
    assert str(twin.arrays["x0"].dtype) == "float64"


def test_float16_overflows_for_certain_only_where_it_is_seen() -> None:
    """Between nodes a back end may keep float32: what follows an overflow is left open, the overflow itself is not."""
    type_ = TensorType("float16", (2,))
    nodes = (Node("v0", "mul", ("x0", "x0"), (), type_), Node("v1", "mul", ("v0", "x1"), (), type_))
    graph = Graph((Leaf("x0", type_), Leaf("x1", type_)), nodes, ("v0", "v1"))
    arrays = {"x0": np.array([300, 3], "float16"), "x1": np.array([0, 2], "float16")}
    first, second = forward.expect(Case(graph, arrays)).values
    assert first.value.tolist() == [np.inf, 9]
    assert not first.undetermined.any()
    assert second.undetermined.tolist() == [True, False]
    given = {"x0": np.array([np.inf, 3], "float16"), "x1": np.array([0, 2], "float16")}
    assert not forward.expect(Case(graph, given)).values[1].undetermined.any()  # NaN, whoever computes it


def test_what_replaces_infinities_is_rounded_to_the_dtype() -> None:
    x = np.array([np.inf, -np.inf, np.nan, 1.5]).astype("bfloat16")
    leaf = Leaf("x0", TensorType("bfloat16", x.shape))
    attrs = (("nan", 0.0), ("posinf", 65504.0), ("neginf", -1.0))
    node = Node("v0", "nan_to_num", ("x0",), attrs, leaf.type)
    found = reference.evaluate(check(Graph((leaf,), (node,), ("v0",))), {"x0": x})["v0"]
    assert found.value.tolist() == [65536.0, -1.0, 0.0, 1.5]


def test_a_least_number_among_subnormals_may_be_any_of_them() -> None:
    """A processor that reads subnormals as zero takes 0 and 3e-40 for equal, and keeps the one that it has."""
    x, at, update = np.array([0.0, 3e-40], "float32"), np.array([1, 1], "int32"), np.zeros(2, "float32")
    given = {"x0": x, "x1": at, "x2": update}
    domains = {"x1": (0, 1)}
    leaves = tuple(Leaf(n, TensorType(str(a.dtype), a.shape), domain=domains.get(n)) for n, a in given.items())
    node = Node("v0", "scatter_min", tuple(given), (("axis", 0),), leaves[0].type)
    found = reference.evaluate(check(Graph(leaves, (node,), ("v0",))), given)["v0"]
    assert found.value[1] == 0
    assert 3e-40 <= found.error[1] <= 4e-38


def test_what_no_integer_holds_is_brought_to_the_nearest_one() -> None:
    """Beyond the range only what a floating dtype rounds it by is left open; 2^63 is not taken for -2^63."""

    def saturated(numbers: list[float], dtype: str, to: str) -> Bounded:
        return compute(OPS["saturate_cast"], leaf(np.array(numbers, dtype)), to=to)

    found = saturated([3e38, -3e38, 2.5, -1.0, np.nan], "float32", "int64")
    assert found.value.tolist()[:4] == [2.0**63, -(2.0**63), 2.0, -1.0]
    assert found.undetermined.tolist() == [False, False, False, False, True]
    assert (found.error[:4] < [2.0**42, 1, 1, 1]).all()
    assert saturated([1e30, np.inf, 255.5, -3.0], "float64", "uint8").value.tolist() == [255, 255, 255, 0]
    assert not saturated([1e30, np.inf, 255.5, -3.0], "float64", "uint8").error.any()
    assert saturated([-5, 7], "int64", "uint64").value.tolist() == [0, 7]
    assert saturated([np.inf, 2.0], "float16", "int32").undetermined.tolist() == [True, False]
