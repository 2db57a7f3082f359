"""The same ONNX model by operators of ONNX Runtime's own domain, com.microsoft (docs/ContribOperators.md), as exporters
and optimisers write them. Read as text, behind onnx_constants.py."""

OWN_DOMAIN = "com.microsoft"
SINGLE, HALF = np.dtype("float32"), np.dtype("float16")


def microsoft(model):
    """The model by what MICROSOFT says."""
    model.opset_import.append(helper.make_opsetid(OWN_DOMAIN, 1))
    changed(model, MICROSOFT)


def become(node, kind, *operands, domain=OWN_DOMAIN, **attributes):
    """The node of that operator, with these operands (None: left out) and attributes, and the outputs that it had."""
    node.op_type, node.domain = kind, domain
    node.input[:] = ["" if one is None else one for one in operands]
    del node.attribute[:]
    for name, value in attributes.items():
        put(node, name, value)


def type_of(node, around, place=0):
    return around.types.get(node.input[place])


def nothing(around, shape, dtype):
    """What changes nothing that it is added to: negative zeros."""
    return around.const(np.full(shape, -0.0), dtype)


def maker(around, name, kind):
    """The node of that operator that makes a value, or None."""
    return next((one for one in around.graph.node if name in one.output and one.op_type == kind), None)


def gelu(node, around):
    """With a bias of nothing, where the last axis has an even number of places."""
    shape = around.shape(node.input[0])
    if type_of(node, around) != SINGLE or not shape or 0 in shape:
        return
    x, bias = node.input[0], nothing(around, shape[-1:], SINGLE) if shape[-1] % 2 == 0 else None
    if given(node).get("approximate") == b"tanh":
        become(node, "FastGelu", *([x, bias] if bias else [x]))
    else:
        become(node, *(["BiasGelu", x, bias] if bias else ["Gelu", x]))


def swish(node, around):
    if type_of(node, around) == SINGLE:
        become(node, "QuickGelu", node.input[0], alpha=given(node).get("alpha", 1.0))


def normalised_sum(node, around):
    """Normalised along the last axis, of a sum with a tensor of nothing: of two or three axes, to which others are
    joined; with a bias of nothing, too, where there are two."""
    values, shapes = given(node), [around.shape(name) for name in node.input if name]
    if None in shapes or type_of(node, around) not in (SINGLE, HALF) or any(0 in one for one in shapes):
        return
    shape, kind = shapes[0], type_of(node, around)
    if values.get("axis", -1) % len(shape) != len(shape) - 1 or len(shape) < 2 or len(node.output) > 1:
        return
    if values.get("stash_type", 1) != helper.np_dtype_to_tensor_dtype(kind) and kind != HALF:
        return
    if any(one != shape[-1:] for one in shapes[1:]):
        return
    x, scale, *rest = node.input
    if len(shape) > 3:
        x = around.op("Reshape", x, around.const([shape[0], -1, shape[-1]], "int64"))
        around.then(node, "Reshape", around.const(shape, "int64"))
    inner = shape if len(shape) < 4 else (shape[0], int(np.prod(shape[1:-1])), shape[-1])
    skip, bias = nothing(around, inner, kind), nothing(around, shape[-1:], kind) if len(shape) == 2 else None
    epsilon = float(np.float32(values.get("epsilon", 1e-5)))
    if node.op_type == "RMSNormalization":
        become(node, "SkipSimplifiedLayerNormalization", x, skip, scale, *([bias] if bias else []), epsilon=epsilon)
    else:
        shift = rest[0] if rest and rest[0] else None
        zero = around.constants.get(shift) if shift else None
        if zero is not None and not zero.any() and not np.signbit(zero).any():
            shift = None  # 0 is what its absence says
        ends = [shift, bias] if bias else [shift] if shift else []
        become(node, "SkipLayerNormalization", x, skip, scale, *ends, epsilon=epsilon)


def embedded(node, around):
    """Rows of a table are the sum of embeddings that a model's first layer normalises, with nothing for places."""
    table, shape = around.shape(node.input[0]), around.shape(node.input[1])
    if table is None or shape is None or len(table) != 2 or len(shape) not in (1, 2) or 0 in (*table, *shape):
        return
    if given(node).get("axis", 0) % 2 or type_of(node, around) != SINGLE or len(node.output) > 1:
        return
    words = around.op("Cast", node.input[1], to=onnx.TensorProto.INT32)
    zero, size = around.const(0, "int32"), around.const(table[0], "int32")
    words = around.op("Where", around.op("Less", words, zero), around.op("Add", words, size), words)
    if len(shape) == 1:
        words = around.op("Unsqueeze", words, around.const([0], "int64"))
        around.then(node, "Squeeze", around.const([0], "int64"))
    places = nothing(around, (shape[-1], table[1]), SINGLE)
    ones, zeros = (around.const(np.full(table[1], one), SINGLE) for one in (1, 0))
    epsilon = {"epsilon": 1e-5} if len(shape) == 1 else {}  # nobody asks what is normalised
    become(node, "EmbedLayerNormalization", words, None, node.input[0], places, None, ones, zeros, **epsilon)
    result = node.output[0]
    node.output[:] = [around.name(), around.name(), result]


