"""Values of another ONNX model are told by its graph where their names are lost."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from harness.models.helpers.same_values import same_values

NAMES = ("a", "b", "c", "d")


def network(names: tuple[str, ...] = NAMES, more: str = "") -> onnx.ModelProto:
    """A convolution, a ReLU, a branch that takes a value from outside of it, and a sum. more: an operator behind the
    ReLU (empty: none)."""
    a, b, c, d = names
    kernel = numpy_helper.from_array(np.arange(9, dtype=np.float32).reshape(1, 1, 3, 3), "w")
    inner = b if not more else "inserted"
    branches = [
        helper.make_graph([helper.make_node(kind, [inner], [f"{kind}_{c}"])], kind, [], [value(f"{kind}_{c}")])
        for kind in ("Neg", "Abs")
    ]
    nodes = [
        helper.make_node("Conv", ["x", "w"], [a], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", [a], [b]),
        *([helper.make_node(more, [b], ["inserted"])] if more else []),
        helper.make_node("If", ["condition"], [c], then_branch=branches[0], else_branch=branches[1]),
        helper.make_node("Exp", [c], [d]),
        helper.make_node("Add", [d, d], ["y"]),
    ]
    ports = [value("x"), helper.make_tensor_value_info("condition", TensorProto.BOOL, [])]
    return helper.make_model(helper.make_graph(nodes, "network", ports, [value("y")], [kernel]))


def value(name: str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 1, 4, 4])


def test_names_that_are_kept_are_believed() -> None:
    assert same_values(network(), network()) == {name: name for name in (*NAMES, "y")}


def test_lost_names_are_told_by_the_graph() -> None:
    other = network(("p", "q", "r", "s"))
    assert same_values(network(), other) == {"a": "p", "b": "q", "c": "r", "d": "s", "y": "y"}


@pytest.mark.parametrize("more", ["Sigmoid", "Neg"])
def test_what_is_inserted_belongs_to_the_node_before_it(more: str) -> None:
    """Also where a graph inside of a node takes it: the error of what is inserted begins at that node."""
    found = same_values(network(), network(("p", "q", "r", "s"), more))
    assert found == {"a": "p", "b": "inserted", "c": "r", "d": "s", "y": "y"}


def test_other_constants_end_it() -> None:
    """A node that holds other weights, which an optimiser may have folded into it, tells nothing of what it takes."""
    other = network(("p", "q", "r", "s"))
    other.graph.node[0].input[1] = "v"
    other.graph.initializer[0].name = "v"
    other.graph.initializer[0].raw_data = np.ones((1, 1, 3, 3), np.float32).tobytes()
    other.graph.node.insert(0, helper.make_node("Identity", ["x"], ["moved"]))
    other.graph.node[1].input[0] = "moved"
    model = network()
    model.graph.node.insert(0, helper.make_node("Neg", ["x"], ["moves"]))
    model.graph.node[1].input[0] = "moves"
    found = same_values(model, other)
    assert (found["a"], "moves" in found) == ("p", False)
