"""The same ONNX model in another opset. Read as text, behind onnx_forms.py; the program of an edge carries both."""

OPSETS = (8, 9, 10, 11, 12, 13, 14, 17, 18, 21, 23, 24, 26)
"""Of almost every operator each version since opset 7 is that of one of these, or of 20, in which drawn graphs are
written (23 with attention)."""


def refuse(node, opset, why):
    raise NotImplementedError(f"{node.op_type} has no such form in opset {opset}: {why}")


def as_attribute(node, place, name, constants, opset):
    """Operand number `place`, which was an attribute once."""
    if len(node.input) > place and node.input[place]:
        array = constants.get(node.input[place])
        if array is None:
            refuse(node, opset, f"{name} is no constant")
        put(node, name, array.tolist())
        if len(node.input) > place + 1:
            node.input[place] = ""
        else:
            del node.input[place]


FROM = {
    **{("Reduce" + kind, 1): (18, "axes") for kind in ("Max", "Min", "Mean", "Prod", "L1", "L2")},
    **{("Reduce" + kind, 1): (18, "axes") for kind in ("LogSum", "LogSumExp", "SumSquare")},
    **dict.fromkeys((("ReduceSum", 1), ("Squeeze", 1), ("Unsqueeze", 1)), (13, "axes")),
    ("Split", 1): (13, "split"),
    ("Clip", 2): (11, "max"),
    ("Clip", 1): (11, "min"),
    ("Slice", 3): (10, "axes"),
    ("Slice", 2): (10, "ends"),
    ("Slice", 1): (10, "starts"),
    ("Pad", 2): (11, "value"),
    ("Pad", 1): (11, "pads"),
    ("TopK", 1): (10, "k"),
    ("DFT", 2): (20, "axis"),
}
"""Operand -> since which opset it is one, and the attribute that it was before. The last ones of an operator first."""

COUNTED = {
    ("axis", name): 11
    for name in ("Concat", "Gather", "Flatten", "ArgMax", "ArgMin", "Split", "TopK", "Softmax", "LogSoftmax", "OneHot")
} | {("axes", name): 11 for name in ("Squeeze", "Unsqueeze", "Slice", *{one for one, _ in FROM if "Reduce" in one})}
"""Attributes that count from the end since this opset only."""

NEW_VALUES = {
    ("Pad", "mode", "wrap"): 19,
    ("ScatterElements", "reduction", "max"): 18,
    ("ScatterElements", "reduction", "min"): 18,
    ("ScatterND", "reduction", "max"): 18,
    ("ScatterND", "reduction", "min"): 18,
    ("Resize", "coordinate_transformation_mode", "half_pixel_symmetric"): 19,
}
CHANGED = {"RoiAlign": 16, "GroupNormalization": 21, "OneHot": 11}
"""Operators whose meaning, or demanded operands, were other ones before this opset."""

OLD_NAMES = {("GridSample", "mode", "linear"): (20, "bilinear"), ("GridSample", "mode", "cubic"): (20, "bicubic")}
"""What a value of an attribute was called before this opset."""