def remembered(node, around):
    """What it multiplies, whatever becomes of it."""
    around.factors[node.output[0]] = list(node.input)


def product(node, around):
    """Of operands whose last two axes were swapped before."""
    shapes = [around.shape(name) for name in node.input]
    if None in shapes or type_of(node, around) != SINGLE or any(len(one) < 2 or 0 in one for one in shapes):
        return
    orders = [[*range(len(one) - 2), len(one) - 1, len(one) - 2] for one in shapes]
    operands = [around.op("Transpose", name, perm=order) for name, order in zip(node.input, orders)]
    become(node, "FusedMatMul", *operands, transA=1, transB=1)


def fused_product(node, around):
    """With an activation that changes nothing: one has to be there."""
    if type_of(node, around) == SINGLE and 0 not in (around.shape(node.output[0]) or (0,)):
        values = given(node)
        become(node, "FusedGemm", *node.input, activation="LeakyRelu", activation_alpha=1.0, **values)


def fused_conv(node, around):
    """With nothing added to its result."""
    result, values = around.shape(node.output[0]), given(node)
    if (
        result is None
        or 0 in result
        or type_of(node, around) != SINGLE
        or values.get("auto_pad", b"NOTSET") != b"NOTSET"
    ):
        return
    more = [node.input[2] if len(node.input) > 2 else "", nothing(around, result, SINGLE)]
    become(node, "FusedConv", *node.input[:2], *more, **values)


def spread(node, around):
    """Its pads as an operand."""
    values, image = given(node), around.shape(node.input[0])
    if type_of(node, around) != SINGLE or image is None or 0 in image or len(image) != 4:
        return
    if "output_shape" in values or values.pop("auto_pad", b"NOTSET") != b"NOTSET":
        return
    pads = around.const(values.pop("pads", [0] * 4), "int64")
    bias = [node.input[2]] if len(node.input) > 2 and node.input[2] else []
    become(node, "ConvTransposeWithDynamicPads", *node.input[:2], pads, *bias, **values)


def quantised(node, around):
    """To bytes and back, as before ONNX had 16 bits."""
    values, kind = given(node), type_of(node, around, 2 if len(node.input) > 2 and node.input[2] else 0)
    if len(node.input) < 3 or kind not in (np.dtype("int8"), np.dtype("uint8")) or set(values) - {"axis"}:
        return
    if type_of(node, around, 1) == SINGLE:
        become(node, node.op_type, *node.input, **values)


def in_whole_numbers(node, around):
    """Matrices of bytes with a scale of 1, so small that single precision holds the sums."""
    shape = around.shape(node.input[0])
    if shape is None or not 0 < shape[-1] <= 256 or len(node.input) != 2 or len(shape) < 2:
        return
    if 0 in (around.shape(node.output[0]) or (0,)):
        return
    if (type_of(node, around), type_of(node, around, 1)) == (np.dtype("int8"), np.dtype("uint8")):
        return
    one = around.const(1.0, SINGLE)
    become(node, "MatMulIntegerToFloat", *node.input, one, one)
    around.then(node, "Cast")
    put(around.behind[0], "to", onnx.TensorProto.INT32)


def channels_last_pool(node, around):
    """Of bytes, whose channels come last."""
    shape = around.shape(node.input[0])
    if shape is None or len(shape) != 4 or len(node.output) > 1 or 0 in shape:
        return
    if type_of(node, around) not in (np.dtype("int8"), np.dtype("uint8")):
        return
    values = {name: value for name, value in given(node).items() if name != "storage_order"}
    become(node, "NhwcMaxPool", around.op("Transpose", node.input[0], perm=[0, 2, 3, 1]), **values)
    around.then(node, "Transpose", perm=[0, 3, 1, 2])


def packed_rows(around, name):
    """Of a matrix that is a constant which goes through QuantizeLinear and back: its bytes, scales and zero points, and
    the axis that has one for each place (None: one for all); None where it is no such matrix."""
    back = maker(around, name, "DequantizeLinear")
    there = maker(around, back.input[0], "QuantizeLinear") if back is not None else None
    if there is None or len(back.input) < 3 or list(there.input[1:]) != list(back.input[1:]):
        return None
    held, (scale, point) = around.constants.get(there.input[0]), (around.constants.get(one) for one in back.input[1:3])
    if (
        held is None
        or held.ndim != 2
        or scale is None
        or point is None
        or scale.dtype != SINGLE
        or held.dtype != SINGLE
    ):
        return None
    made = stored(there, around.constants)
    if made.op_type != "Constant":
        return None
    levels = numpy_helper.to_array(made.attribute[0].t).astype("int64")
    axis = given(there).get("axis", 1) % 2 if scale.ndim else None
    shift = 128 if point.dtype == np.int8 else 0
    return (
        (levels + shift).astype("uint8"),
        np.ravel(scale),
        (np.ravel(point).astype("int64") + shift).astype("uint8"),
        axis,
    )


