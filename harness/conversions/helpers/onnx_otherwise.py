"""The same ONNX model once more, by other means than in onnx_equals.py: windows of the turned image, sequences, results
beside the usual one, what counts from the other end. Read as text, behind onnx_around.py."""


def otherwise(model):
    """The model by what OTHERWISE says."""
    changed(model, OTHERWISE)


def turned_window(node, around):
    """Of the turned image, where its first side is not padded as its last one is."""
    image, values = around.shape(node.input[0]), given(node)
    weights = around.shape(node.input[1]) if len(node.input) > 1 else None
    kernel = values.get("kernel_shape", list(weights[2:]) if weights is not None else None)
    if image is None or kernel is None or len(node.output) > 1 or 0 in image or "output_shape" in values:
        return
    rank, spread = len(kernel), node.op_type == "ConvTranspose"
    strides, dilations = (values.get(name, [1] * rank) for name in ("strides", "dilations"))
    reach, sizes = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)], image[2:]
    rule, pads = values.get("auto_pad", b"NOTSET"), list(values.get("pads", [0] * 2 * rank))
    if rule in (b"SAME_UPPER", b"SAME_LOWER") and not spread:
        total = [(-(-n // s) - 1) * s + r - n for n, s, r in zip(sizes, strides, reach)]
        if min(total) < 0 or not any(one % 2 for one in total):
            return
        put(node, "auto_pad", "SAME_LOWER" if rule == b"SAME_UPPER" else "SAME_UPPER")
    else:
        first, last, more = pads[:rank], pads[rank:], values.get("output_padding", [0] * rank)
        whole = [(n + b + e - r) % s for n, b, e, r, s in zip(sizes, first, last, reach, strides)]
        last = [e - o for e, o in zip(last, more)]
        if rule != b"NOTSET" or first == last or min(last) < 0 or (any(whole) and not spread):
            return
        take(node, "output_padding")
        put(node, "pads", [*last, *first])
    ends = (-1, np.iinfo(np.int64).min)
    turn = [
        around.const(numbers, "int64") for numbers in (*([end] * rank for end in ends), range(2, 2 + rank), [-1] * rank)
    ]
    for place in (0, 1) if node.op_type.startswith("Conv") else (0,):
        node.input[place] = around.op("Slice", node.input[place], *turn)
    around.then(node, "Slice", *turn)


def in_sequence(node, around):
    """Joined as a sequence, of which the last but one is put in later; where all are inputs, counted from the end."""
    if str(around.types.get(node.output[0])) == "bfloat16":
        return  # sequences have none
    parts = list(node.input)
    held = around.op("SequenceConstruct", *parts[:-2], parts[-1])
    if len(parts) > 1:
        inputs = {one.name for one in around.graph.input}
        held = around.op(
            "SequenceInsert", held, parts[-2], around.const(-1 if inputs >= set(parts) else len(parts) - 2, "int64")
        )
    node.op_type = "ConcatFromSequence"
    node.input[:] = [held]


def parts_of_sequence(node, around):
    """Parts of a sequence: by their size, where all but the last are alike; of three every second one counted from the
    end."""
    sizes = around.constants.get(node.input[1]) if len(node.input) > 1 else None
    if sizes is None or not sizes.size or (sizes < 1).any() or str(around.types.get(node.input[0])) == "bfloat16":
        return
    names, held = list(node.output), around.name()
    alike = (sizes[:-1] == sizes[0]).all() and sizes[-1] <= sizes[0]
    node.op_type = "SplitToSequence"
    put(node, "keepdims", 0)  # which nobody asks where it is said how
    node.input[1] = around.const(sizes[0] if alike else sizes, "int64")
    node.output[:] = [held]
    for place, name in enumerate(names):
        at = around.const(place - len(names) if place % 2 and len(names) > 2 else place, "int64")
        if name:
            around.behind.append(helper.make_node("SequenceAt", [held, at], [name]))


def mean_beside(node, around):
    """The mean that a layer's normalisation returns beside its result, where that is what the model returns."""
    if not is_returned(node, around):
        return
    shape, axes = around.shape(node.input[0]), around.constants.get(node.input[1]) if len(node.input) > 1 else None
    if shape is None or axes is None or not axes.size or around.types.get(node.input[0]) != np.dtype("float32"):
        return
    places = sorted(int(axis) % len(shape) for axis in axes)
    if 0 in shape or places != list(range(places[0], len(shape))):
        return
    if not given(node).get("keepdims", 1):
        around.then(node, "Squeeze", around.const(places, "int64"))
    node.op_type = "LayerNormalization"
    del node.attribute[:]
    put(node, "axis", places[0])
    node.input[1] = around.const(np.ones(shape[places[0] :]), "float32")
    node.output.insert(0, around.name())


def of_another_type(node, around):
    """Of the shape of a tensor of another type."""
    element = given(node).get("dtype") or helper.np_dtype_to_tensor_dtype(around.types[node.input[0]])
    other = onnx.TensorProto.INT32 if element == onnx.TensorProto.FLOAT else onnx.TensorProto.FLOAT
    node.input[0] = around.op("Cast", node.input[0], to=other)
    put(node, "dtype", element)


def shortest(node, around):
    """Sizes that the operand has are 1, and those in front are left out."""
    shape, sizes = around.shape(node.input[0]), around.constants.get(node.input[1])
    if shape is None or sizes is None or 0 in sizes:
        return
    whole = [1] * (len(sizes) - len(shape)) + list(shape)
    asked = [1 if size == own else int(size) for size, own in zip(sizes, whole[len(whole) - len(sizes) :])]
    if len(sizes) <= len(shape):
        while asked and asked[0] == 1:
            del asked[0]
    node.input[1] = around.const(asked, "int64")


def sizes_copied(node, around):
    """0 for sizes that stay, -1 for the last one that does not."""
    shape, sizes = around.shape(node.input[0]), around.constants.get(node.input[1])
    if shape is None or sizes is None or 0 in shape or (sizes < 1).any():
        return
    asked = [0 if place < len(shape) and size == shape[place] else int(size) for place, size in enumerate(sizes)]
    if any(asked):
        asked[max(place for place, size in enumerate(asked) if size)] = -1
    node.input[1] = around.const(asked, "int64")
    take(node, "allowzero")


def axes_from_end(node, around):
    """Axes counted from the other end."""
    place = {"Slice": 3, "Pad": 3}.get(node.op_type, 1)
    shape = around.shape(node.input[0])
    axes = around.constants.get(node.input[place]) if len(node.input) > place and node.input[place] else None
    if shape is None or axes is None:
        return
    rank = len(shape) + (axes.size if node.op_type == "Unsqueeze" else 0)
    node.input[place] = around.const([axis - rank if axis >= 0 else axis + rank for axis in axes.tolist()], "int64")


def open_slice(node, around):
    """From a place that is counted from the end, to an end that is far beyond it."""
    shape, held = around.shape(node.input[0]), [around.constants.get(name) for name in node.input[1:]]
    if shape is None or len(held) < 3 or any(one is None for one in held) or (len(held) > 3 and (held[3] < 1).any()):
        return
    starts, ends, axes = (one.astype("int64") for one in held[:3])
    sizes = np.array(shape)[axes]
    node.input[1] = around.const(np.where((starts >= 0) & (starts < sizes), starts - sizes, starts))
    node.input[2] = around.const(np.where(ends >= sizes, np.iinfo(np.int64).max, ends))


def as_sum(node, around):
    """Of two tensors as of any number of them, where it is no part of a pattern."""
    if around.types.get(node.output[0]) in WIDE and is_returned(node, around):
        node.op_type = "Sum"


def in_letters(node, around):
    """A product of matrices by the letters of their axes, with spaces."""
    shapes = [around.shape(name) for name in node.input]
    if None in shapes or around.types.get(node.input[0]) not in (np.dtype("float32"), np.dtype("float64")):
        return
    if all(len(shape) == 2 for shape in shapes):
        node.op_type = "Einsum"
        put(node, "equation", "ik, kj -> ij")
    elif all(len(shape) > 2 for shape in shapes):
        node.op_type = "Einsum"
        put(node, "equation", "...ik, ...kj -> ...ij")


def result_left_out(node, around):
    """The letters of the result are not said."""
    equation = given(node)["equation"].decode().replace(" ", "")
    if (shorter := without_result(equation)) != equation:
        put(node, "equation", shorter)


def reduced_nowhere(node, around):
    """Over no axes a reduction is what it does to each element (ONNX 18)."""
    if node.op_type == "Mul" and node.input[0] != node.input[1]:
        return
    if around.types.get(node.output[0]) == np.float32:
        node.op_type = {"Mul": "ReduceSumSquare", "Log": "ReduceLogSum", "Abs": "ReduceL1"}[node.op_type]
        del node.input[1:]
        put(node, "noop_with_empty_axes", 1)


def whole_exponent(node, around):
    """An exponent of whole numbers is of their type (ONNX 13 lets it be any)."""
    array, base = around.constants.get(node.input[1]), around.types.get(node.input[0])
    if array is None or base not in (np.dtype("float32"), np.dtype("float64")) or array.dtype.kind != "f":
        return
    if array.size and np.all(np.abs(array) < 2**20) and np.all(array == np.round(array)):
        node.input[1] = around.const(array, "int64" if array.ndim else "int32")


def without_front(node, around):
    """Of an image alone: without the axes in front that have one place and stay so."""
    shape, size = around.shape(node.input[0]), around.shape(node.output[0])
    if shape is None or size is None or tuple(shape[:2]) != (1, 1) or tuple(size[:2]) != (1, 1) or len(node.input) < 4:
        return
    sizes = around.constants.get(node.input[3])
    if sizes is None or len(sizes) != len(shape) or given(node).get("axes"):
        return
    front = around.const([0, 1], "int64")
    node.input[0] = around.op("Squeeze", node.input[0], front)
    node.input[3] = around.const(sizes[2:], "int64")
    around.then(node, "Unsqueeze", front)


def channels_last(node, around):
    """Of an image whose channels come last, as other frameworks' do, by cubic pieces."""
    shape, values = around.shape(node.input[0]), given(node)
    place = next((place for place in (3, 2) if len(node.input) > place and node.input[place]), None)
    numbers = around.constants.get(node.input[place]) if place else None
    if shape is None or numbers is None or len(numbers) != len(shape) or values.get("mode") != b"cubic":
        return
    if shape[1] < 2 or numbers[1] != (shape[1] if place == 3 else 1) or "axes" in values:
        return
    turned_image(node, around, place, numbers, [0, *range(2, len(shape)), 1])


def places_of_a_part(node, around):
    """Of data that are longer on another axis than the places, which reach a part of them."""
    shape, axis = around.shape(node.input[0]), given(node).get("axis", 0)
    if shape is not None and len(shape) > 1 and 0 not in shape:
        other = len(shape) - 1 if axis % len(shape) == 0 else 0
        node.input[0] = around.op("Concat", node.input[0], node.input[0], axis=other)


def writes_in_a_part(node, around):
    """Into data that are longer on another axis than the places, the last one there is; what lies beyond is cut."""
    shape, axis = around.shape(node.input[0]), given(node).get("axis", 0)
    if shape is None or len(shape) < 2 or 0 in shape:
        return
    other = len(shape) - (2 if axis % len(shape) == len(shape) - 1 else 1)
    node.input[0] = around.op("Concat", node.input[0], node.input[0], axis=other)
    around.then(node, "Slice", *(around.const([number], "int64") for number in (0, shape[other], other)))


def fill_computed(node, around):
    """What is filled in is chosen at run time from two that are the same, where how much of it is a constant."""
    array = around.constants.get(node.input[2]) if len(node.input) > 2 and node.input[2] else None
    if array is None or given(node).get("mode", b"constant") != b"constant" or not array.any():
        return
    if helper.np_dtype_to_tensor_dtype(array.dtype) in WHERE:
        total = around.op("ReduceSum", around.op("Cast", node.input[0], to=onnx.TensorProto.FLOAT), keepdims=0)
        above = around.op("Greater", total, around.const(0, "float32"))
        node.input[2] = around.op("Where", above, node.input[2], node.input[2])


def stretched(node, around):
    """Scale and bias of one number, where all are the same; where none is so, both with a dimension of 1 in front."""
    shape, held = around.shape(node.input[0]), [around.constants.get(name) for name in node.input[1:]]
    given_here = {place: array for place, array in enumerate(held, 1) if array is not None and array.size}
    alike = {place: array for place, array in given_here.items() if np.all(array == array.ravel()[0])}
    if shape is None or any(array.ndim >= len(shape) for array in given_here.values()):
        return
    for place, array in (alike or given_here).items():
        node.input[place] = around.const(array.ravel()[:1] if alike else array[None])


def with_past(node, around):
    """Beside keys that came before, which the mask hides."""
    shapes = [around.shape(name) for name in node.input[:4]]
    if None in shapes or len(node.input) > 4 or len(node.output) > 1 or any(len(shape) != 4 for shape in shapes[:3]):
        return
    if len(shapes) > 3 and (shapes[3][-1] != shapes[1][2] or len(shapes[3]) < 2):
        return
    element = around.types[node.input[0]]
    (_, _, queries, _), (batch, heads, keys, size) = shapes[:2]
    if len(shapes) < 4:
        hidden = np.arange(2 + keys) >= 2
        mask = around.const(np.broadcast_to(hidden, (queries, 2 + keys)))
    else:
        kind = around.types[node.input[3]]
        none = np.zeros((), kind) if kind == np.bool_ else np.asarray(-np.inf, kind)
        mask = around.op("Concat", around.const(np.broadcast_to(none, (*shapes[3][:-1], 2))), node.input[3], axis=-1)
    past = [around.const(np.ones((batch, heads, 2, one)), element) for one in (size, shapes[2][3])]
    del node.input[3:]
    node.input.extend([mask, *past])
    node.output.extend([around.name(), around.name()])


def depth_in_line(node, around):
    """How many classes, as a vector of one number."""
    depth = around.constants.get(node.input[1])
    if depth is not None and not depth.ndim:
        node.input[1] = around.const(depth[None])


def of_a_row(node, around):
    """A matrix of one row as a vector."""
    shapes = [around.shape(name) for name in node.input[:2]]
    if None not in shapes and [len(one) for one in shapes] == [2, 2] and shapes[0][0] == 1 and len(node.input) == 2:
        axis = around.const([0], "int64")
        node.input[0] = around.op("Squeeze", node.input[0], axis)
        around.then(node, "Unsqueeze", axis)


OTHERWISE = (
    ({"Mul", "Log", "Abs"}, 18, reduced_nowhere),
    ({"LayerNormalization"}, 17, stretched),
    ({"Pow"}, 13, whole_exponent),
    ({"Resize"}, 13, channels_last),
    ({"Resize"}, 13, without_front),
    ({"Conv", "ConvTranspose", *POOLS}, 13, turned_window),
    ({"Concat"}, 13, in_sequence),
    ({"Split"}, 13, parts_of_sequence),
    ({"ReduceMean"}, 18, mean_beside),
    ({"EyeLike"}, 13, of_another_type),
    ({"Expand"}, 13, shortest),
    ({"Reshape"}, 14, sizes_copied),
    ({"Slice"}, 13, open_slice),
    ({*REDUCTIONS, "ReduceSumSquare", "Squeeze", "Unsqueeze", "Slice", "Pad"}, 18, axes_from_end),
    ({"Pad"}, 13, fill_computed),
    ({"GatherElements"}, 13, places_of_a_part),
    ({"ScatterElements"}, 13, writes_in_a_part),
    ({"Add"}, 13, as_sum),
    ({"Einsum"}, 12, result_left_out),
    ({"MatMul"}, 13, in_letters),
    ({"OneHot"}, 13, depth_in_line),
    ({"MatMulInteger"}, 13, of_a_row),
    ({"Attention"}, 23, with_past),
)
"""As RULES."""


def branched(model):
    """The model with its last operator in both branches of a condition that holds."""
    graph, types, shapes = model.graph, types_of(model), ranks_of(model)
    last = next((one for one in reversed(graph.node) if len(one.output) == 1 and one.op_type != "Constant"), None)
    first = next((one.name for one in graph.input if None not in shapes.get(one.name, [None])), None)
    if last is None or first is None or types.get(last.output[0]) is None:
        return
    name, bodies = last.output[0], []
    element = helper.np_dtype_to_tensor_dtype(types[name])
    for branch in ("then_branch", "else_branch"):
        inner = onnx.NodeProto()
        inner.CopyFrom(last)
        inner.output[0] = f"{name}.{branch}"
        result = helper.make_tensor_value_info(inner.output[0], element, shapes.get(name))
        bodies.append(helper.make_graph([inner], branch, [], [result]))
    size = numpy_helper.from_array(np.array(np.prod(shapes[first], dtype="int64")), "branches.size")
    graph.initializer.append(size)
    chosen = [
        helper.make_node("Size", [first], ["branches.elements"]),
        helper.make_node("Equal", ["branches.elements", size.name], ["branches.all"]),
        helper.make_node("If", ["branches.all"], [name], **{body.name: body for body in bodies}),
    ]
    nodes = [one for node in graph.node for one in (chosen if name in node.output else [node])]
    del graph.node[:]
    graph.node.extend(nodes)
    onnx.checker.check_model(model, full_check=True)
