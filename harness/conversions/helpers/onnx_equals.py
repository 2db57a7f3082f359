"""The same ONNX model by other attributes, operands and operators that mean the same where they stand. Read as text,
behind onnx_forms.py; the program of an edge carries both."""


class Around:
    """What is known of a graph, and what a node gets before and behind it."""

    def __init__(self, model):
        self.graph, self.opset = model.graph, opset_of(model)
        self.shapes, self.constants = ranks_of(model), constants_of(model.graph)
        self.types = types_of(model)
        self.before, self.behind, self.count = [], [], 0
        self.factors = {}  # product -> its operands, as they were

    def shape(self, name):
        """None where a size is not known."""
        shape = self.shapes.get(name)
        return None if shape is None or None in shape else shape

    def name(self):
        self.count += 1
        return f"equal.{self.count}"

    def const(self, array, dtype=None):
        tensor = numpy_helper.from_array(np.asarray(array, dtype), self.name())
        self.graph.initializer.append(tensor)
        return tensor.name

    def op(self, kind, *operands, **attributes):
        """A node before this one; its output."""
        self.before.append(helper.make_node(kind, operands, [self.name()], **attributes))
        return self.before[-1].output[0]

    def then(self, node, kind, *operands, **attributes):
        """A node behind this one, which takes its first output, and whose output is called as that was."""
        name = node.output[0]
        node.output[0] = self.name()
        self.behind.insert(0, helper.make_node(kind, [node.output[0], *operands], [name], **attributes))

    def backwards(self, axis):
        """Operands of a Slice that turns an axis round."""
        return [self.const([number], "int64") for number in (-1, np.iinfo(np.int64).min, axis, -1)]


def equivalent(model):
    """The model by other attributes, operands and operators."""
    changed(model, RULES)


def changed(model, rules):
    """The model with each node as rules say."""

    def change(node, around):
        for kinds, since, rule in rules:
            if node.op_type in kinds and around.opset >= since:
                rule(node, around)

    rewritten(model, change)


def rewritten(model, change):
    """The model with each node of ONNX' own as `change(node, around)` leaves it."""
    around, nodes = Around(model), []
    for node in model.graph.node:
        around.before, around.behind = [], []
        if node.domain in ("", "ai.onnx"):
            change(node, around)
        nodes += [*around.before, node, *around.behind]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    onnx.checker.check_model(model, full_check=True)


def axes_kept(node, around):
    """That empty axes would be none does not matter where some are given."""
    axes = around.constants.get(node.input[1]) if len(node.input) > 1 else None
    if axes is not None and axes.size and not given(node).get("noop_with_empty_axes"):
        put(node, "noop_with_empty_axes", 1)


def turned_operands(node, around):
    """A product of matrices that were turned before."""
    for place, name in enumerate(("transA", "transB")):
        node.input[place] = around.op("Transpose", node.input[place], perm=[1, 0])
        put(node, name, 1 - given(node).get(name, 0))


def sizes_of(node, around):
    """Sizes of the image, the kernel, strides, dilations, and pads, where all are known."""
    image, values = around.shape(node.input[0]), given(node)
    kernel = values.get("kernel_shape")
    if kernel is None and len(node.input) > 1:
        weights = around.shape(node.input[1])
        kernel = list(weights[2:]) if weights is not None else None
    if image is None or kernel is None or values.get("auto_pad", b"NOTSET") != b"NOTSET":
        return None
    ones = [1] * len(kernel)
    parts = [values.get(name, ones) for name in ("strides", "dilations")]
    return image[2:], kernel, *parts, values.get("pads", [0] * (2 * len(kernel)))


