"""How an ONNX model holds its constants, and nodes that call functions of the model's own."""

from __future__ import annotations

import numpy as np
import pytest
from examples.onnx_models import CASES, FORMS, model_of, only
from ml_dtypes import bfloat16
from onnx import helper, numpy_helper


@pytest.mark.parametrize(
    ("dtype", "field"),
    [
        ("float32", "float_data"),
        ("float64", "double_data"),
        ("float16", "int32_data"),
        ("bfloat16", "int32_data"),
        ("bool", "int32_data"),
        ("int8", "int32_data"),
        ("uint16", "int32_data"),
        ("uint32", "uint64_data"),
        ("uint64", "uint64_data"),
        ("int64", "int64_data"),
    ],
)
def test_numbers_stand_in_the_fields_of_their_types(dtype: str, field: str) -> None:
    numbers = np.array([0, 1, 1], bfloat16 if dtype == "bfloat16" else dtype)
    held = helper.make_node("Constant", [], ["w"], value=numpy_helper.from_array(numbers))
    FORMS.in_fields(model := model_of([held, helper.make_node("Identity", ["w"], ["y"])], {"v": numbers}))
    for tensor in (model.graph.initializer[0], FORMS.given(only(model, "Constant"))["value"]):
        assert (tensor.raw_data, len(getattr(tensor, field))) == (b"", 3)
        np.testing.assert_array_equal(numpy_helper.to_array(tensor), numbers)


def test_constants_are_defaults_of_inputs() -> None:
    FORMS.by_default(model := model_of(*CASES["normalised"]))
    assert {one.name for one in model.graph.initializer} == {one.name for one in model.graph.input} - {"x"}


def test_zeros_are_not_stored() -> None:
    table = np.array([[0, -0.0], [2, 0], [0, 3], [np.nan, 0]], "f4")
    FORMS.sparsely(model := model_of([helper.make_node("MatMul", ["x", "w"], ["y"])], {"w": table}))
    (attribute,) = only(model, "Constant").attribute
    values, places = attribute.sparse_tensor.values, attribute.sparse_tensor.indices
    assert numpy_helper.to_array(places).tolist() == [[0, 1], [1, 0], [2, 1], [3, 0]]
    np.testing.assert_array_equal(numpy_helper.to_array(values), [-0.0, 2, 3, np.nan])


def test_nodes_call_functions_with_their_attributes() -> None:
    FORMS.by_functions(model := model_of(*CASES["flattened"]))
    assert [node.op_type for node in model.graph.node] == ["ReduceMax0", "Last"]
    body = {one.name: one.node[0] for one in model.functions}
    assert (body["Softmax1"].op_type, body["Softmax1"].attribute[0].ref_attr_name) == ("Softmax", "axis")
    assert (body["Last"].op_type, FORMS.given(only(model, "Last"))) == ("Softmax1", {"axis": 3})


@pytest.mark.parametrize(
    ("kind", "made", "constants"),
    [
        ("Sign", "Squeeze", [[]]),
        ("Neg", "Unsqueeze", [[]]),
        ("Floor", "Slice", [[], [], []]),
        ("Tanh", "Expand", [[1]]),
    ],
)
def test_what_does_nothing_stands_before_a_node(kind: str, made: str, constants: list[list[int]]) -> None:
    FORMS.idle(model := model_of([helper.make_node(kind, ["x"], ["y"])], {}))
    before, node = model.graph.node
    assert (before.op_type, before.input[0], node.op_type, node.input[0]) == (made, "x", kind, before.output[0])
    held = FORMS.constants_of(model.graph)
    assert [held[name].tolist() for name in before.input[1:]] == constants
