"""The evaluator of ONNX models: graphs inside of nodes, constants, functions, errors, several runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from examples.onnx_cases import one_node
from onnx import TensorProto, helper, numpy_helper, parser

from oracles.onnx import evaluate as evaluation
from oracles.onnx.evaluate import LOST, EvaluationError, Step, evaluate, run, single
from oracles.onnx.model import read
from oracles.onnx.noise import monte_carlo, sizes_of_noise
from oracles.onnx.rule import NoRule

F32 = np.float32


def parsed(body: str, version: int = 17, rest: str = "") -> onnx.ModelProto:
    """A model in onnx's text format."""
    return parser.parse_model(f'<ir_version: 8, opset_import: ["" : {version}, "own" : 1]> {body} {rest}')


def values(model: onnx.ModelProto, *inputs: Any) -> list[Any]:
    return [np.asarray(y).tolist() if isinstance(y, np.ndarray) else y for y in evaluate(model, inputs)]


LOOP = """agraph (int64 n, float[2] x) => (float[2] last, float[k, 2] all) {
    yes = Constant <value = bool {1}> ()
    last, all = Loop (n, yes, x) <
        body = step (int64 i, bool going, float[2] s) => (bool go, float[2] next, float[2] out) {
        three = Constant <value = float {3.0}> ()
        next = Add (s, x)
        out = Mul (s, three)
        total = ReduceSum <keepdims = 0> (next)
        hundred = Constant <value = float {100.0}> ()
        go = Less (total, hundred)
    }>
}"""


def test_a_loop_carries_states_and_stacks_what_it_makes() -> None:
    model = parsed(LOOP)
    x = np.array([1, 2], F32)
    assert values(model, np.array(3), x) == [[4.0, 8.0], [[3.0, 6.0], [6.0, 12.0], [9.0, 18.0]]]
    last, made = values(model, np.array(1000), x)  # its own condition ends it, at a sum of 100
    assert (last, len(made)) == ([34.0, 68.0], 33)
    last, made = evaluate(model, (np.array(0), x))
    assert np.array_equal(np.asarray(last), x)
    assert np.asarray(made).size == 0


def test_a_branch_sees_what_is_around_it() -> None:
    model = parsed(
        """agraph (bool c, float[2] x) => (float[2] y) {
        y = If (c) <
            then_branch = a () => (float[2] u) { u = Neg (x) },
            else_branch = b () => (float[2] v) { v = Add (x, x) }
        >
        }"""
    )
    x = np.array([1, 2], F32)
    assert values(model, np.array(True), x) == [[-1.0, -2.0]]
    assert values(model, np.array(False), x) == [[2.0, 4.0]]


def scan(version: int, inputs: list[str], outputs: list[str], **attributes: Any) -> onnx.ModelProto:
    """Running sums of rows."""
    tensor = helper.make_tensor_value_info
    nodes = [helper.make_node("Add", ["s", "e"], ["t"]), helper.make_node("Identity", ["t"], ["o"])]
    ins = [tensor("s", TensorProto.FLOAT, [2]), tensor("e", TensorProto.FLOAT, [2])]
    outs = [tensor("t", TensorProto.FLOAT, [2]), tensor("o", TensorProto.FLOAT, [2])]
    body = helper.make_graph(nodes, "body", ins, outs)
    node = helper.make_node("Scan", inputs, outputs, body=body, num_scan_inputs=1, **attributes)
    given = [tensor(name, TensorProto.FLOAT, None) for name in inputs if name]
    if inputs[0] == "lengths":
        given[0] = tensor("lengths", TensorProto.INT64, None)
    ends = [helper.make_empty_tensor_value_info(name) for name in outputs]
    graph = helper.make_graph([node], "scan", given, ends)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)], ir_version=8)


