"""The same ONNX model once more, by nodes that do more than is asked, of which what is asked is taken: windows as many
as the image needs, slices of all axes, masks that are too short. Read as text, behind onnx_around.py."""


def differently(model):
    """The model by what DIFFERENTLY says."""
    masked = any(len(node.input) > 3 and node.input[3] for node in model.graph.node if node.op_type == "Attention")
    if masked or any(node.op_type == "QuantizeLinear" for node in model.graph.node):
        newest = next(one for one in model.opset_import if one.domain in ("", "ai.onnx"))
        # the first ones whose masks may be short, and whose scales may be of blocks
        newest.version = max(newest.version, 24 if masked else 21)
        model.ir_version = helper.find_min_ir_version_for(model.opset_import, ignore_unknown=True)
    changed(model, DIFFERENTLY)


def all_axes(node, around):
    """Of all axes, which need not be named then; to the end is as far as numbers go; what is nothing ends before it
    begins, or runs back to the far end."""
    shape, held = around.shape(node.input[0]), [around.constants.get(name) for name in node.input[1:]]
    if shape is None or len(held) < 2 or any(one is None for one in held):
        return
    starts, ends = (one.astype("int64") for one in held[:2])
    axes = held[2] if len(held) > 2 else np.arange(len(starts))
    steps = held[3] if len(held) > 3 else np.ones(len(starts), "int64")
    far = np.iinfo(np.int64).max
    rows = dict.fromkeys(range(len(shape)), (0, far, 1))
    for axis, start, end, step in zip(axes % len(shape), starts.tolist(), ends.tolist(), steps.tolist()):
        size = shape[axis]
        begin, stop, _ = slice(start, end, step).indices(size)
        if step > 0 and begin >= stop and size and axis % 2:
            start, end = size, 0
        elif step > 0 and begin >= stop and size:
            start, end, step = 0, far, -1
        elif step > 0 and end >= size:
            end = far
        rows[axis] = start, end, step
    columns = [around.const(column, "int64") for column in zip(*(rows[axis] for axis in range(len(shape))))]
    node.input[1:] = [columns[0], columns[1], "", columns[2]]


