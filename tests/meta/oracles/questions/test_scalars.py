"""Numbers as arguments: which may change, what is expected of each call, and how programs take them."""

from __future__ import annotations

import numpy as np
import pytest

from generators.graph import Graph, Leaf, Node, TensorType
from generators.graphs import Case
from generators.ops import OPS
from harness.backends import TARGETS
from harness.execute.pool import Pool
from harness.questions.scalars import SCALARS
from harness.search.laboratory import Laboratory
from oracles.judge.outcome import Value
from oracles.questions import scalars

ROW = TensorType("float32", (3, 4))
X = np.linspace(-3, 3, 12, dtype=np.float32).reshape(3, 4)


def graph(*nodes: tuple[str, tuple[str, ...], dict]) -> Graph:
    """A chain of operators behind x; the last is the output."""
    types, made = {"x": ROW}, []
    for number, (op, operands, attrs) in enumerate(nodes):
        types[f"v{number}"] = OPS[op].result(tuple(types[name] for name in operands), attrs)
        made.append(Node(f"v{number}", op, operands, tuple(attrs.items()), types[f"v{number}"]))
    return Graph((Leaf("x", ROW),), tuple(made), (made[-1].name,))


def plan_of(one: Graph) -> scalars.Plan:
    found = scalars.plan(one)
    assert found
    return found


def test_each_call_has_numbers_of_its_own_and_the_last_those_of_the_first() -> None:
    found = plan_of(graph(("elu", ("x",), {"alpha": 0.5}), ("tril", ("v0",), {"k": 0})))
    assert list(found.values) == [((0, "alpha"),), ((1, "k"),)]
    first, second, third, again = found.calls
    assert first == again == (0.5, 0)
    assert all(len({one[which] for one in (first, second, third)}) == 3 for which in range(2))
    assert [one.nodes[1].attributes["k"] for one in found.graphs] == [call[1] for call in found.calls]
    assert (
        plan_of(graph(("elu", ("x",), {"alpha": 0.5}))).calls == plan_of(graph(("elu", ("x",), {"alpha": 0.5}))).calls
    )


def test_the_other_zero_comes_next() -> None:
    pads = (0, 0, 1, 0)
    calls = plan_of(graph(("pad", ("x",), {"pads": pads, "value": 0.0}))).calls
    assert [repr(call[0]) for call in calls][:2] == ["0.0", "-0.0"]


def test_what_is_written_twice_is_one_number() -> None:
    found = plan_of(graph(("threshold", ("x",), {"threshold": 0.0, "value": 0.0})))
    assert list(found.values) == [((0, "threshold"), (0, "value"))]
    text = SCALARS.program(TARGETS["torch-eager"], found.graphs[0])
    assert "def model(x, number_0):\n" in text
    assert "threshold(x, number_0, number_0)" in text
    assert f"CALLS = {found.calls!r}" in text


def test_equal_numbers_that_cannot_change_together_change_alone() -> None:
    found = plan_of(graph(("topk", ("x",), {"axis": 1, "k": 1, "largest": False})))
    assert list(found.values) == [((0, "axis"),), ((0, "k"),)]
    assert len({one.nodes[0].type.shape for one in found.graphs}) > 1  # of other results


def test_nodes_share_a_number_that_their_records_draw() -> None:
    chain = graph(("elu", ("x",), {"alpha": 0.5}), ("relu", ("v0",), {}), ("elu", ("v1",), {"alpha": 1.0}))
    found = plan_of(scalars.shared(chain))
    assert list(found.values) == [((0, "alpha"), (2, "alpha"))]
    assert len(set(found.values[(0, "alpha"), (2, "alpha")])) == 3
    alone = graph(("elu", ("x",), {"alpha": 0.5}), ("layer_norm_plain", ("v0",), {"last": 1, "epsilon": 1e-5}))
    assert scalars.shared(alone) == alone  # no epsilon is a slope


def test_a_graph_without_numbers_cannot_be_asked() -> None:
    plain = graph(("relu", ("x",), {}))
    assert scalars.plan(plain) is None
    assert SCALARS.why_not(TARGETS["torch-eager"], plain) == "no attribute of the graph is a number that can change"
    elu = graph(("elu", ("x",), {"alpha": 0.5}))
    assert (
        SCALARS.why_not(TARGETS["tf-eager"], elu)
        == "this target takes no numbers as arguments, or compiles anew for each"
    )
    assert SCALARS.why_not(TARGETS["torch-eager"], elu) is None


def test_each_output_is_of_the_call_that_made_it() -> None:
    case = Case(graph(("elu", ("x",), {"alpha": 0.5})), {"x": X})
    expected = SCALARS.expect(case)
    calls = plan_of(case.graph).calls
    assert expected.names == tuple(f"v0_of_call_{number}" for number in range(4))
    for number, (alpha,) in enumerate(calls):
        right = np.where(X > 0, X.astype(np.float64), alpha * np.expm1(X.astype(np.float64)))
        np.testing.assert_allclose(expected.values[number].value, right, rtol=1e-12)
        (part,) = SCALARS.parts(case, number)
        assert part.graph.nodes[0].attributes["alpha"] == alpha


@pytest.mark.parametrize("name", ["torch-eager", "torch-aot-eager", "jax-eager", "jax-jit"])
def test_correct_programs_are_accepted(name: str, pool: Pool) -> None:
    case = Case(graph(("elu", ("x",), {"alpha": 0.5}), ("leaky_relu", ("v0",), {"alpha": 0.01})), {"x": X})
    (outcome,) = Laboratory(pool, SCALARS).outcomes([(TARGETS[name], case)])
    assert isinstance(outcome, Value)
    assert SCALARS.judge(TARGETS[name], SCALARS.expect(case), outcome).status == "agree"


def test_a_number_that_jax_wants_when_it_traces_is_refused(pool: Pool) -> None:
    case = Case(graph(("roll", ("x",), {"axis": 0, "shift": 1})), {"x": X})
    jit = TARGETS["jax-jit"]
    examination = Laboratory(pool, SCALARS).examine(case, [jit])
    assert examination.verdicts[jit.name].status == "unsupported"


def test_a_number_may_be_infinite(pool: Pool) -> None:
    """x + inf, then x + another number."""
    case = Case(graph(("add_scalar", ("x",), {"scalar": float("inf")})), {"x": X})
    assert "float('inf')" in SCALARS.program(TARGETS["jax-jit"], case.graph)
    assert Laboratory(pool, SCALARS).judge(case, [TARGETS["jax-jit"]]).verdicts["jax-jit"].status == "agree"
