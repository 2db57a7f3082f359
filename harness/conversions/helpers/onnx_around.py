"""The same by other attributes, with operators before and behind that make up for it. Read as text, behind
onnx_equals.py."""


def sizes_kept(node, around):
    """Axes that stay with one element, which are taken away behind it."""
    values = given(node)
    if "axis" in schema_of(node, around.opset).attributes:
        axes = np.array([values.get("axis", 0)])
    else:
        axes = around.constants.get(node.input[1]) if len(node.input) > 1 else None
    if axes is not None and axes.size and not values.get("keepdims", 1):
        put(node, "keepdims", 1)
        around.then(node, "Squeeze", around.const(axes, "int64"))


def in_equal_parts(node, around):
    """By their number: all alike but for the last one, which has what is left."""
    sizes = around.constants.get(node.input[1]) if len(node.input) > 1 else None
    if sizes is None or len(sizes) != len(node.output) or not sizes.size or sizes[0] < 1:
        return
    whole = -(-int(sizes.sum()) // len(sizes))
    rest = int(sizes.sum()) - whole * (len(sizes) - 1)
    if rest > 0 and list(sizes) == [whole] * (len(sizes) - 1) + [rest]:
        del node.input[1:]
        put(node, "num_outputs", len(sizes))


def other_axes(node, around):
    """Sequences along the first axis, where they were along the second one."""
    shape, values = around.shape(node.input[0]), given(node)
    if shape is not None and (values.get("time_axis", 0), values.get("batch_axis", 1)) == (1, 0):
        order = [1, 0, *range(2, len(shape))]
        node.input[0] = around.op("Transpose", node.input[0], perm=order)
        del node.attribute[:]
        around.then(node, "Transpose", perm=order)


def scaled_tanh(node, around):
    """The hyperbolic tangent with two factors of 1."""
    values, ways = given(node), around.shape(node.input[1])
    if ways is None:
        return
    usual = [name.encode() for name in GATES[node.op_type][1]] * ways[0]
    names = [b"ScaledTanh" if name == b"Tanh" else name for name in values.get("activations", usual)]
    if b"ScaledTanh" in names and "activation_alpha" not in values:
        put(node, "activations", names)
        for name in ("activation_alpha", "activation_beta"):
            put(node, name, [1.0] * names.count(b"ScaledTanh"))


def flat_row(node, around):
    """The elements of all axes are those of one."""
    shape = around.shape(node.input[0])
    if shape is not None and len(shape) != 1 and "axis" not in given(node):
        node.input[0] = around.op("Reshape", node.input[0], around.const([-1], "int64"))
        put(node, "axis", 0)


def float_places(node, around):
    """Places and their number as floating numbers, where the values are such."""
    if around.types.get(node.input[2]) == np.dtype("float32"):
        for place in (0, 1):
            node.input[place] = around.op("Cast", node.input[place], to=onnx.TensorProto.FLOAT)


def scores_unused(node, around):
    """In which state the scores are returned does not matter where they are not; single precision is a better one."""
    if len(node.output) < 4:
        put(node, "qk_matmul_output_mode", 1)
    if around.types.get(node.input[0]) in (np.dtype("float16"), np.dtype("float32")):
        put(node, "softmax_precision", onnx.TensorProto.FLOAT)


def all_turned(node, around):
    """How much of each vector is turned."""
    shape = around.shape(node.input[0])
    if shape is not None and len(shape) == 4 and not given(node).get("rotary_embedding_dim"):
        put(node, "rotary_embedding_dim", shape[-1])


def turned_image(node, around, place, numbers, order):
    """Of an image whose axes stand in another order, and so do the numbers of the operand at that place."""
    node.input[0] = around.op("Transpose", node.input[0], perm=order)
    node.input[place] = around.const(numbers[order])
    around.then(node, "Transpose", perm=[order.index(axis) for axis in range(len(order))])


def without_result(equation):
    """Where the letters of the result are those that stand once, in order, they need not be said."""
    left, arrow, result = equation.partition("->")
    letters = [one for one in left if one.isalpha()]
    usual = "..." * ("..." in left) + "".join(sorted(one for one in letters if letters.count(one) == 1))
    return left if arrow and result == usual else equation


def is_returned(node, around):
    """Is its result one of the model's?"""
    returned = {one.name for one in around.graph.output}
    ends = {one.input[0] for one in around.graph.node if one.op_type == "Identity" and one.output[0] in returned}
    return node.output[0] in ends | returned


def same_aspect(node, around):
    """Sizes that are in proportion already."""
    shape, values = around.shape(node.input[0]), given(node)
    sizes = around.constants.get(node.input[3]) if len(node.input) > 3 and node.input[3] else None
    if shape is None or sizes is None or 0 in shape or "keep_aspect_ratio_policy" in values:
        return
    old = [shape[axis] for axis in values.get("axes", range(len(shape)))]
    if all(int(new) * old[0] == int(sizes[0]) * size for size, new in zip(old, sizes)):
        put(node, "keep_aspect_ratio_policy", "not_smaller")


RULES = (
    ({*REDUCTIONS, "ReduceSumSquare", "ArgMax", "ArgMin"}, 18, sizes_kept),
    ({"Split"}, 18, in_equal_parts),
    ({"ReverseSequence"}, 13, other_axes),
    (set(GATES), 13, scaled_tanh),
    ({"Unique"}, 13, flat_row),
    ({"OneHot"}, 13, float_places),
    ({"Attention"}, 23, scores_unused),
    ({"RotaryEmbedding"}, 23, all_turned),
    ({"Resize"}, 18, same_aspect),
    *RULES,
)