def more_windows(node, around):
    """As many windows as auto_pad gives, of which those that were there are taken."""
    sizes, result = sizes_of(node, around), around.shape(node.output[0])
    if sizes is None or result is None or len(node.output) > 1 or 0 in sizes[0]:
        return
    image, kernel, strides, dilations, pads = sizes
    rank, counted = len(kernel), given(node).get("count_include_pad")
    if counted and (any(pads) or given(node).get("ceil_mode")):
        return  # what is counted beside the image are its own paddings
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
    many = [-(-n // s) for n, s in zip(image, strides)]
    total = [(count - 1) * s + r - n for count, s, r, n in zip(many, strides, reach, image)]
    if min(total) < 0 or not any(total):
        return
    for rule, first in (("SAME_LOWER", [-(-one // 2) for one in total]), ("SAME_UPPER", [one // 2 for one in total])):
        moved = [begin - pad for begin, pad in zip(first, pads)]
        starts = [one // s for one, s in zip(moved, strides)]
        ends = [start + size for start, size in zip(starts, result[2:])]
        if min(moved) < 0 or any(one % s for one, s in zip(moved, strides)) or any(map(int.__gt__, ends, many)):
            continue
        for name in ("pads", "ceil_mode"):
            take(node, name)
        put(node, "kernel_shape", list(kernel))
        put(node, "auto_pad", rule)
        if starts != [0] * rank or ends != many:
            cut = [around.const(numbers, "int64") for numbers in (starts, ends, range(2, 2 + rank))]
            around.then(node, "Slice", *cut)
        return


def other_aspect(node, around):
    """Sizes in proportion, of which all but the first are asked greater, or smaller."""
    shape, values = around.shape(node.input[0]), given(node)
    sizes = around.constants.get(node.input[3]) if len(node.input) > 3 and node.input[3] else None
    if shape is None or sizes is None or 0 in shape or {"keep_aspect_ratio_policy", "axes"} & set(values):
        return
    axes = [axis for axis, size in enumerate(shape) if sizes[axis] != size]
    if len(axes) < 2 or any(int(sizes[axis]) * shape[axes[0]] != int(sizes[axes[0]]) * shape[axis] for axis in axes):
        return
    asked = [int(sizes[axis]) for axis in axes]
    smaller = asked[0] % 2 and min(asked) > 1
    put(node, "axes", axes)
    put(node, "keep_aspect_ratio_policy", "not_smaller" if smaller else "not_larger")
    node.input[3] = around.const([asked[0], *(one + (-1 if smaller else 2) for one in asked[1:])], "int64")


def image_in_front(node, around):
    """Of the image's axes in front of the others, or between them."""
    shape, values = around.shape(node.input[0]), given(node)
    places = [place for place in (2, 3) if len(node.input) > place and node.input[place]]
    numbers = around.constants.get(node.input[places[0]]) if len(places) == 1 else None
    if shape is None or len(shape) < 3 or numbers is None or len(numbers) != len(shape):
        return
    mode = values.get("mode", b"nearest")
    crops = values.get("coordinate_transformation_mode") == b"tf_crop_and_resize"
    if crops or {"axes", "keep_aspect_ratio_policy", "antialias"} & set(values) or mode == b"cubic":
        return
    image = list(range(2, len(shape)))
    order = [*image, 0, 1] if mode == b"nearest" else [0, *image, 1]
    turned_image(node, around, places[0], numbers, order)


def of_a_range(node, around):
    """Of places one after the other, counted from the end, as a range whose end is known at run time alone."""
    shape, places = around.shape(node.input[0]), around.constants.get(node.input[1])
    if shape is None or places is None or places.ndim != 1 or not places.size:
        return
    size = shape[given(node).get("axis", 0)]
    first, step = int(places[0]), int(places[1] - places[0]) if places.size > 1 else 1
    if step == 0 or size == 0 or (np.diff(places) != step).any() or places.min() < 0 or places.max() >= size:
        return
    ends = [
        around.const(np.array(one, places.dtype)) for one in (first - size, first - size + step * places.size, step)
    ]
    total = around.op("Size", node.input[0])
    ends[1] = around.op("Where", around.op("Greater", total, around.const(0, "int64")), ends[1], ends[1])
    node.input[1] = around.op("Range", *ends)


def in_loop(node, around):
    """Joined as a sequence to which a loop adds the last one. Not where parts are computed: importers without loops
    would be asked none of what is joined in the end (roll, say)."""
    computed = {name for one in around.graph.node for name in one.output}
    if computed.intersection(node.input) or not is_returned(node, around):
        return
    if str(around.types.get(node.output[0])) == "bfloat16" or len(node.input) < 2:
        return
    element = helper.np_dtype_to_tensor_dtype(around.types[node.output[0]])
    parts, once, held = list(node.input), around.name(), around.name()
    sequence, truth = (helper.make_tensor_sequence_value_info, onnx.TensorProto.BOOL)
    names = {name: f"{held}.{name}" for name in ("number", "on", "so", "before", "behind")}
    body = helper.make_graph(
        [
            helper.make_node("SequenceInsert", [names["before"], parts[-1]], [names["behind"]]),
            helper.make_node("Identity", [names["on"]], [names["so"]]),
        ],
        once,
        [
            helper.make_tensor_value_info(names["number"], onnx.TensorProto.INT64, []),
            helper.make_tensor_value_info(names["on"], truth, []),
            sequence(names["before"], element, None),
        ],
        [helper.make_tensor_value_info(names["so"], truth, []), sequence(names["behind"], element, None)],
    )
    first = around.op("SequenceConstruct", *parts[:-1])
    many, truly = around.const(1, "int64"), around.const(True)
    node.input[:] = [around.op("Loop", many, truly, first, body=body)]
    node.op_type = "ConcatFromSequence"


def sized_by_stride(node, around):
    """A transposed convolution whose result is as many times as long as its operand as its stride says."""
    sizes, result, values = sizes_of(node, around), around.shape(node.output[0]), given(node)
    if sizes is None or result is None or "output_shape" in values or 0 in result:
        return
    image, kernel, strides, dilations, pads = sizes
    total = [(k - 1) * d + 1 - s for k, d, s in zip(kernel, dilations, strides)]
    # of other sizes onnx infers another length than its text says
    if any(n % s for n, s in zip(image, strides)) or [n * s for n, s in zip(image, strides)] != list(result[2:]):
        return
    if min(total) < 0 or any(values.get("output_padding", [])):
        return
    first, last = [one // 2 for one in total], [one - one // 2 for one in total]
    for rule, parts in (("SAME_UPPER", first + last), ("SAME_LOWER", last + first)):
        if list(pads) == parts:
            take(node, "pads")
            put(node, "auto_pad", rule)
            return


def in_a_volume(node, around):
    """Patches of an image as those of a volume of one layer."""
    held, values = [around.constants.get(name) for name in node.input[1:3]], given(node)
    if any(one is None or one.size != 2 for one in held):
        return
    for name in {"strides", "dilations"} & set(values):
        put(node, name, [1, *values[name]])
    if "pads" in values:
        put(node, "pads", [0, *values["pads"][:2], 0, *values["pads"][2:]])
    node.input[1:3] = [around.const([1, *one], "int64") for one in held]
    around.then(node, "Squeeze", around.const([2], "int64"))


def short_mask(node, around):
    """One more key, which the mask does not reach: what it lacks does not count (opset 24)."""
    shapes = [around.shape(name) for name in node.input[:4]]
    if len(shapes) < 4 or None in shapes or len(node.input) > 4 or len(node.output) > 1 or given(node).get("is_causal"):
        return
    if shapes[3][-1] < 2 or any(len(shape) != 4 for shape in shapes[:3]):
        return  # a mask of one column is repeated
    for place in (1, 2):
        batch, heads, _, size = shapes[place]
        more = around.const(np.zeros((batch, heads, 1, size)), around.types[node.input[place]])
        node.input[place] = around.op("Concat", node.input[place], more, axis=2)


def capital_letters(node, around):
    """Axes named by capitals; a result that is left out, where it says what the letters say."""
    put(node, "equation", without_result(given(node)["equation"].decode().replace(" ", "")).upper())


def in_capitals(node, around):
    """A product of two matrices by capitals; of stacks of such without the result's letters."""
    shapes = [around.shape(name) for name in node.input]
    if None in shapes or around.types.get(node.input[0]) not in (np.dtype("float32"), np.dtype("float64")):
        return
    if len(shapes[0]) == len(shapes[1]) > 1:
        node.op_type = "Einsum"
        put(node, "equation", "IK,KJ" if len(shapes[0]) == 2 else "...ik,...kj")


def by_dropped(node, around):
    """What is not so is so exclusively of what nothing drops."""
    shape = around.shape(node.input[0])
    if shape is None:
        return
    number = around.op("Cast", node.input[0], to=onnx.TensorProto.FLOAT)
    around.op("Dropout", number)
    around.before[-1].output.append(around.name())
    node.op_type = "Xor"
    node.input.append(around.before[-1].output[1])


def wider_window(node, around):
    """Of windows that are one longer, which paddings take away again."""
    values = given(node)
    kernel = list(values["kernel_shape"])
    if any(values.get("pads", [])) or len(node.input) > 2:
        return
    put(node, "kernel_shape", [kernel[0] + 1, *kernel[1:]])
    put(node, "pads", [0] * len(kernel) + [1] + [0] * (len(kernel) - 1))


def axis_from_end(node, around):
    """An axis counted from the other end. OneHot has one of its result; that of Flatten may be the end itself."""
    shape, last = around.shape(node.input[0]), around.constants.get(node.input[1]) if len(node.input) > 1 else None
    rank = None if shape is None else len(shape) + (node.op_type == "OneHot")
    if rank and node.op_type == "CumSum" and last is not None:
        axis = last.item()
        node.input[1] = around.const(np.full_like(last, axis - rank if axis >= 0 else axis + rank))
    elif rank and node.op_type != "CumSum":
        axis = given(node).get("axis", defaults(schema_of(node, around.opset)).get("axis"))
        if axis is not None and axis < rank:
            put(node, "axis", axis - rank if axis >= 0 else axis + rank)


COUNTED_AXIS = {
    "Compress",
    "CumSum",
    "Flatten",
    "Gather",
    "Hardmax",
    "LayerNormalization",
    "LpNormalization",
    "OneHot",
    "QuantizeLinear",
    "DequantizeLinear",
    "RMSNormalization",
    "Unique",
}


def of_blocks(node, around):
    """Scales and zero points by blocks of two places of an axis, the last one perhaps shorter; zeros are left out."""
    shape, held = around.shape(node.input[0]), [around.constants.get(name) for name in node.input[1:]]
    if not shape or 0 in shape or len(held) != 2 or None in [one if one is None else 0 for one in held]:
        return
    own = given(node).get("axis", 1) % len(shape) if held[0].ndim else None
    axes = [axis for axis in range(len(shape)) if axis != own]
    if not axes or set(given(node)) - {"axis"}:
        return
    parts = [one.reshape([-1 if axis == own else 1 for axis in range(len(shape))]) for one in held]
    blocks = [np.broadcast_to(one, shape).take(range(0, shape[axes[-1]], 2), axes[-1]) for one in parts]
    node.input[1:] = [around.const(one) for one in blocks]
    if held[1].dtype == np.uint8 and not held[1].any():
        del node.input[2]
    put(node, "axis", axes[-1])
    put(node, "block_size", 2)


OTHER_WAY = {"RNN": [b"Relu"], "GRU": [b"Sigmoid", b"Relu"], "LSTM": [b"Sigmoid", b"Relu", b"Relu"]}
"""Activations of the way that is not asked for."""


def both_ways(node, around):
    """From both ends, of which the way from the last one is asked for; the other one has activations of its own."""
    values, kind = given(node), node.op_type
    if values.get("layout") or "activation_alpha" in values:
        return
    run_back(node, around)
    if given(node).get("direction") != b"reverse":
        return
    for place in (1, 2, 3, 5, 6, 7):  # weights and states; 4 has the lengths
        if len(node.input) > place and node.input[place]:
            node.input[place] = around.op("Concat", node.input[place], node.input[place], axis=0)
    put(node, "direction", "bidirectional")
    put(node, "activations", [*OTHER_WAY[kind], *values.get("activations", [one.encode() for one in GATES[kind][1]])])
    for place, name in enumerate(node.output):
        if name:
            node.output[place] = around.name()
            ends = [around.const([number], "int64") for number in (1, 2, 0 if place else 1)]
            around.behind.insert(0, helper.make_node("Slice", [node.output[place], *ends], [name]))


DIFFERENTLY = (
    (set(GATES), 13, both_ways),
    ({"QuantizeLinear", "DequantizeLinear"}, 21, of_blocks),
    (COUNTED_AXIS, 13, axis_from_end),
    ({"Slice"}, 13, all_axes),
    ({"Conv", *POOLS}, 13, more_windows),
    ({"ConvTranspose"}, 11, sized_by_stride),
    ({"Col2Im"}, 18, in_a_volume),
    ({"Resize"}, 18, other_aspect),
    ({"Resize"}, 13, image_in_front),
    ({"Attention"}, 24, short_mask),
    ({"Gather"}, 11, of_a_range),
    ({"Concat"}, 13, in_loop),
    ({"Einsum"}, 13, capital_letters),
    ({"MatMul"}, 13, in_capitals),
    ({"Not"}, 13, by_dropped),
    ({"MaxUnpool"}, 11, wider_window),
)
"""As RULES."""