def test_scans_of_all_versions() -> None:
    start, x = np.zeros(2, F32), np.array([[1, 2], [3, 4], [5, 6]], F32)
    model = scan(11, ["init", "x"], ["last", "sums"])
    assert values(model, start, x) == [[9.0, 12.0], [[1.0, 2.0], [4.0, 6.0], [9.0, 12.0]]]
    backward = scan(9, ["init", "x"], ["last", "sums"], scan_input_directions=[1], scan_output_directions=[1])
    assert values(backward, start, x) == [[9.0, 12.0], [[9.0, 12.0], [8.0, 10.0], [5.0, 6.0]]]
    across = scan(16, ["init", "x"], ["last", "sums"], scan_input_axes=[-1], scan_output_axes=[1])
    assert values(across, start, x.T) == [[9.0, 12.0], [[1.0, 4.0, 9.0], [2.0, 6.0, 12.0]]]
    batched = scan(8, ["lengths", "init", "x"], ["last", "sums"])
    found = values(batched, np.array([3, 1]), np.stack([start, start]), np.stack([x, x]))
    assert found[0] == [[9.0, 12.0], [1.0, 2.0]]
    assert found[1][1] == [[1.0, 2.0], [0.0, 0.0], [0.0, 0.0]]


def test_functions_of_the_model_and_of_onnx_are_evaluated() -> None:
    model = parsed(
        "agraph (float[2] x) => (float[2] y) { y = own.twice <by = 3.0> (x) }",
        rest='<domain: "own", opset_import: ["" : 17]> twice <by: float = 2.0> (a) => (b) '
        "{ k = Constant <value_float: float = @by> () b = Mul (a, k) }",
    )
    assert values(model, np.array([1, 2], F32)) == [[3.0, 6.0]]
    rules = dict(evaluation.rules())
    del rules["Softplus"]
    node = one_node("Softplus", (np.zeros(2, F32),), 22)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evaluation, "rules", lambda: rules)
        assert np.allclose(values(node, np.zeros(2, F32)), np.log(2), rtol=1e-15)