def window(node, around):
    """Kernels given; a dilation where the kernel has one element; rounding up where nothing is left; paddings by a
    rule."""
    sizes = sizes_of(node, around)
    if sizes is None:
        return
    image, kernel, strides, dilations, pads = sizes
    rank, pool = len(kernel), node.op_type.endswith("Pool")
    put(node, "kernel_shape", list(kernel))
    schema = schema_of(node, around.opset)
    if "dilations" in schema.attributes and 1 in kernel:
        put(node, "dilations", [2 if k == 1 else d for k, d in zip(kernel, dilations)])
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
    whole = [n + pads[i] + pads[rank + i] - reach[i] for i, n in enumerate(image)]
    total = [max((-(-n // s) - 1) * s + r - n, 0) for n, s, r in zip(image, strides, reach)]
    small, large = [one // 2 for one in total], [one - one // 2 for one in total]
    for rule, asked in (("VALID", [0] * 2 * rank), ("SAME_UPPER", small + large), ("SAME_LOWER", large + small)):
        odd = not pool or kernel[0] % 2  # of pools without paddings, some round up
        if list(pads) == asked and (any(asked) or (rule == "VALID" and odd)):
            put(node, "auto_pad", rule)
            take(node, "pads")
            return  # sizes are counted in another way
    if pool and "ceil_mode" in schema.attributes and not any(w % s for w, s in zip(whole, strides)):
        put(node, "ceil_mode", 1)


def spread_window(node, around):
    """A transposed convolution whose paddings follow from the shape of its result."""
    sizes, result = sizes_of(node, around), around.shape(node.output[0])
    if sizes is None or result is None:
        return
    put(node, "kernel_shape", list(sizes[1]))
    pads = sizes[4]
    if list(pads[: len(pads) // 2]) == list(pads[len(pads) // 2 :]):
        put(node, "output_shape", list(result[2:]))
        take(node, "pads")
    elif not any(pads):
        put(node, "auto_pad", "VALID")


def column_order(node, around):
    """Of places that nothing returns the order does not matter."""
    if len(node.output) == 1:
        put(node, "storage_order", 1)


def unused(node, around):
    """Attributes that another one makes meaningless."""
    values = given(node)
    if node.op_type == "BatchNormalization":
        if len(node.output) == 1 and not values.get("training_mode"):
            put(node, "momentum", 0.5)
        return
    crops = values.get("coordinate_transformation_mode", b"half_pixel") == b"tf_crop_and_resize"
    mode = values.get("mode", b"nearest")
    if not crops:
        put(node, "extrapolation_value", 7.0)
    if mode != b"cubic":
        put(node, "cubic_coeff_a", -0.5)
    if mode != b"nearest":
        put(node, "nearest_mode", "ceil")
    shape, places = around.shape(node.input[0]), [place for place in (2, 3) if len(node.input) > place]
    held = [(place, around.constants.get(node.input[place])) for place in places if node.input[place]]
    if shape is None or crops or len(held) != 1 or held[0][1] is None or "axes" in values:
        return
    (place, numbers), still = held[0], 1 if held[0][0] == 2 else np.array(shape)
    moved = [axis for axis in range(len(shape)) if (numbers != still)[axis]]
    if around.opset >= 18 and moved:
        node.input[place] = around.const(numbers[moved])
        put(node, "axes", moved)
    elif len(node.input) > 1:
        node.input[1] = around.const(np.zeros(2 * len(shape)), "float32")


def cast_like(node, around):
    """To the type of an operand."""
    element = given(node)["to"]
    if element in PLAIN:
        tensor = helper.make_tensor(around.name(), element, [1], [0])
        around.graph.initializer.append(tensor)
        node.op_type = "CastLike"
        node.input.append(tensor.name)
        del node.attribute[:]


PLAIN = {getattr(onnx.TensorProto, name) for name in ("FLOAT", "DOUBLE", "FLOAT16", "BFLOAT16", "BOOL")}
PLAIN |= {getattr(onnx.TensorProto, f"{sign}INT{bits}") for sign in ("", "U") for bits in (8, 16, 32, 64)}
WIDE = {np.dtype(name) for name in ("float16", "float32", "float64")}


def any_order(node, around):
    """One element is in order."""
    k = around.constants.get(node.input[1])
    if k is not None and k.size == 1 and k.item() == 1:
        put(node, "sorted", 0)


def along_axis(node, around):
    """Rows of a line are its elements."""
    shape = around.shape(node.input[0])
    if shape is not None and len(shape) == 1 and "axis" not in given(node):
        put(node, "axis", 0)


def last_index(node, around):
    """The first one of the turned axis is the last one."""
    shape, values = around.shape(node.input[0]), given(node)
    if shape is None or values.get("select_last_index"):
        return
    axis = values.get("axis", 0) % len(shape)
    node.input[0] = around.op("Slice", node.input[0], *around.backwards(axis))
    put(node, "select_last_index", 1)
    around.then(node, "Sub", around.const(shape[axis] - 1, "int64"))
    around.behind[0].input[:] = around.behind[0].input[::-1]


def in_batch(node, around):
    """A batch of one."""
    if given(node).get("batch_dims"):
        return
    axis = around.const([0], "int64")
    node.input[:] = [around.op("Unsqueeze", name, axis) for name in node.input]
    put(node, "batch_dims", 1)
    around.then(node, "Squeeze", axis)


def running_back(node, around):
    """Sums of the turned axis from its end, each without its own element, of which there is one more."""
    shape, axis = around.shape(node.input[0]), around.constants.get(node.input[1])
    if shape is None or axis is None or given(node).get("reverse") or given(node).get("exclusive"):
        return
    axis = axis.item() % len(shape)
    x = around.op("Slice", node.input[0], *around.backwards(axis))
    pads = np.zeros(2 * len(shape), "int64")
    pads[axis] = 1
    node.input[0] = around.op("Pad", x, around.const(pads))
    put(node, "reverse", 1)
    put(node, "exclusive", 1)
    cut = [around.const([number], "int64") for number in (0, shape[axis], axis)]
    around.then(node, "Slice", *around.backwards(axis))
    around.then(node, "Slice", *cut)


def run_back(node, around):
    """A sequence that is turned round, run from its end."""
    if given(node).get("direction", b"forward") != b"forward" or given(node).get("layout"):
        return
    if len(node.input) > 4 and node.input[4]:
        return  # sequences of several lengths
    node.input[0] = around.op("Slice", node.input[0], *around.backwards(0))
    put(node, "direction", "reverse")
    if node.output[0]:
        around.then(node, "Slice", *around.backwards(0))


def shape_in_parts(node, around):
    """The first size, and the others."""
    shape = around.shape(node.input[0])
    if shape is None or len(shape) < 2 or given(node):
        return
    rest = around.op("Shape", node.input[0], start=1)
    put(node, "end", 1)
    around.then(node, "Concat", rest, axis=0)


def from_end(node, around):
    """An axis counted from the other end."""
    schema, shape = schema_of(node, around.opset), around.shape(node.input[0])
    if shape and "axis" in given(node) and not schema.attributes["axis"].type.name.endswith("S"):
        axis = given(node)["axis"]
        put(node, "axis", axis - len(shape) if axis >= 0 else axis + len(shape))


def compressed(node, around):
    """Rows that stay in order are what a condition leaves."""
    shape, places = around.shape(node.input[0]), around.constants.get(node.input[1])
    if shape is None or places is None or places.ndim != 1 or not places.size:
        return
    if str(around.types.get(node.input[0])) == "bfloat16":
        return  # Compress has none
    axis = given(node).get("axis", 0)
    size = shape[axis]
    if (places < -size).any() or (places >= size).any() or (np.diff(places % size) <= 0).any():
        return
    node.op_type = "Compress"
    node.input[1] = around.const(np.isin(np.arange(size), places % size))
    if len(shape) > 1:
        put(node, "axis", axis)
    else:
        del node.attribute[:]


def bounded_twice(node, around):
    """One bound after the other."""
    bounds = [around.constants.get(name) for name in node.input[1:]]
    if len(bounds) == 2 and all(one is not None for one in bounds) and bounds[0] <= bounds[1]:
        node.input[0] = around.op("Clip", node.input[0], node.input[1])
        node.input[1] = ""


def general_product(node, around):
    """Of two matrices, with nothing added."""
    shapes = [around.shape(name) for name in node.input]
    if all(shape is not None and len(shape) == 2 for shape in shapes) and around.types.get(node.input[0]) in WIDE:
        node.op_type = "Gemm"


def cropped(node, around):
    """Zeros that are as many on both sides."""
    shape, pads = around.shape(node.input[0]), around.constants.get(node.input[1])
    value = around.constants.get(node.input[2]) if len(node.input) > 2 and node.input[2] else np.zeros(())
    if shape is None or pads is None or value is None or value.tobytes().strip(b"\0") or len(node.input) > 3:
        return
    first, last = pads[: len(shape)], pads[len(shape) :]
    if given(node).get("mode", b"constant") != b"constant" or (first != last).any() or (first < 0).any():
        return
    moved = np.flatnonzero(first)
    if moved.size:
        node.op_type = "CenterCropPad"
        del node.attribute[:]
        node.input[1:] = [around.const((np.array(shape) + 2 * first)[moved], "int64")]
        put(node, "axes", moved.tolist())


def heads_in_line(node, around):
    """Heads side by side in each row of the operands, and of the result."""
    shapes = [around.shape(name) for name in node.input[:3]]
    if None in shapes or any(len(shape) != 4 for shape in shapes) or len(node.output) > 1:
        return
    for place, (batch, heads, length, size) in enumerate(shapes):
        x = around.op("Transpose", node.input[place], perm=[0, 2, 1, 3])
        node.input[place] = around.op("Reshape", x, around.const([batch, length, heads * size], "int64"))
    put(node, "q_num_heads", shapes[0][1])
    put(node, "kv_num_heads", shapes[1][1])
    around.then(node, "Transpose", perm=[0, 2, 1, 3])
    batch, heads, length = shapes[0][:3]
    around.then(node, "Reshape", around.const([batch, length, heads, shapes[2][3]], "int64"))


def narrow_places(node, around):
    """Numbers of places in 32 bits."""
    for place in NARROW[node.op_type]:
        if len(node.input) > place and node.input[place]:
            array = around.constants.get(node.input[place])
            if array is not None and array.dtype == np.int64:
                limits = np.iinfo(np.int32)
                node.input[place] = around.const(np.clip(array, limits.min, limits.max), "int32")


NARROW = {"Slice": (1, 2, 3, 4), "CumSum": (1,), "CumProd": (1,), "DFT": (1,), "Pad": (3,), "CenterCropPad": (1,)}
NARROW |= dict.fromkeys(("HannWindow", "HammingWindow", "BlackmanWindow"), (0,))


def dropped(node, around):
    """Nothing is dropped but in training."""
    if node.output[0] in {one.name for one in around.graph.output} and around.types.get(node.output[0]) in WIDE:
        node.op_type = "Dropout"
        ratio, training = around.const(0.25, "float32"), around.const(False, "bool")
        node.input.extend([ratio, training])
        if around.shape(node.output[0]):
            put(node, "seed", 1)


REDUCTIONS = {"Reduce" + kind for kind in ("Max", "Min", "Sum", "Mean", "Prod", "L1", "L2", "LogSum", "LogSumExp")}
POOLS = {"MaxPool", "AveragePool", "LpPool"}
TURNED = {"Softmax", "LogSoftmax", "Concat", "GatherElements", "ScatterElements", "Split", "TopK", "ArgMax", "ArgMin"}
RULES = (
    (REDUCTIONS | {"ReduceSumSquare"}, 18, axes_kept),
    ({"Gemm"}, 13, turned_operands),
    ({"MatMul"}, 13, general_product),
    ({"Clip"}, 12, bounded_twice),
    ({"Pad"}, 18, cropped),
    ({"Attention"}, 23, heads_in_line),
    ({"Conv", *POOLS}, 18, window),
    ({"ConvTranspose"}, 11, spread_window),
    ({"MaxPool"}, 11, column_order),
    ({"BatchNormalization", "Resize"}, 14, unused),
    ({"Cast"}, 15, cast_like),
    ({"TopK"}, 11, any_order),
    ({"Unique"}, 11, along_axis),
    ({"ArgMax", "ArgMin"}, 13, last_index),
    ({"GatherND"}, 13, in_batch),
    ({"CumSum"}, 13, running_back),
    ({"RNN", "GRU", "LSTM"}, 13, run_back),
    ({"Shape"}, 15, shape_in_parts),
    (TURNED, 13, from_end),
    ({"Gather"}, 11, compressed),
    (set(NARROW), 18, narrow_places),
    ({"Identity"}, 13, dropped),
)
"""(operators, since which opset, what is done to a node of theirs), in order."""
