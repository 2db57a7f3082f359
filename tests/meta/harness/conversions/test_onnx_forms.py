"""The same ONNX model in another form: what the forms change, that the result stays, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from harness.conversions.edges import EDGES
from harness.conversions.helpers import onnx_forms
from harness.conversions.route import planned
from oracles.onnx.evaluate import evaluate

FORMS: ModuleType = onnx_forms
CHANGES: dict[str, Callable[[onnx.ModelProto], None]] = {
    "terse": FORMS.terse,
    "explicit": FORMS.explicit,
    "computed": FORMS.computed,
    **{str(opset): lambda model, opset=opset: FORMS.move(model, opset) for opset in (8, 10, 11, 12, 13, 17, 22, 24)},
}


def model_of(nodes: list[onnx.NodeProto], constants: dict[str, object], opset: int = 20) -> onnx.ModelProto:
    """Of one float32 input of shape (2, 3, 4, 4) and the outputs of the last node."""
    held = [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()]
    given = [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, (2, 3, 4, 4))]
    ends = [onnx.ValueInfoProto(name=name) for name in nodes[-1].output]
    graph = helper.make_graph(nodes, "net", given, ends, held)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    typed = onnx.shape_inference.infer_shapes(model)
    known = {value.name: value for value in typed.graph.value_info} | {one.name: one for one in typed.graph.output}
    del model.graph.output[:]
    model.graph.output.extend(known[name] for name in nodes[-1].output)
    onnx.checker.check_model(model, full_check=True)
    return model


INTS = np.array
CASES = {
    "reduce": ([helper.make_node("ReduceSum", ["x", "a"], ["y"], keepdims=0)], {"a": INTS([-1])}),
    "mean": ([helper.make_node("ReduceMean", ["x", "a"], ["y"], keepdims=1)], {"a": INTS([0, 1, 2, 3])}),
    "squeeze": (
        [helper.make_node("Unsqueeze", ["x", "a"], ["u"]), helper.make_node("Squeeze", ["u", "a"], ["y"])],
        {"a": INTS([-5])},
    ),
    "split": ([helper.make_node("Split", ["x"], ["y", "z"], axis=-1, num_outputs=2)], {}),
    "sizes": ([helper.make_node("Split", ["x", "s"], ["y", "z"], axis=1)], {"s": INTS([1, 2])}),
    "clip": ([helper.make_node("Clip", ["x", "", "h"], ["y"])], {"h": np.float32(0.5)}),
    "slice": ([helper.make_node("Slice", ["x", "s", "e"], ["y"])], {"s": INTS([0, 1]), "e": INTS([2, 3])}),
    "steps": (
        [helper.make_node("Slice", ["x", "s", "e", "a", "t"], ["y"])],
        {"s": INTS([1, 0]), "e": INTS([3, 4]), "a": INTS([-1, 2]), "t": INTS([1, 1])},
    ),
    "pad": (
        [helper.make_node("Pad", ["x", "p", "v"], ["y"])],
        {"p": INTS([0, 0, 1, 0, 0, 0, 0, 2]), "v": np.float32(3)},
    ),
    "topk": ([helper.make_node("TopK", ["x", "k"], ["y", "i"], axis=-1)], {"k": INTS([2])}),
    "softmax": ([helper.make_node("Softmax", ["x"], ["y"])], {}),
    "reshape": ([helper.make_node("Reshape", ["x", "s"], ["y"], allowzero=1)], {"s": INTS([6, 16])}),
    "pool": ([helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[2, 2], dilations=[1, 1])], {}),
}


def values(model: onnx.ModelProto) -> list[np.ndarray]:
    """In float64, by the reference of given models."""
    x = np.random.default_rng(5).normal(size=(2, 3, 4, 4)).astype("f4")
    return [np.asarray(array) for array in evaluate(model, {"x": x})]


@pytest.mark.parametrize("form", CHANGES)
@pytest.mark.parametrize("name", CASES)
def test_a_form_returns_the_same(name: str, form: str) -> None:
    nodes, constants = CASES[name]
    model = model_of(nodes, constants)
    expected = values(model)
    CHANGES[form](model)
    onnx.checker.check_model(model, full_check=True)
    for one, other in zip(expected, values(model), strict=True):
        np.testing.assert_array_equal(one, other)


def only(model: onnx.ModelProto, kind: str) -> onnx.NodeProto:
    (node,) = [node for node in model.graph.node if node.op_type == kind]
    return node


def test_an_operand_becomes_the_attribute_that_it_was() -> None:
    model = model_of(*CASES["reduce"])
    FORMS.move(model, 11)
    assert FORMS.given(only(model, "ReduceSum")) == {"axes": [-1], "keepdims": 0}
    FORMS.move(old := model_of(*CASES["reduce"]), 8)
    assert FORMS.given(only(old, "ReduceSum"))["axes"] == [3], "axes did not count from the end then"
    assert not old.graph.initializer


def test_defaults_are_left_out_or_given() -> None:
    model = model_of(*CASES["mean"])
    FORMS.explicit(model)
    assert FORMS.given(only(model, "ReduceMean")) == {"keepdims": 1, "noop_with_empty_axes": 0}
    FORMS.terse(model)
    assert FORMS.given(only(model, "ReduceMean")) == {}
    assert list(only(model, "ReduceMean").input) == ["x"], "all axes are what their absence says"


def test_what_is_computed_is_no_constant() -> None:
    model = model_of(*CASES["reshape"])
    FORMS.computed(model)
    (made,) = [node for node in model.graph.node if node.output[0] == only(model, "Reshape").input[1]]
    assert made.op_type == "Where"


@pytest.mark.parametrize(
    ("node", "constants", "opset", "why"),
    [
        (helper.make_node("Softmax", ["x"], ["y"], axis=1), {}, 12, "it would flatten the axes behind"),
        (helper.make_node("HardSwish", ["x"], ["y"]), {}, 13, "it came later"),
        (helper.make_node("Reshape", ["x", "s"], ["y"]), {"s": INTS([0, -1])}, 13, ""),
        (helper.make_node("Cast", ["x"], ["y"], to=onnx.TensorProto.FLOAT8E4M3FN, saturate=0), {}, 18, "saturate"),
    ],
)
def test_what_has_no_older_form_is_refused(node: onnx.NodeProto, constants: dict, opset: int, why: str) -> None:
    model = model_of([node], constants)
    if not why:
        FORMS.move(model, opset)
        assert FORMS.opset_of(model) == opset
        return
    with pytest.raises(NotImplementedError, match=f"{node.op_type} has no such form in opset {opset}: {why}"):
        FORMS.move(model, opset)


def test_forms_stand_in_front_of_importers_in_the_plan() -> None:
    names = [route.name for route in planned()]
    assert "onnx/onnx-terse/ort-all" in names
    assert "onnx/onnx-opset-11/tvm-onnx/tvm" in names
    assert not [route for route in planned() if sum(edge.form for edge in route.edges) > 1]
    assert all(EDGES[name].form for name in EDGES if name.startswith("onnx-opset-"))