def test_sparse_and_external_constants(tmp_path: Path) -> None:
    dense = np.array([[0, 5, 0], [7, 0, 0]], F32)
    for indices in (np.array([1, 3]), np.array([[0, 1], [1, 0]])):
        tensor = helper.make_sparse_tensor(
            numpy_helper.from_array(np.array([5, 7], F32), "w"), numpy_helper.from_array(indices, "i"), [2, 3]
        )
        graph = parsed("agraph (float[2, 3] x) => (float[2, 3] y) { y = Add (x, w) }")
        graph.graph.sparse_initializer.append(tensor)
        assert values(graph, np.zeros((2, 3), F32)) == [dense.tolist()]
    model = parsed("agraph (float[2, 3] x) => (float[2, 3] y) { y = Add (x, w) }")
    model.graph.initializer.append(numpy_helper.from_array(dense, "w"))
    onnx.save(model, tmp_path / "m.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    apart = onnx.load(tmp_path / "m.onnx", load_external_data=False)
    found = evaluate(apart, (np.zeros((2, 3), F32),), tmp_path)
    assert np.array_equal(np.asarray(found[0]), dense)


def test_nodes_in_any_order_are_evaluated_but_in_no_circle() -> None:
    text = """agraph (bool c, float[2] x) => (float[2] y) {
        y = Add (b, x)
        b = If (c) <
            then_branch = one () => (float[2] r) { r = Neg (q) q = Neg (a) },
            else_branch = two () => (float[2] r) { r = Identity (x) }>
        a = Mul (x, x)
    }"""
    x = np.array([2, 3], F32)
    assert values(parsed(text), np.array(True), x) == [[6.0, 12.0]]
    with pytest.raises(ValueError, match=r"no order of nodes: . is made of itself"):
        evaluate(parsed(text.replace("Mul (x, x)", "Mul (y, x)")), (np.array(True), x))


def test_errors_name_the_node() -> None:
    model = parsed("agraph (float[2] x) => (float[2] y) { y = own.Unknown (x) }")
    model.graph.node[0].name = "here"
    with pytest.raises(NoRule, match="own:Unknown here: no rule"):
        evaluate(model, (np.zeros(2, F32),))
    model = parsed("agraph (float[2] x) => (float[k] y) { s = Constant <value_ints = [3]> () y = Reshape (x, s) }")
    with pytest.raises(EvaluationError, match="Reshape y: ValueError"):
        evaluate(model, (np.zeros(2, F32),))
    model = parsed(LOOP)
    next(node for node in model.graph.node if node.op_type == "Loop").attribute[0].name = "other"
    with pytest.raises(EvaluationError, match="Loop last: KeyError"):
        evaluate(model, (np.array(1), np.zeros(2, F32)))
    with pytest.raises(ValueError, match="no value for the inputs n, x"):
        evaluate(model, ())


def test_values_are_dropped_after_their_last_use() -> None:
    model = parsed(
        "agraph (float[2] x) => (float[2] y) { a = Neg (x) b = Exp (a) c = Exp (a) y = Add (b, c) unused = Neg (y) }"
    )
    graph = read(model)
    assert [node.last for node in graph.nodes] == [("x",), (), ("a",), ("b", "c"), ("unused",)]


def test_runs_may_differ_in_a_shape() -> None:
    """A run whose shapes differ goes on with them, and has lost what they do not fit."""
    model = parsed(
        """agraph (float[4] x) => (float[k] kept, float[4] sum) {
        half = Constant <value = float {0.5}> ()
        m = Greater (x, half)
        kept = Compress (x, m)
        two = Constant <value = float[2] {1.0, 2.0}> ()
        s = Add (kept, two)
        t = ReduceSum (s)
        sum = Add (x, t)
        }"""
    )

    def move(step: Step) -> None:
        if step.node.operator == "Greater":
            step.results[1] = [np.array([True, True, True, False])]

    exact, other = run(read(model), (np.array([0, 1, 2, 0], F32),), 2, move)
    assert np.asarray(exact[0]).tolist() == [1.0, 2.0]
    assert np.asarray(other[0]).tolist() == [0.0, 1.0, 2.0]
    assert np.asarray(exact[1]).tolist() == [6.0, 7.0, 8.0, 6.0]
    assert other[1] is LOST


def test_noise_enters_graphs_inside_of_nodes() -> None:
    x = np.array([0.1, 0.2], F32)
    exact, runs, _, _ = monte_carlo(parsed(LOOP), (np.array(5), x), 4, 0)
    assert 0 < np.max(np.abs(runs / exact - 1)) < 1e-6
    assert len(np.unique(runs)) == runs.size


def test_noise_of_a_node_with_graphs_is_measured() -> None:
    graph = read(parsed(LOOP))
    (node,) = [node for node in graph.nodes if node.bodies]
    x = np.array([0.1, 0.2])
    scope = {"x": x, "n": np.array(5), "yes": np.array(True)}
    inputs = [scope[name] for name in node.inputs]
    sizes = sizes_of_noise(node, inputs, single(node, inputs, scope), scope)
    assert all(0 < np.max(size) < 1e-6 for size in sizes)


def test_noise_that_decides_a_shape_leaves_nothing_of_it() -> None:
    model = parsed(
        """agraph (float[2, 2] x) => (float[k] y) {
        s = ReduceSum <keepdims = 0> (x)
        m = Greater (x, s)
        y = Compress (x, m)
        }"""
    )
    model.graph.node[2].input[1] = "flat"
    model.graph.node.insert(2, helper.make_node("Reshape", ["m", "shape"], ["flat"]))
    model.graph.initializer.append(numpy_helper.from_array(np.array([-1]), "shape"))
    x = np.array([[1.0, 0.25], [-0.125, -0.125 - 2.0**-24]], F32)  # a sum that is less than 1 by half an ulp
    exact, runs = monte_carlo(model, (x,), 16, 0)
    assert exact.tolist() == [1.0]
    assert 0 < np.isnan(runs).sum() < 16