def in_blocks(rows, scale, point, axis):
    """Rows in blocks of 16 bytes, with a scale and a zero point each, where axis 0 or none has scales of its own."""
    count, size = rows.shape
    blocks = -(-size // 16)
    padded = np.zeros((count, 16 * blocks), "uint8")
    padded[:, :size] = rows
    parts = [np.repeat(np.broadcast_to(one, count)[:, None], blocks, 1) for one in (scale, point)]
    return padded, blocks, *parts


def weights_in_blocks(node, around):
    """By a matrix of bytes, whose columns have one scale each, or all of them."""
    shape = around.shape(node.input[0])
    found = packed_rows(around, node.input[1])
    if found is None or found[3] == 0 or shape is None or len(shape) < 2 or type_of(node, around) != SINGLE:
        return
    levels, scale, point, axis = found
    (k, n), (padded, blocks, scales, points) = levels.shape, in_blocks(levels.T, scale, point, axis)
    held = around.const(padded.reshape(n, blocks, 16)), around.const(scales.ravel()), around.const(points.ravel())
    become(node, "MatMulNBits", node.input[0], *held, K=k, N=n, bits=8, block_size=16)


def rows_in_blocks(node, around):
    """Of a table of bytes, whose rows have one scale each, or all of them."""
    found = packed_rows(around, node.input[0])
    if found is None or found[3] == 1 or given(node).get("axis", 0) % 2:
        return
    levels, scale, point, axis = found
    if levels.shape[1] % 16:
        return
    padded, _, scales, points = in_blocks(levels, scale, point, axis)
    held = around.const(padded), node.input[1], around.const(scales), around.const(points)
    become(node, "GatherBlockQuantized", *held, bits=8, block_size=16, quantize_axis=1, gather_axis=0)


def quantised_product(node, around):
    """Of two matrices of bytes, one with a scale for each column perhaps, quantised again."""
    between = next((one for one in around.graph.node if node.input[0] in one.output), None)
    if between is None or between.op_type not in ("MatMul", "FusedMatMul", "MatMulNBits") or len(node.input) < 3:
        return
    asked = around.factors.get(node.input[0])
    sides = [maker(around, name, "DequantizeLinear") for name in asked or ()]
    if len(sides) != 2 or None in sides or any(len(one.input) < 3 for one in sides) or given(node).get("axis", 1) != 1:
        return
    shapes = [around.shape(one.input[1]) for one in (*sides, node)]
    if shapes[0] != () or shapes[2] != () or shapes[1] is None or len(around.shape(asked[1]) or ()) != 2:
        return
    if shapes[1] and given(sides[1]).get("axis", 1) % 2 == 0:
        return
    operands = [name for one in sides for name in one.input]
    become(node, "QLinearMatMul", *operands, *node.input[1:3], domain="")


def same_operator(node, around):
    """Operators that ONNX took over later, with the attributes that they had."""
    kind, values, types = node.op_type, given(node), OLDER[node.op_type]
    shape = around.shape(node.input[0])
    if type_of(node, around) not in types or shape is None or 0 in shape or 0 in (around.shape(node.output[0]) or ()):
        return
    if kind == "GatherND" and values.get("batch_dims"):
        return
    if kind == "GridSample":
        values["mode"] = {b"linear": "bilinear", b"cubic": "bicubic"}.get(values.get("mode", b"linear"), "nearest")
        if len(shape) != 4:
            return
    if kind == "Pad":
        if len(node.input) > 3 and node.input[3]:
            return
        if values.get("mode", b"constant") == b"wrap":
            return
    if kind == "Unsqueeze":
        axes = around.constants.get(node.input[1])
        if axes is not None and axes.size == 1:
            become(node, "ExpandDims", node.input[0], around.const(int(axes.ravel()[0]), "int32"))
        return
    become(node, kind, *node.input, **values)


NUMBERS = {np.dtype(name) for name in ("float32", "float64", "int64")}
OLDER = {
    "GatherND": {*NUMBERS, np.dtype("int32"), np.dtype("bool")},
    "GridSample": {SINGLE},
    "Pad": {SINGLE},
    "Range": {*NUMBERS, np.dtype("int32")},
    "Trilu": NUMBERS,
    "Unsqueeze": {*NUMBERS, np.dtype("int32"), np.dtype("bool")},
}
"""Operators, and dtypes of which ONNX Runtime has both."""
