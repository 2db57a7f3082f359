"""The same ONNX model in another form: what the forms change, that the result stays, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from examples.onnx_models import CAME, CASES, FORMS, INTS, OPSETS_OF, model_of, only, values
from onnx import helper, numpy_helper

from harness.conversions.edges import EDGES
from harness.conversions.edges.onnx_forms import OPSETS
from harness.conversions.route import planned

CHANGES: dict[str, Callable[[onnx.ModelProto], None]] = {
    "terse": FORMS.terse,
    "explicit": FORMS.explicit,
    "computed": FORMS.computed,
    "equivalent": FORMS.equivalent,
    "otherwise": FORMS.otherwise,
    "differently": FORMS.differently,
    "otherwise-computed": lambda model: (FORMS.otherwise(model), FORMS.computed(model))[0],
    "differently-computed": lambda model: (FORMS.differently(model), FORMS.computed(model))[0],
    "branches": FORMS.branched,
    "constants": FORMS.constants_made,
    "shapes": FORMS.shaped,
    "open": FORMS.opened,
    "open-hyphens": lambda model: FORMS.opened(model, "size-of-{}"),
    "open-unnamed": lambda model: FORMS.opened(model, ""),
    "narrow": FORMS.narrowed,
    "microsoft": FORMS.microsoft,
    "fields": FORMS.in_fields,
    "defaults": FORMS.by_default,
    "sparse": FORMS.sparsely,
    "functions": FORMS.by_functions,
    "idle": FORMS.idle,
    "open-shapes": lambda model: (FORMS.shaped(model), FORMS.opened(model))[0],
    **{str(opset): lambda model, opset=opset: FORMS.move(model, opset) for opset in (*OPSETS, 22)},
}


FEW_LEVELS = ("four-bits", "two-bits", "weights", "columns", "table", "quantised-product")
"""Cases with quantised constants that four bits hold."""


@pytest.mark.slow(one_in=5)
@pytest.mark.parametrize("form", CHANGES)
@pytest.mark.parametrize("name", CASES)
def test_a_form_returns_the_same(name: str, form: str) -> None:
    if form.isdigit() and int(form) < CAME.get(name, 0):
        return
    nodes, constants = CASES[name]
    model = model_of(nodes, constants, OPSETS_OF.get(name, 20))
    expected = values(model)
    if form == "narrow" and name not in FEW_LEVELS:
        with pytest.raises(NotImplementedError, match="no constant of a few levels"):
            FORMS.narrowed(model)
        return
    stored = [one for one in map(np.asarray, constants.values()) if one.ndim and one.any() and one.dtype.kind != "b"]
    unchanged = not (constants if form == "defaults" else stored)
    if form in ("defaults", "sparse") and unchanged:
        with pytest.raises(NotImplementedError, match="no constant"):
            CHANGES[form](model)
        return
    CHANGES[form](model)
    onnx.checker.check_model(model, full_check=True)
    close = 4e-16 if form == "microsoft" else 0.0  # its rules have steps of their own
    for one, other in zip(expected, values(model), strict=True):
        np.testing.assert_allclose(one, other, rtol=close, atol=0)


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("same", "Slice"),
        ("one-sided", "Slice"),
        ("longer", "Slice"),
        ("joined", "ConcatFromSequence"),
        ("three", "SequenceAt"),
        ("uneven", "SplitToSequence"),
        ("trailing", "LayerNormalization"),
        ("square", "Einsum"),
        ("zeros", "Sum"),
        ("squares", "ReduceSumSquare"),
        ("logarithms", "ReduceLogSum"),
        ("logarithms", "ReduceL1"),
        ("picture", "Squeeze"),
        ("colours", "Transpose"),
        ("pad", "Where"),
        ("attended", "Concat"),
        ("numbers", "Unsqueeze"),
        ("scattered", "Slice"),
    ],
)
def test_it_is_said_otherwise(name: str, made: str) -> None:
    nodes, constants = CASES[name]
    model = model_of(nodes, constants, OPSETS_OF.get(name, 20))
    FORMS.otherwise(model)
    assert made in {node.op_type for node in model.graph.node}


@pytest.mark.parametrize(
    ("name", "kind", "attribute", "value"),
    [
        ("windows", "MaxPool", "auto_pad", b"SAME_LOWER"),
        ("proportion", "Resize", "keep_aspect_ratio_policy", b"not_larger"),
        ("letters", "Einsum", "equation", b"ABCD,DE"),
        ("product", "Einsum", "equation", b"IK,KJ"),
        ("square", "Einsum", "equation", b"...ik,...kj"),
        ("negated", "Xor", "", None),
        ("classes", "OneHot", "axis", 3),
        ("unpooled", "MaxUnpool", "pads", [0, 0, 1, 0]),
        ("attended", "Concat", "axis", 2),
        ("upsample", "Transpose", "perm", [2, 3, 0, 1]),
        ("upsample-linear", "Transpose", "perm", [0, 2, 3, 1]),
        ("joined", "Loop", "", None),
        ("last-rows", "Range", "", None),
        ("levels", "QuantizeLinear", "block_size", 2),
        ("lstm", "LSTM", "activations", [b"Sigmoid", b"Relu", b"Relu", b"Sigmoid", b"Tanh", b"Tanh"]),
        ("spaced", "ConvTranspose", "auto_pad", b"SAME_LOWER"),
        ("patches", "Col2Im", "pads", [0, 1, 0, 0, 0, 1]),
    ],
)
def test_it_is_said_differently(name: str, kind: str, attribute: str, value: object) -> None:
    nodes, constants = CASES[name]
    FORMS.differently(model := model_of(nodes, constants, OPSETS_OF.get(name, 20)))
    found = [FORMS.given(node).get(attribute) for node in model.graph.node if node.op_type == kind]
    assert value in found


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("gelu", "BiasGelu"),
        ("gelu-tanh", "FastGelu"),
        ("swish", "QuickGelu"),
        ("normalised", "SkipLayerNormalization"),
        ("root", "SkipSimplifiedLayerNormalization"),
        ("words", "EmbedLayerNormalization"),
        ("square", "FusedMatMul"),
        ("general", "FusedGemm"),
        ("conv", "FusedConv"),
        ("spread", "ConvTransposeWithDynamicPads"),
        ("weights", "DequantizeLinear"),
        ("numbers", "MatMulIntegerToFloat"),
        ("pooled-bytes", "NhwcMaxPool"),
        ("columns", "MatMulNBits"),
        ("table", "GatherBlockQuantized"),
        ("angles", "RotaryEmbedding"),
        ("heads", "MultiHeadAttention"),
        ("one-way", "MultiHeadAttention"),
        ("came", "MultiHeadAttention"),
        ("eight", "GroupQueryAttention"),
        ("places", "GatherND"),
        ("pad", "Pad"),
        ("squeeze", "ExpandDims"),
    ],
)
def test_it_is_said_by_onnx_runtime_s_own_operators(name: str, made: str) -> None:
    nodes, constants = CASES[name]
    FORMS.microsoft(model := model_of(nodes, constants, OPSETS_OF.get(name, 20)))
    assert made in {node.op_type for node in model.graph.node if node.domain == "com.microsoft"}


def test_a_product_of_bytes_with_a_scale_for_each_column_is_one_node() -> None:
    FORMS.microsoft(model := model_of(*CASES["quantised-product"]))
    assert FORMS.given(only(model, "QLinearMatMul")) == {}
    scale = FORMS.constants_of(model.graph)[only(model, "QLinearMatMul").input[4]]
    assert scale.shape == (2,)


def test_the_shape_of_what_is_unpooled_is_given() -> None:
    FORMS.explicit(model := model_of(*CASES["unpooled"]))
    assert FORMS.constants_of(model.graph)[only(model, "MaxUnpool").input[2]].tolist() == [2, 3, 4, 4]


def test_quantised_constants_are_stored() -> None:
    FORMS.constants_made(model := model_of(*CASES["weights"]))
    assert "QuantizeLinear" not in {node.op_type for node in model.graph.node}
    (made,) = [node for node in model.graph.node if "q" in node.output]
    assert numpy_helper.to_array(made.attribute[0].t).tolist() == [[-4, -3], [-3, -1], [2, 7], [1, 2]]


@pytest.mark.parametrize(
    ("name", "kind", "levels", "zero"),
    [
        ("four-bits", "UINT4", [[2, 0], [3, 2], [4, 6], [6, 9]], [[5, 5]]),
        ("two-bits", "INT2", [[-2, -2], [-1, -1], [0, 0], [1, 1]], -1),
    ],
)
def test_quantised_constants_have_as_few_bits_as_hold_them(name: str, kind: str, levels: object, zero: object) -> None:
    FORMS.narrowed(model := model_of(*CASES[name]))
    node, held = only(model, "DequantizeLinear"), {one.name: one for one in model.graph.initializer}
    found = [held[node.input[place]] for place in (0, 2)]
    assert {one.data_type for one in found} == {getattr(onnx.TensorProto, kind)}
    assert [numpy_helper.to_array(one).astype(int).tolist() for one in found] == [levels, zero]


def test_axes_are_not_named() -> None:
    FORMS.differently(model := model_of(*CASES["every-second"]))
    node, held = only(model, "Slice"), FORMS.constants_of(model.graph)
    far = np.iinfo(np.int64).max
    assert not node.input[3]
    assert [list(held[node.input[place]]) for place in (1, 2, 4)] == [[0, 3, 0, 0], [far, 0, far, far], [1, 1, 1, 2]]
    nodes, constants = CASES["every-second"]
    FORMS.differently(model := model_of(nodes, {**constants, "a": INTS([3, 0])}))
    node, held = only(model, "Slice"), FORMS.constants_of(model.graph)
    assert [held[node.input[place]][0] for place in (1, 2, 4)] == [0, far, -1]


@pytest.mark.parametrize(("scale", "shapes"), [(2.0, [(1,), (4,)]), ([1.0, 2.0, 3.0, 4.0], [(1, 4), (1, 4)])])
def test_scales_broadcast(scale: float | list[float], shapes: list[tuple[int, ...]]) -> None:
    nodes, constants = CASES["normalised"]
    model = model_of(nodes, {**constants, "s": np.full(4, scale, "f4")})
    FORMS.otherwise(model)
    found = {tensor.name: tuple(tensor.dims) for tensor in model.graph.initializer}
    (node,) = [node for node in model.graph.node if node.op_type == "LayerNormalization"]
    assert [found[name] for name in node.input[1:]] == shapes


def test_classes_are_counted_by_a_vector_and_letters_that_follow_left_out() -> None:
    FORMS.otherwise(model := model_of(*CASES["traced"]))
    assert FORMS.given(only(model, "Einsum"))["equation"] == b"abcc"
    FORMS.otherwise(model := model_of(*CASES["classes"]))
    assert FORMS.constants_of(model.graph)[only(model, "OneHot").input[1]].shape == (1,)


def test_exponents_are_whole_numbers() -> None:
    model = model_of(*CASES["power"])
    FORMS.otherwise(model)
    types = {tensor.name: tensor.data_type for tensor in model.graph.initializer}
    assert [types.get(name) for node in model.graph.node for name in node.input[1:]] == [onnx.TensorProto.INT64]


@pytest.mark.parametrize("name", ["same", "one-sided", "longer"])
def test_the_other_side_is_padded(name: str) -> None:
    model = model_of(*CASES[name])
    before = {key: value for key, value in FORMS.given(model.graph.node[0]).items() if "pad" in key}
    FORMS.otherwise(model)
    (window,) = [node for node in model.graph.node if node.op_type in ("MaxPool", "Conv", "ConvTranspose")]
    assert {key: value for key, value in FORMS.given(window).items() if "pad" in key} != before


def test_the_last_operator_stands_in_both_branches() -> None:
    model = model_of(*CASES["square"])
    FORMS.branched(model)
    chosen = only(model, "If")
    assert [FORMS.given(chosen)[name].node[0].op_type for name in ("then_branch", "else_branch")] == ["MatMul"] * 2
    assert "MatMul" not in {node.op_type for node in model.graph.node}


def test_an_operand_becomes_the_attribute_that_it_was() -> None:
    model = model_of(*CASES["reduce"])
    FORMS.move(model, 11)
    assert FORMS.given(only(model, "ReduceSum")) == {"axes": [-1], "keepdims": 0}
    FORMS.move(old := model_of(*CASES["reduce"]), 8)
    assert FORMS.given(only(old, "ReduceSum"))["axes"] == [3], "axes did not count from the end then"
    assert not old.graph.initializer


def test_old_operators_stand_for_new_ones() -> None:
    FORMS.move(flattened := model_of(*CASES["flattened"]), 11)
    assert FORMS.given(only(flattened, "Softmax")) == {}  # axis 1, and all behind it
    FORMS.move(by_sizes := model_of(*CASES["upsample"]), 11)
    assert [list(FORMS.constants_of(by_sizes.graph)[name]) for name in only(by_sizes, "Resize").input[1:3]] == [[], []]
    FORMS.move(resized := model_of(*CASES["upsample"]), 10)
    assert list(FORMS.constants_of(resized.graph)[only(resized, "Resize").input[1]]) == [1, 1, 2, 1.5]
    FORMS.move(upsampled := model_of(*CASES["upsample"]), 8)
    assert FORMS.given(only(upsampled, "Upsample"))["scales"] == [1, 1, 2, 1.5]


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


SAME = {
    "mean": ("ReduceMean", "noop_with_empty_axes", 1),
    "sums": ("CumSum", "exclusive", 1),
    "rows": ("Compress", "axis", 1),
    "one": ("TopK", "sorted", 0),
    "last": ("ArgMax", "select_last_index", 1),
    "places": ("GatherND", "batch_dims", 1),
    "itself": ("Dropout", "seed", 1),
    "conv": ("Conv", "auto_pad", b"SAME_UPPER"),
    "spread": ("ConvTranspose", "output_shape", [7, 7]),
    "cast": ("CastLike", "", None),
    "product": ("Gemm", "transA", None),
    "resize": ("Resize", "axes", [2, 3]),
    "lstm": ("LSTM", "direction", b"reverse"),
    "pool": ("MaxPool", "storage_order", 1),
}


@pytest.mark.parametrize("name", SAME)
def test_what_means_the_same_is_said_in_another_way(name: str) -> None:
    kind, attribute, value = SAME[name]
    model = model_of(*CASES[name])
    FORMS.equivalent(model)
    assert FORMS.given(only(model, kind)).get(attribute) == value


@pytest.mark.parametrize(("name", "kind"), [("counts", "Range"), ("zeros", "ConstantOfShape"), ("sums", "Constant")])
def test_constants_are_made(name: str, kind: str) -> None:
    model = model_of(*CASES[name])
    FORMS.constants_made(model)
    assert kind in {node.op_type for node in model.graph.node}
    assert not [one for one in model.graph.initializer if np.prod(one.dims) <= 64]


def test_a_number_of_another_dtype_is_made_by_a_shape_without_sizes() -> None:
    nodes = [helper.make_node("Cast", ["x"], ["d"], to=onnx.TensorProto.DOUBLE), helper.make_node("Add", "dz", "y")]
    expected = values(model := model_of(nodes, {"z": np.float64(1.5)}))
    FORMS.constants_made(model)
    assert only(model, "ConstantOfShape").output == ["z"]
    onnx.checker.check_model(model, full_check=True)
    np.testing.assert_array_equal(values(model), expected)


@pytest.mark.parametrize("name", ["reshape", "slice", "pad", "topk", "sizes", "rows"])
def test_sizes_are_computed_from_shapes(name: str) -> None:
    nodes, constants = CASES[name]
    FORMS.shaped(model := model_of(nodes, constants))
    made = {output for node in model.graph.node for output in node.output}
    (last,) = [node for node in model.graph.node if node.op_type == nodes[-1].op_type and "y" in node.output]
    assert set(last.input[1:]) & made
    assert {node.op_type for node in model.graph.node} & {"Shape", "Size"}


def test_sizes_are_open() -> None:
    FORMS.opened(model := model_of(*CASES["reshape"]))
    (given,) = model.graph.input
    assert [dim.dim_param for dim in given.type.tensor_type.shape.dim] == ["n2", "n3", "n4", "n4"]
    (returned,) = model.graph.output
    assert not any(dim.HasField("dim_value") for dim in returned.type.tensor_type.shape.dim)


def test_operands_that_are_absent_are_given() -> None:
    model = model_of(*CASES["lstm"])
    FORMS.explicit(model)
    assert len([name for name in only(model, "LSTM").input if name]) == 8
    assert FORMS.given(only(model, "LSTM"))["activations"] == [b"Sigmoid", b"Tanh", b"Tanh"]
    FORMS.explicit(conv := model_of(*CASES["conv"]))
    assert FORMS.given(only(conv, "Conv"))["kernel_shape"] == [3, 3]
    FORMS.terse(conv)
    assert FORMS.given(only(conv, "Conv")) == {"pads": [1, 1, 1, 1]}


def test_forms_stand_in_front_of_importers_in_the_plan() -> None:
    names = [route.name for route in planned()]
    assert "onnx/onnx-terse/ort-all" in names
    assert "onnx/onnx-opset-11/tvm-onnx/tvm" in names
    assert "onnx/ort-optimised/openvino-onnx/openvino" in names
    assert not [route for route in planned() if sum(edge.form for edge in route.edges) > 1]
    assert all(EDGES[name].form for name in EDGES if name.startswith("onnx-opset-"))