def move(model, opset):
    """The model in another opset of ONNX. Newer ones have every form that these nodes have. Raises NotImplementedError
    where an operator, an attribute or an operand that is no constant has no older form."""
    before, shapes = opset_of(model), ranks_of(model)
    for graph, node in standard(model.graph):
        if opset < before:
            aged(graph, node, before, opset, constants_of(graph), shapes)
    for one in model.opset_import:
        if one.domain in ("", "ai.onnx"):
            one.version = opset
    model.ir_version = helper.find_min_ir_version_for(model.opset_import, ignore_unknown=True)
    if opset < before:
        used = {name for _, node in standard(model.graph) for name in node.input}
        unused = [one for one in model.graph.initializer if one.name not in used]
        for tensor in unused:
            if tensor.name not in {one.name for one in model.graph.output}:
                model.graph.initializer.remove(tensor)
        if model.ir_version < 4:  # then each initializer is an input, too
            model.ir_version = 4
    constant_nodes(model.graph, opset)
    try:
        onnx.checker.check_model(model, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        raise NotImplementedError(f"no such form in opset {opset}: {str(error).splitlines()[0][:200]}") from error


def constant_nodes(graph, opset):
    """Small constants are nodes, as exporters write them; of floating numbers alone before opset 9."""
    asked, constants = {one.name for one in (*graph.output, *graph.input)}, constants_of(graph)
    kinds = "f" if opset < 9 else "fiub"
    small = [one for one in graph.initializer if one.name in constants and one.name not in asked]
    small = [one for one in small if constants[one.name].dtype.kind in kinds]
    made = [helper.make_node("Constant", [], [one.name], value=one) for one in small]
    for tensor in small:
        graph.initializer.remove(tensor)
    nodes = list(graph.node)
    del graph.node[:]
    graph.node.extend([*made, *nodes])


def aged(graph, node, before, opset, constants, shapes):
    """One node in an older opset."""
    if node.op_type == "Resize" and opset < 13:
        resized(graph, node, opset, constants, shapes)
    kind = node.op_type
    if opset < CHANGED.get(kind, 0):
        refuse(node, opset, "it was another operator")
    if not any(one.name == kind and one.since_version <= opset for one in HISTORY if one.domain == ""):
        refuse(node, opset, "it came later")
    shape = shapes.get(node.input[0]) if node.input else None
    if kind == "Slice" and opset < 10 and len(node.input) > 4:
        steps = constants.get(node.input[4])
        if steps is None or (steps != 1).any():
            refuse(node, opset, "steps")
        del node.input[4:]
    if kind == "Split" and len(node.input) < 2:
        equal_parts(node, opset, shape)
    for (name, place), (since, attribute) in FROM.items():
        if name == kind and opset < since:
            as_attribute(node, place, attribute, constants, opset)
            if attribute in ("max", "min", "value", "k", "axis") and attribute in given(node):
                value = given(node)[attribute]
                put(node, attribute, value[0] if isinstance(value, list) else value)
    if kind == "DFT" and opset < 20 and "axis" not in given(node):
        put(node, "axis", len(shape) - 2 if shape is not None else refuse(node, opset, "a rank that is not known"))
    if kind in ("Softmax", "LogSoftmax", "Hardmax") and opset < 13:
        axis = given(node).get("axis", -1)
        if shape is None or any(size != 1 for size in shape[axis % len(shape) + 1 :]):
            refuse(node, opset, "it would flatten the axes behind")
        axis %= len(shape)
        while axis and shape[axis - 1] == 1:  # what stands behind the first axis is flattened
            axis -= 1
        put(node, "axis", axis)
        if axis == 1:
            take(node, "axis")
    if kind == "Reshape" and opset < 14 and given(node).get("allowzero"):
        if 0 in constants.get(node.input[1], [0]):
            refuse(node, opset, "allowzero")
        take(node, "allowzero")
    if kind in ("Max", "Min", "Mean", "Sum") and opset < 8:
        refuse(node, opset, "no broadcasting")
    while node.input and not node.input[-1]:
        del node.input[-1]
    then = defs.get_schema(kind, opset, "")
    stated = defaults(defs.get_schema(kind, before, ""))
    for name, value in given(node).items():
        from_end = isinstance(value, (int, list)) and opset < COUNTED.get((name, kind), 0)
        if from_end and min(value if isinstance(value, list) else [value], default=0) < 0:
            rank = len(shape) if shape is not None else refuse(node, opset, "a rank that is not known")
            rank += len(value) if kind == "Unsqueeze" else 0
            put(node, name, [one % rank for one in value] if isinstance(value, list) else value % rank)
        text = value.decode() if isinstance(value, bytes) else value
        if isinstance(text, str) and opset < NEW_VALUES.get((kind, name, text), 0):
            refuse(node, opset, f"{name}={text}")
        since, old = OLD_NAMES.get((kind, name, text) if isinstance(text, str) else (), (0, text))
        if opset < since:
            put(node, name, old)
        if name not in then.attributes:
            ones = name in ("dilations", "strides") and set(value) == {1}
            if not ones and (name not in stated or stated[name] != value):
                refuse(node, opset, name)
            take(node, name)
    if kind == "BatchNormalization" and len(node.output) > 1:
        refuse(node, opset, "training")


def resized(graph, node, opset, constants, shapes):
    """Resize in an opset before 13: with empty operands for those that are absent, or in opset 10 and before with
    scales alone, by which each place takes what stands before it (those of Upsample are constants, and none is less
    than 1)."""
    operands, values = [*node.input, "", "", ""][:4], given(node)

    def constant(place, array):
        name = f"form.{node.output[0]}.{place}"
        graph.initializer.append(numpy_helper.from_array(array, name))
        return name

    if opset >= 11:
        node.input[:] = [
            operands[0],
            *(operands[k] or constant(k, np.zeros(0, "float32")) for k in (1, 2)),
            operands[3],
        ]
        return
    shape, scales = shapes.get(operands[0]), constants.get(operands[2])
    if operands[3] and operands[3] in constants and shape and None not in shape and 0 not in shape:
        scales = (constants[operands[3]] / np.array(shape)).astype("float32")
    mode, nearest = values.get("mode", b"nearest"), values.get("nearest_mode", b"round_prefer_floor")
    asymmetric = values.get("coordinate_transformation_mode") == b"asymmetric"
    plain = mode in (b"nearest", b"linear") and not set(values) & {"antialias", "axes", "keep_aspect_ratio_policy"}
    if not asymmetric or not plain or (mode == b"nearest" and nearest != b"floor"):
        refuse(node, opset, "it goes by other places")
    if scales is None or len(scales) != len(shape or ()) or (scales < 1).any():
        refuse(node, opset, "scales that are not known, or less than 1")
    for name in [name for name in values if name != "mode"]:
        take(node, name)
    node.op_type = "Resize" if opset == 10 else "Upsample"
    node.input[:] = [operands[0]]
    if opset < 9:
        put(node, "scales", [float(one) for one in scales])
    else:
        node.input.append(constant(2, scales))


HISTORY = defs.get_all_schemas_with_history()


def equal_parts(node, opset, shape):
    """Split without sizes: parts of one size before opset 18."""
    if opset >= 18:
        return
    axis, parts = given(node).get("axis", 0), len(node.output)
    size = shape[axis] if shape is not None else None
    if size is None or size % parts:
        refuse(node, opset, "parts of several sizes")
    take(node, "num_outputs")
