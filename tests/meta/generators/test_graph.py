"""The graph: valid by construction, refused where it is not, and the same after a journey through JSON or repr."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from examples.small_graphs import F22, F23, chain, chain_case
from hypothesis import given
from hypothesis import strategies as st

from generators import caseio, graph
from generators.graph import Graph, GraphError, Leaf, Node, TensorType
from generators.graphs import Case, cases, graphs, seeded_case
from generators.ops import DRAWN, OPS, check
from harness.backends import TARGETS
from harness.dialects import JAX, RELAX
from harness.search.blame.culprit import alone, replaced


@given(graphs(max_nodes=12))
def test_drawn_graphs_are_valid_and_pruned(drawn: Graph) -> None:
    check(drawn)
    assert 1 <= len(drawn.nodes) <= 12
    assert drawn.pruned() == drawn
    assert all(type_.size <= 2048 for type_ in drawn.types.values())


@given(graphs(max_nodes=6))
def test_repr_is_source(drawn: Graph) -> None:
    assert eval(repr(drawn), dict(vars(graph))) == drawn


@given(cases(max_nodes=5))
def test_json_round_trip(case: Case) -> None:
    again = caseio.loads(caseio.dumps(case))
    assert again.graph == case.graph
    for name, array in case.arrays.items():
        assert again.arrays[name].dtype == array.dtype
        assert again.arrays[name].shape == array.shape
        assert again.arrays[name].tobytes() == array.tobytes()


@given(st.data())
def test_same_seed_same_arrays(data: st.DataObject) -> None:
    case = data.draw(cases(max_nodes=3))
    for leaf in case.graph.leaves:
        array = case.arrays[leaf.name]
        assert (str(array.dtype), array.shape) == (leaf.type.dtype, leaf.type.shape)
        if leaf.domain is not None and array.size:
            assert array.min() >= leaf.domain[0]
            assert array.max() <= leaf.domain[1]


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (replace(chain(), outputs=()), "at least one output"),
        (replace(chain(), outputs=("v9",)), "output v9 is not defined"),
        (replace(chain(), leaves=chain().leaves[:1]), "node v0: operand w0 is not defined before it"),
        (replace(chain(), nodes=(*chain().nodes, chain().nodes[0])), "v0 is defined twice"),
        (replace(chain(), leaves=(Leaf("x 0", F23),)), "'x 0' is not an identifier"),
        (replace(chain(), leaves=(Leaf("x0", TensorType("float8", (1,))),)), "x0: unknown dtype 'float8'"),
        (replace(chain(), leaves=(Leaf("x0", TensorType("int32", (-1,))),)), "x0: -1 is not a dimension"),
        (
            Graph((Leaf("x0", F23),), (Node("v0", "frobnicate", ("x0",), (), F23),), ("v0",)),
            "node v0: unknown operator 'frobnicate'",
        ),
        (Graph((Leaf("x0", F23),), (Node("v0", "exp", ("x0", "x0"), (), F23),), ("v0",)), "node v0: exp takes 1"),
        (Graph((Leaf("x0", F23),), (Node("v0", "exp", ("x0",), (), F22),), ("v0",)), "node v0: the type is float32"),
        (
            Graph((Leaf("x0", F23),), (Node("v0", "matmul", ("x0", "x0"), (), F22),), ("v0",)),
            "node v0: operand 1 .* does not fit matmul",
        ),
        (
            Graph((Leaf("x0", F23),), (Node("v0", "exp", ("x0",), (("a", 1),), F23),), ("v0",)),
            "node v0: exp has no attr",
        ),
    ],
)
def test_a_broken_graph_names_the_culprit(broken: Graph, message: str) -> None:
    with pytest.raises(GraphError, match=message):
        check(broken)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "onnx"}, "format: Invalid enum value"),
        ({"version": 2}, "version: Invalid enum value 2"),
        ({"extra": 1}, "unknown field `extra`"),
        ({"leaves": 3}, r"\$.leaves: Expected `array`, got `int`"),
        ({"leaves": [{"name": "x0"}]}, r"\$.leaves\[0\]: .* missing required field `dtype`"),
    ],
)
def test_json_that_is_not_understood_is_refused(change: dict, message: str) -> None:
    with pytest.raises(GraphError, match=message):
        Graph.from_json({**chain().to_json(), **change})


def test_numbers_of_uint64_are_read_again_and_greater_ones_refused() -> None:
    """A finding whose file cannot be read ended a hunt."""
    unsigned = TensorType("uint64", (2,))
    most = (("min", 1), ("max", 2**64 - 1))
    whole = Graph((Leaf("x0", unsigned),), (Node("v0", "clip", ("x0",), most, unsigned),), ("v0",))
    assert graph.loads(json.dumps(whole.to_json())) == whole
    beyond = replace(whole, nodes=(replace(whole.nodes[0], attrs=(("min", 1), ("max", 2**64))),))
    with pytest.raises(GraphError, match="v0: max is a number beyond uint64"):
        graph.loads(json.dumps(beyond.to_json()))


@pytest.mark.parametrize(("dtype", "most", "typed"), [("uint64", 2**64 - 1, True), ("int64", 2**63 - 1, False)])
def test_only_a_limit_beyond_int64_has_a_dtype_of_its_own(dtype: str, most: int, typed: bool) -> None:
    """np.uint64 beside int64 is float64 in JAX."""
    type_ = TensorType(dtype, (2,))
    graph = Graph((Leaf("x0", type_),), (Node("v0", "clip", ("x0",), (("min", 1), ("max", most)), type_),), ("v0",))
    assert ("np.uint64" in JAX.source(graph, "")) == typed
    assert (RELAX.unsupported(graph) is not None) == typed


def test_text_that_is_not_json_is_refused() -> None:
    with pytest.raises(GraphError, match="not JSON"):
        graph.loads("{")


def test_a_case_without_its_arrays_is_refused() -> None:
    data = json.loads(caseio.dumps(chain_case()))
    data["arrays"]["x0"] = data["arrays"]["x0"][:8]
    with pytest.raises(GraphError, match=r"leaf x0: no array of float32\[2,3\]"):
        caseio.loads(json.dumps(data))


def test_every_record_is_spelled_in_every_dialect() -> None:
    for spec in OPS.values():
        for dialect in ("torch", "tensorflow", "jax", "relax", "onnx"):
            assert getattr(spec, dialect), f"{spec.name} in {dialect}"
    assert len(OPS) >= 60


@given(graphs(max_nodes=4))
def test_programs_are_python(drawn: Graph) -> None:
    for target in TARGETS.values():
        if target.unsupported(drawn) is None:
            compile(target.program(drawn), target.name, "exec")


def test_swarm_makes_rare_pairs_meet() -> None:
    """With a random subset of the operators in each case, some pair of operators comes up more than once."""
    pairs: dict[tuple[str, str], int] = {}
    for index in range(400):
        drawn = seeded_case(3, index).graph
        made = {node.name: node.op for node in drawn.nodes}
        for node in drawn.nodes:
            for operand in node.operands:
                if operand in made:
                    pairs[made[operand], node.op] = pairs.get((made[operand], node.op), 0) + 1
    assert len(pairs) > 300
    assert np.mean(list(pairs.values())) > 1.2


@pytest.mark.slow
def test_operators_on_request_are_drawn_only_where_they_are_asked_for() -> None:
    on_request = set(OPS) - set(DRAWN)
    drawn = {name for index in range(7000) for name in seeded_case(3, index).graph.operators}
    assert drawn == set(DRAWN)
    asked = {name for index in range(2000) for name in seeded_case(3, index, 6, sorted(on_request)).graph.operators}
    assert len(asked) > 0.9 * len(on_request)
    assert asked <= on_request


def test_what_follows_from_parameters_alone_is_a_constant() -> None:
    """It stays one where its node is judged alone, or replaced by a leaf: compilers fold it."""
    leaves = (Leaf("x0", F22), Leaf("w1", F22, "parameter"))
    nodes = (Node("v0", "neg", ("w1",), (), F22), Node("v1", "add", ("x0", "v0"), (), F22))
    drawn = Graph(leaves, (*nodes, Node("v2", "neg", ("v1",), (), F22)), ("v2",)).validate()
    assert drawn.constants == {"w1", "v0"}
    assert alone(drawn, drawn.nodes[1]).leaves == (leaves[0], Leaf("v0", F22, "parameter"))
    assert alone(drawn, drawn.nodes[2]).leaves == (Leaf("v1", F22),)
    arrays = {"x0": np.ones((2, 2), "float32"), "w1": np.ones((2, 2), "float32")}
    cut = replaced(Case(drawn, arrays), nodes[:1], ("v2",)).graph
    assert [leaf.role for leaf in cut.leaves] == ["input", "parameter"]
