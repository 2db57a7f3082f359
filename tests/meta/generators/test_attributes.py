"""The types of attributes: what is drawn is of them, all else is refused, naming node and attribute."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from math import inf, nan

import numpy as np
import pytest

from generators.bounds.bounded import leaf
from generators.graph import Attr, Graph, GraphError, Leaf, Node, TensorType, loads
from generators.ops import OPS, call_of, check
from generators.ops.attributes import kinds_of, types_of
from generators.sweep import sweep
from harness.backends import TARGETS

WRONG: tuple[Attr, ...] = (True, 1, 1.5, "a", (1,), (1.5,), None)


@pytest.mark.parametrize("name", [name for name, spec in OPS.items() if spec.attrs])
def test_attributes_are_drawn_of_their_types_and_others_refused(name: str) -> None:
    *_, case = sweep(name, 12)
    nodes = case.graph.nodes
    number = next(i for i, node in enumerate(nodes) if node.op == name)
    node = nodes[number]
    check(case.graph)
    for attribute, old in node.attrs:
        assert set(types_of(name, attribute)) & set(kinds_of(old))
        for wrong in WRONG:
            if not set(types_of(name, attribute)) & set(kinds_of(wrong)):
                attrs = tuple((key, wrong if key == attribute else value) for key, value in node.attrs)
                changed = (*nodes[:number], replace(node, attrs=attrs), *nodes[number + 1 :])
                with pytest.raises(
                    GraphError, match=re.escape(f"node {node.name}: {name}: attribute {attribute!r} must")
                ):
                    check(replace(case.graph, nodes=changed))


@pytest.mark.parametrize(
    ("attrs", "message"),
    [
        ((), "node v0: elu: attribute 'alpha' is missing"),
        ((("alpha", 1.0), ("beta", 1.0)), "node v0: elu has no attribute 'beta'; it has alpha"),
        ((("alpha", 1.0), ("alpha", 1.0)), "node v0: elu: attribute 'alpha' is there twice"),
    ],
)
def test_unknown_and_missing_attributes_are_refused(attrs: tuple[tuple[str, Attr], ...], message: str) -> None:
    type_ = TensorType("float32", (2,))
    with pytest.raises(GraphError, match=message):
        check(Graph((Leaf("x0", type_),), (Node("v0", "elu", ("x0",), attrs, type_),), ("v0",)))


def _where_scalar(value: float) -> Graph:
    type_ = TensorType("float32", (2,))
    leaves = (Leaf("x0", replace(type_, dtype="bool")), Leaf("x1", type_))
    node = Node("v0", "where_scalar", ("x0", "x1"), (("scalar", value),), type_)
    return check(Graph(leaves, (node,), ("v0",)))


@pytest.mark.parametrize("value", [inf, -inf, nan])
def test_a_special_number_is_kept_and_printed(value: float) -> None:
    graph = _where_scalar(value)
    assert loads(json.dumps(graph.to_json(), allow_nan=False)) == graph
    for name in ("torch-eager", "tf-eager", "jax-eager", "tvm-O0", "ort-disable"):
        assert f'float("{value}")' in TARGETS[name].program(graph)
    result = OPS["where_scalar"].reference(
        [leaf(np.array([True, False])), leaf(np.array([1.0, 2.0], "float32"))], call_of(graph, 0)
    )
    np.testing.assert_array_equal(result.value, [1.0, value])
    assert not result.error.any()


def test_a_special_number_of_a_file_is_an_infinity_or_nan() -> None:
    text = json.dumps(_where_scalar(inf).to_json())
    for wrong in ("{}", '{"nan": false}', '{"nan": true, "infinite": "+"}', '{"infinite": "nan"}'):
        with pytest.raises(GraphError):
            loads(text.replace('{"infinite": "+"}', wrong))


def test_other_attributes_are_finite() -> None:
    type_ = TensorType("float32", (2,))
    for operator, attribute, value, message in (
        ("elu", "alpha", inf, "attribute 'alpha' is not finite"),
        ("elu", "alpha", nan, "attribute 'alpha' is not finite"),
        ("copysign_scalar", "scalar", inf, "inf is beyond float32"),
        ("copysign_scalar", "scalar", nan, "nan is beyond float32"),
    ):
        node = Node("v0", operator, ("x0",), ((attribute, value),), type_)
        with pytest.raises(GraphError, match=message):
            check(Graph((Leaf("x0", type_),), (node,), ("v0",)))


def test_a_leaf_called_like_a_module_is_printed_otherwise() -> None:
    type_ = TensorType("float32", (2,))
    nodes = (Node("jnp", "exp", ("torch",), (), type_), Node("tf", "add", ("jnp", "torch"), (), type_))
    graph = check(Graph((Leaf("torch", type_),), nodes, ("tf",)))
    text = TARGETS["torch-eager"].program(graph)
    assert "def model(torch_):" in text
    assert "torch.exp(torch_)" in text
    namespace: dict[str, object] = {}
    exec(compile(text.partition("def model")[0].replace("import torch\n", ""), "program", "exec"), namespace)
    assert namespace["INPUTS"]
