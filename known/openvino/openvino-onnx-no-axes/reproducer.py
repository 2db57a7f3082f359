"""openvino-onnx-no-axes: TypeMismatch of onnx/onnx-idle/openvino-onnx/openvino

ran with python 3.11.7, numpy 2.4.6, openvino 2026.4.1, onnx 1.23.2
exit status: 1 reproduced, 0 not reproduced, 77 not available here
"""

import importlib.util
import sys

for module in ['onnx', 'openvino', 'ml_dtypes']:
    if importlib.util.find_spec(module) is None:
        print(f"not available: {module}")
        sys.exit(77)

# ---- the program that ran ----

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

TARGET = 'onnx/onnx-idle/openvino-onnx/openvino'
# name: (dtype, shape), in the order that the model takes them
INPUTS = {'x0': ('float32', (2,))}
PARAMETERS = {}
OUTPUTS = [('float32', (2,))]


class Builder:
    """Collects ONNX nodes; values are known by name. since: operators that are newer than the opset that models have
    otherwise, or meant something else before this one."""

    def __init__(self):
        self.since = {"GroupNormalization": 21, "Attention": 23, "RMSNormalization": 23, "RotaryEmbedding": 23}
        self.since |= {"Swish": 24, "TensorScatter": 24, "BitCast": 26, "CumProd": 26}
        self.nodes = []
        self.initializers = []
        self.opset = 20

    def op(self, kind, *operands, outputs=1, pick=0, **attributes):
        """Add a node and return the name of its output number `pick`. An operand that is None is left out."""
        names = [f"t{len(self.nodes)}_{i}" for i in range(outputs)]
        self.opset = max(self.opset, self.since.get(kind, 0))
        operands = ["" if o is None else o for o in operands]
        self.nodes.append(helper.make_node(kind, operands, names, **attributes))
        return names[pick]

    def const(self, value, dtype):
        """Add an initializer from nested sequences and a numpy dtype name, and return its name."""
        name = f"c{len(self.initializers)}"
        array = np.asarray(value, dtype=dtype)
        self.initializers.append(numpy_helper.from_array(array, name))
        return name

    def model(self, inputs, parameters, outputs, results):
        """The finished ModelProto. inputs: {name: (element type, shape)}; parameters: {name: array};
        outputs: types of the graph's outputs in order; results: the names that hold them."""
        for name, array in parameters.items():
            self.initializers.append(numpy_helper.from_array(array, name))
        final = []
        for i, name in enumerate(results):
            # a graph output needs a name of its own, and may not be an input or an initializer
            self.nodes.append(helper.make_node("Identity", [name], [f"out{i}"]))
            final.append(helper.make_tensor_value_info(f"out{i}", *outputs[i]))
        given = [helper.make_tensor_value_info(name, *type_) for name, type_ in inputs.items()]
        graph = helper.make_graph(self.nodes, "dissent", given, final, self.initializers)
        version = 10 if self.opset < 23 else 11 if self.opset < 25 else 13
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=version)
        onnx.checker.check_model(model, full_check=True)
        return model


def kept(g, x, mask, make, shape, dtype):
    """What is made of the rows that the mask keeps, at their places."""
    places = g.op("Transpose", g.op("NonZero", mask), perm=[1, 0])
    nothing = g.op("Expand", g.const(0, dtype), g.const(np.array(shape, "int64"), "int64"))
    return g.op("ScatterND", nothing, places, make(g.op("Compress", x, mask, axis=0)))


def part(g, x, rank, row=None, column=None):
    """A row or a column of each matrix, or an element."""
    places = [(axis, place) for axis, place in ((rank - 2, row), (rank - 1, column)) if place is not None]
    starts = [place for _, place in places]
    numbers = (starts, [place + 1 for place in starts], [axis for axis, _ in places])
    return g.op("Slice", x, *[g.const(n, "int64") for n in numbers])


def recurrent(g, kind, x, states, weights, shape, direction="forward", output="all", activation=None, reset="after"):
    """RNN, GRU or LSTM over the first axis of x, with a state of that shape. ONNX orders the gates of a GRU as z, r,
    h and those of an LSTM as i, o, f, c."""
    size = shape[1]
    order = {"rnn": [0], "gru": [1, 0, 2], "lstm": [0, 3, 1, 2]}[kind]
    places = g.const([gate * size + row for gate in order for row in range(size)], "int64")
    front = g.const([0], "int64")
    w, r, bw, br = (g.op("Gather", weight, places, axis=0) for weight in weights)
    w, r, b = (g.op("Unsqueeze", o, front) for o in (w, r, g.op("Concat", bw, br, axis=0)))
    states = [g.op("Unsqueeze", state, front) for state in states]
    attributes = {
        "rnn": {"activations": [str(activation).title()]},
        "gru": {"linear_before_reset": int(reset == "after")},
    }
    results = {"outputs": 3 if kind == "lstm" else 2, "pick": ["all", "last", "cell"].index(output)}
    y = g.op(
        *(kind.upper(), x, w, r, b, None, *states),
        hidden_size=size,
        direction=direction,
        **attributes.get(kind, {}),
        **results,
    )
    return g.op("Squeeze", y, g.const([1 if output == "all" else 0], "int64"))


def gates(F, x, weight, bias):
    """x by the transposed weight, and the bias."""
    return F.matmul(x, F.transpose(weight, [1, 0])) + bias


def columns(F, x, number, count):
    """One of so many blocks of columns."""
    size = x.shape[1] // count
    return F.take(x, list(range(number * size, (number + 1) * size)), 1)


def rows(F, x, first, last, count):
    """The blocks of rows from `first` to `last` of so many."""
    size = x.shape[0] // count
    return F.take(x, list(range(first * size, (last + 1) * size)), 0)


def rnn_cell(F, x, h, w, r, bw, br, activation):
    total = gates(F, x, w, bw) + gates(F, h, r, br)
    return F.maximum(total, 0) if activation == "relu" else F.tanh(total)


def gru_cell(F, x, h, w, r, bw, br, reset):
    """Gates r, z, n; the reset gate scales the state's part of n after its product, or the state before it."""
    inner = gates(F, x, w, bw)
    outer = gates(F, h, rows(F, r, 0, 1, 3), rows(F, br, 0, 1, 3))
    scale = F.sigmoid(columns(F, inner, 0, 3) + columns(F, outer, 0, 2))
    update = F.sigmoid(columns(F, inner, 1, 3) + columns(F, outer, 1, 2))
    weight, bias = rows(F, r, 2, 2, 3), rows(F, br, 2, 2, 3)
    rest = scale * gates(F, h, weight, bias) if reset == "after" else gates(F, scale * h, weight, bias)
    new = F.tanh(columns(F, inner, 2, 3) + rest)
    return (1 - update) * new + update * h


def lstm_step(F, x, h, c, w, r, bw, br):
    """Gates i, f, g, o."""
    total = gates(F, x, w, bw) + gates(F, h, r, br)
    i, f, g, o = (columns(F, total, number, 4) for number in range(4))
    c = F.sigmoid(f) * c + F.sigmoid(i) * F.tanh(g)
    return F.sigmoid(o) * F.tanh(c), c


def over_time(F, step, x, state, direction, output):
    """The step from state to state, over the first axis of x."""
    order = list(range(x.shape[0]))
    if direction == "reverse":
        order.reverse()
    results = []
    for t in order:
        state = step(F.reshape(F.take(x, [t], 0), x.shape[1:]), *state)
        results.append(state[0])
    if output != "all":
        return state[1 if output == "cell" else 0]
    if direction == "reverse":
        results.reverse()
    return F.stack(results, 0)


def rnn(F, x, h, w, r, bw, br, activation, direction, output):
    def step(x, h):
        return (rnn_cell(F, x, h, w, r, bw, br, activation),)

    return over_time(F, step, x, [h], direction, output)


def gru(F, x, h, w, r, bw, br, reset, direction, output):
    def step(x, h):
        return (gru_cell(F, x, h, w, r, bw, br, reset),)

    return over_time(F, step, x, [h], direction, output)


def lstm(F, x, h, c, w, r, bw, br, direction, output):
    def step(x, h, c):
        return lstm_step(F, x, h, c, w, r, bw, br)

    return over_time(F, step, x, [h, c], direction, output)


def counted(F, indices, padding, like):
    """1 where an index counts, 0 where it is the padding, with a new last axis."""
    shape = [*indices.shape, 1]
    ones = F.constant(np.ones(indices.shape), like)
    if padding is None:
        return F.reshape(ones, shape)
    return F.reshape(F.where(F.equal(indices, F.constant(padding, indices)), 0, ones), shape)


def model(g, x0):
    v0 = g.op("Neg", x0)
    return (v0,)


TRUST = False


def write(parameters, path):
    def element(dtype):
        return helper.np_dtype_to_tensor_dtype(np.dtype(dtype))

    g = Builder()
    results = model(g, *INPUTS, *PARAMETERS)
    proto = g.model(
        {name: (element(dtype), shape) for name, (dtype, shape) in INPUTS.items()},
        parameters,
        [(element(dtype), shape) for dtype, shape in OUTPUTS],
        results,
    )
    onnx.save(proto, path)


"""The same ONNX model in another form. Read as text; the program of an edge carries it."""

import numpy as np
import onnx
from onnx import defs, helper, numpy_helper

SIMPLE = "FLOAT", "INT", "STRING", "FLOATS", "INTS", "STRINGS"


def schema_of(node, opset):
    return defs.get_schema(node.op_type, opset, node.domain)


def opset_of(model):
    return next(one.version for one in model.opset_import if one.domain in ("", "ai.onnx"))


def standard(graph):
    """Nodes of ONNX' own domain, those of subgraphs, too, each with the graph that it is in."""
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from standard(attribute.g)
        if node.domain in ("", "ai.onnx"):
            yield graph, node


def constants_of(graph, most=64):
    """Name -> array of what a graph holds, small ones only: larger ones are weights."""
    held = {tensor.name: tensor for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            held[node.output[0]] = node.attribute[0].t
    outside = onnx.TensorProto.EXTERNAL
    small = {name: one for name, one in held.items() if one.data_location != outside and np.prod(one.dims) <= most}
    return {name: numpy_helper.to_array(tensor) for name, tensor in small.items()}


def ranks_of(model):
    """Name -> shape (None: a size that is not known) of what shape inference knows."""
    graph = onnx.shape_inference.infer_shapes(model).graph
    known = {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
    for value in (*graph.input, *graph.output, *graph.value_info):
        if value.type.tensor_type.HasField("shape"):
            dims = value.type.tensor_type.shape.dim
            known[value.name] = tuple(dim.dim_value if dim.HasField("dim_value") else None for dim in dims)
    return known


def value_of(attribute):
    value = helper.get_attribute_value(attribute)
    return list(value) if isinstance(value, (list, tuple)) or hasattr(value, "append") else value


def given(node):
    return {attribute.name: value_of(attribute) for attribute in node.attribute}


def put(node, name, value):
    take(node, name)
    kind = onnx.AttributeProto.INTS if value == [] else None
    node.attribute.append(helper.make_attribute(name, value, attr_type=kind))


def take(node, name):
    for attribute in [one for one in node.attribute if one.name == name]:
        node.attribute.remove(attribute)


def defaults(schema):
    """Attribute -> default, of those for which the schema states one."""
    stated = {}
    for name, attribute in schema.attributes.items():
        if not attribute.required and attribute.default_value.name and attribute.type.name in SIMPLE:
            stated[name] = value_of(attribute.default_value)
    return stated


def explicit(model):
    """Every attribute that has a default is given, those that what stands around decides, too, and operands that may be
    left out."""
    shapes, types, opset = ranks_of(model), types_of(model), opset_of(model)
    for graph, node in standard(model.graph):
        for name, value in defaults(schema_of(node, opset)).items():
            if name not in given(node) and (node.op_type, name) not in EITHER:
                put(node, name, value)
        known = [shapes.get(name) if name else () for name in node.input]
        if known and None not in known and not any(None in shape for shape in known):
            decided(graph, node, known, types.get(node.input[0]), opset)


def decided(graph, node, shapes, element, opset):
    """Attributes and operands without a default, as they are where they are left out. shapes: of its operands; element:
    the dtype of the first one."""
    kind, values, rank = node.op_type, given(node), len(shapes[0])

    def operand(place, array):
        """Where none is given yet."""
        node.input.extend([""] * (place + 1 - len(node.input)))
        if not node.input[place]:
            name = f"form.{node.output[0] or node.output[-1]}.{place}"
            graph.initializer.append(numpy_helper.from_array(array, name))
            node.input[place] = name

    if kind in ("Conv", "ConvTranspose", "MaxUnpool") or (kind.endswith("Pool") and "kernel_shape" in values):
        kernel = values.get("kernel_shape", list(shapes[min(1, len(shapes) - 1)][2:]))
        attributes = schema_of(node, opset).attributes
        ones, zeros = [1] * len(kernel), [0] * 2 * len(kernel)
        fixed = ("kernel_shape", kernel), ("strides", ones), ("dilations", ones), ("pads", zeros)
        for name, value in (*fixed, ("output_padding", [0] * len(kernel))):
            sized = name == "pads" and (values.get("auto_pad", b"NOTSET") != b"NOTSET" or "output_shape" in values)
            if name in attributes and name not in values and not sized:
                put(node, name, value)
        values = given(node)
    if kind in GATES and element and not values.get("layout"):
        (steps, batch, _), ways = shapes[0], shapes[2][0]
        hidden = shapes[2][-1]
        if "activations" not in values:
            put(node, "activations", list(GATES[kind][1]) * ways)
        operand(3, np.zeros((ways, 2 * GATES[kind][0] * hidden), element))
        operand(4, np.full(batch, steps, "int32"))
        operand(5, np.zeros((ways, batch, hidden), element))
        if kind == "LSTM":
            operand(6, np.zeros((ways, batch, hidden), element))
            operand(7, np.zeros((ways, 3 * hidden), element))
    if kind == "EyeLike" and "dtype" not in values and element:
        put(node, "dtype", helper.np_dtype_to_tensor_dtype(element))
    if kind == "MaxUnpool":
        kernel = values["kernel_shape"]
        steps, (first, last) = values.get("strides", [1] * len(kernel)), np.split(np.array(values["pads"]), 2)
        sizes = (np.array(shapes[0][2:]) - 1) * steps + kernel - first - last
        operand(2, np.array([*shapes[0][:2], *sizes]))
    if kind == "Pad" and opset >= 18:
        operand(3, np.arange(rank))
    if kind == "ConvTranspose" and element:
        operand(2, np.zeros(shapes[1][1] * values.get("group", 1), element))


GATES = {"RNN": (1, ("Tanh",)), "GRU": (3, ("Sigmoid", "Tanh")), "LSTM": (4, ("Sigmoid", "Tanh", "Tanh"))}
"""Parts of the weights of a recurrent layer, and its usual activations."""


def types_of(model):
    """Name -> dtype of what shape inference knows."""
    graph = onnx.shape_inference.infer_shapes(model).graph
    known = {tensor.name: tensor.data_type for tensor in graph.initializer}
    known |= {one.name: one.type.tensor_type.elem_type for one in (*graph.input, *graph.output, *graph.value_info)}
    return {name: helper.tensor_dtype_to_np_dtype(element) for name, element in known.items() if element}


EITHER = {("Split", "num_outputs"), ("QuantizeLinear", "output_dtype"), ("DequantizeLinear", "output_dtype")}
"""Attributes of which a default says that another one, or an operand, decides."""

ENDS = {
    "Slice": {4: lambda array, rank: (array == 1).all(), 3: lambda array, rank: list(array) == list(range(rank))},
    "Pad": {3: lambda array, rank: list(array) == list(range(rank)), 2: lambda array, rank: array == 0},
    "ReduceMax": {1: lambda array, rank: sorted(array % rank) == list(range(rank)) and rank},
}
"""Operands at the end that may say what their absence says: place -> does this array, beside data of this rank?"""
ENDS |= {
    "Trilu": {1: lambda array, rank: array == 0},
    "DequantizeLinear": {2: lambda array, rank: (array == 0).all()},
    "QuantizeLinear": {2: lambda array, rank: (array == 0).all() and array.dtype == np.uint8},
}
ENDS |= dict.fromkeys(
    (f"Reduce{kind}" for kind in ("Min", "Sum", "Mean", "Prod", "L1", "L2", "LogSum", "LogSumExp", "SumSquare")),
    ENDS["ReduceMax"],
)


IMPLIED = {
    "strides": lambda value: set(value) == {1},
    "dilations": lambda value: set(value) == {1},
    "pads": lambda value: set(value) == {0},
    "output_padding": lambda value: set(value) == {0},
    "perm": lambda value: value == sorted(value, reverse=True),
}
"""Attributes without a stated default that may say what their absence says."""


def terse(model):
    """No attribute that is as its default, or that what stands around decides, and no operand at the end that says what
    its absence says."""
    opset, shapes = opset_of(model), ranks_of(model)
    for graph, node in standard(model.graph):
        stated = defaults(schema_of(node, opset))
        for name, value in given(node).items():
            implied = name in IMPLIED and not schema_of(node, opset).attributes[name].required
            usual = name == "activations" and value == [one.encode() for one in GATES[node.op_type][1]]
            if usual or (name in stated and stated[name] == value) or (implied and IMPLIED[name](value)):
                take(node, name)
        if node.op_type in ("Conv", "ConvTranspose"):
            take(node, "kernel_shape")
        shape = (shapes.get(node.input[0]) or ()) if node.input else ()
        constants, rank = constants_of(graph), len(shape)
        if node.op_type == "Squeeze" and None not in shape and node.input[-1] in constants:
            units = [axis for axis, size in enumerate(shape) if size == 1]
            if sorted(constants[node.input[-1]] % rank) == units:
                del node.input[1:]
        for place, same in ENDS.get(node.op_type, {}).items():
            array = constants.get(node.input[place]) if len(node.input) == place + 1 else None
            kept = array is None or not rank or given(node).get("noop_with_empty_axes")
            if not kept and same(array, rank):
                del node.input[place:]
        while node.input and not node.input[-1]:
            del node.input[-1]


def computed(model):
    """No operand is a constant: each is chosen at run time, by the sum of an input's elements, from two that are the
    same. Constants that Where does not take, or with a -0, which ONNX Runtime's loses, stay as they are."""
    graph = model.graph
    held = {tensor.name for tensor in graph.initializer}
    inputs = [one for one in graph.input if one.name not in held and one.type.tensor_type.elem_type in WHERE]
    if not inputs:
        return
    first, nodes = inputs[0].name, list(graph.node)
    taken = held & {name for node in nodes for name in node.input} - {one.name for one in graph.output}
    arrays = {t.name: numpy_helper.to_array(t) for t in graph.initializer if t.name in taken and t.data_type in WHERE}
    taken = sorted(name for name, one in arrays.items() if not (np.signbit(one) & (one == 0)).any())
    head = [
        helper.make_node("Cast", [first], ["form.number"], to=onnx.TensorProto.FLOAT),
        helper.make_node("ReduceSum", ["form.number"], ["form.sum"], keepdims=0),
        helper.make_node("Constant", [], ["form.zero"], value=numpy_helper.from_array(np.float32(0))),
        helper.make_node("Greater", ["form.sum", "form.zero"], ["form.above"]),
        *(helper.make_node("Where", ["form.above", name, name], [f"form.{name}"]) for name in taken),
    ]
    for node in nodes:
        node.input[:] = [f"form.{name}" if name in taken else name for name in node.input]
    del graph.node[:]
    graph.node.extend([*head, *nodes])


WHERE = {getattr(onnx.TensorProto, name) for name in ("FLOAT", "DOUBLE", "INT32", "INT64", "UINT8")}
"""Types of which ONNX Runtime has Where."""


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
    around, nodes = Around(model), []
    for node in model.graph.node:
        around.before, around.behind = [], []
        if node.domain in ("", "ai.onnx"):
            for kinds, since, rule in rules:
                if node.op_type in kinds and around.opset >= since:
                    rule(node, around)
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


"""The same ONNX model with operators that do nothing before its nodes: over no axes, by ones, of one part. Read as text,
behind onnx_equals.py."""

import zlib


def idle(model):
    """Before the first operand of each node one of IDLE, of those that fit in turn."""
    around, nodes, turn = Around(model), [], 0
    for node in model.graph.node:
        around.before, around.behind = [], []
        shape, dtype = (around.shape(node.input[0]), around.types.get(node.input[0])) if node.input else (None, None)
        own = node.domain in ("", "ai.onnx") and node.op_type != "Identity"
        if own and shape is not None and dtype is not None and dtype.name in PLAIN:
            fitting = [rule for since, least, rule in IDLE if around.opset >= since and len(shape) >= least]
            rule = fitting[(zlib.crc32(node.op_type.encode()) + turn) % len(fitting)]
            node.input[0] = rule(node.input[0], around, shape)
            turn += 1
        nodes += [*around.before, node]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    onnx.checker.check_model(model, full_check=True)


PLAIN = "float32", "float64", "int32", "int64", "bool"
"""Dtypes of which runtimes have all these operators."""


def over_none(kind):
    """Over axes of which there are none."""
    return lambda x, around, shape: around.op(kind, x, around.const([], "int64"))


def sliced(x, around, shape):
    """Of no axes."""
    return around.op("Slice", x, *[around.const([], "int64")] * 3)


def turned_to_itself(x, around, shape):
    return around.op("Transpose", x, perm=list(range(len(shape))))


def by_ones(x, around, shape):
    return around.op("Tile", x, around.const([1] * len(shape), "int64"))


def to_one(x, around, shape):
    """Expanded to a shape of one place."""
    return around.op("Expand", x, around.const([1], "int64"))


def all_places(x, around, shape):
    """Its rows, each by its place."""
    return around.op("GatherND", x, around.const(np.arange(shape[0])[:, None], "int64"))


def alone(x, around, shape):
    """Joined of one part."""
    return around.op("Concat", x, axis=-1)


IDLE = (
    (13, 0, over_none("Squeeze")),
    (13, 0, over_none("Unsqueeze")),
    (13, 1, sliced),
    (13, 1, turned_to_itself),
    (13, 1, by_ones),
    (13, 1, to_one),
    (13, 1, all_places),
    (13, 1, alone),
)
"""Opset, least number of dimensions, and what does nothing to operand, around it, of this shape."""


def convert_1(source, target):
    model = onnx.load(source)
    idle(model)
    onnx.save(model, target)


def convert_2(source, target):
    import openvino

    openvino.save_model(openvino.convert_model(source), target, compress_to_fp16=False)


def open_model(path):
    import openvino

    core = openvino.Core()
    options = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1}
    compiled = core.compile_model(core.read_model(path), "CPU", options)

    def named(value, place):
        # a tensor has the names of all that is folded into it, an input its own one among them
        own = value.get_node().get_friendly_name()
        return own if own in value.get_names() else value.get_any_name() if value.get_names() else place

    def element(value):
        # to_dtype says float16 of bfloat16, and so do the arrays of its tensors
        of = value.get_element_type()
        if of == openvino.Type.bf16:
            import ml_dtypes  # numpy knows bfloat16 by it

            return "bfloat16"
        return of.to_dtype().name

    def ports(values):
        return [
            (
                named(value, f"{kind}{i}"),
                element(value),
                [None if dim.is_dynamic else dim.get_length() for dim in value.get_partial_shape()],
            )
            for kind, ports in values.items()
            for i, value in enumerate(ports)
        ]

    def tensor(array):
        return openvino.Tensor(np.ascontiguousarray(array).view(np.uint16), array.shape, openvino.Type.bf16)

    inputs, outputs = ports({"in": compiled.inputs}), ports({"out": compiled.outputs})

    def call(*arrays):
        given = {i: array if array.dtype.name != "bfloat16" else tensor(array) for i, array in enumerate(arrays)}
        returned = compiled(given, share_inputs=False, share_outputs=False)
        found = [np.array(returned[i]) for i in range(len(outputs))]
        return [y.view("bfloat16") if out[1] == "bfloat16" else y for y, out in zip(found, outputs)]

    return inputs, outputs, call


FILES = ['0.onnx', '1.onnx', '2.xml']
STEPS = [('onnx-idle', convert_1), ('openvino-onnx', convert_2)]


def ordered(ports, names):
    """The names in the order in which the model has what they name: by name, as most tools leave it; where names are
    lost, by the numbers that TensorFlow gives in their place, where outputs that are inputs or constants may have
    none, and all may be sorted as text (10 before 2); else as they are, since other tools keep the order."""
    import re

    plain = [name for name, _, _ in ports]
    if len(set(plain)) == len(plain) and set(plain) <= set(names):
        return plain
    found = [re.sub(r"^serving_default_|:0$|(?<=^out)0+(?=[0-9])", "", name) for name, _, _ in ports]
    if len(set(found)) == len(found) and set(found) <= set(names):
        return found
    if len(found) != len(names):
        raise ValueError(f"the model has {', '.join(found) or 'nothing'} in place of {', '.join(names)}")
    numbered = r"(?:Stateful)?PartitionedCall(?:_[0-9]+)?:([0-9]+)|(?:in|out|output_)([0-9]+)|Identity(?:_([0-9]+))?"
    matches = [re.fullmatch(numbered, name) or re.fullmatch(numbered, port[0]) for name, port in zip(found, ports)]
    numbers = [int(next(filter(None, match.groups()), 0)) if match else -1 for match in matches]
    known = [number for number in numbers if number >= 0]
    left = [number for number in range(len(names)) if number not in known]
    if len(known) + len(left) > len(names):  # one twice, or one too many
        return names
    as_text = sorted(known) != known == sorted(known, key=str)
    rest = iter(sorted(left, key=str) if as_text else left)
    return [names[number if number >= 0 else next(rest)] for number in numbers]


def load(parameters):
    import os
    import shutil
    import tempfile

    folder = tempfile.mkdtemp(prefix="conversion-")
    step = "write"
    try:
        write(parameters, os.path.join(folder, FILES[0]))
        for (step, convert), source, target in zip(STEPS, FILES, FILES[1:]):
            convert(os.path.join(folder, source), os.path.join(folder, target))
        step = "open"
        inputs, outputs, call = open_model(os.path.join(folder, FILES[-1]))
        taken, wanted = ordered(inputs, list(INPUTS)), [f"out{i}" for i in range(len(OUTPUTS))]
        given = ordered(outputs, wanted) if len(outputs) == len(wanted) else None
    except Exception as error:
        error.add_note(f"in step {step}")
        raise
    finally:
        shutil.rmtree(folder)

    def run(*arrays):
        arrays = dict(zip(INPUTS, arrays))
        try:
            results = call(*[arrays[name] for name in taken])
        except Exception as error:
            error.add_note("in step run")
            raise
        return [results[given.index(name)] for name in wanted] if given else results  # too few or too many

    return run


# ---- its inputs, and what a correct evaluation returns: value, and how far from it (inf: anything) ----

from pathlib import Path

from numpy import array, inf, nan

SYMPTOM = 'type'  # TypeMismatch
SECONDS = 120.0
ZERO_SIGNS = True  # are the signs of zeros compared?
ARRAYS = {
    'x0': array([1.0, 2.0], dtype='float32'),
}
EXPECTED = [
    array([-1.0, -2.0], dtype='float64'),
]
ALLOWED = [
    array([0.0, 0.0], dtype='float64'),
]


def wrong(output, expected, allowed, dtype, shape):
    """What is wrong with one output, or None."""
    if str(output.dtype) != dtype or output.shape != tuple(shape):
        return f"{output.dtype}{output.shape} instead of {dtype}{tuple(shape)}"
    if not shape and output.ndim == 0:
        output, expected, allowed = output.reshape(1), expected.reshape(1), allowed.reshape(1)
    if "complex" in dtype:  # the parts side by side: NaN and infinities in place, then the modulus of the difference
        got, bad, distance = output, np.zeros(output.shape, bool), np.zeros(output.shape)
        for a, b in ((output.real, expected.real), (output.imag, expected.imag)):
            bad |= (np.isnan(a) != np.isnan(b)) | ((np.isinf(a) | np.isinf(b)) & ~np.isnan(b) & (a != b))
            with np.errstate(all="ignore"):
                distance = np.hypot(distance, np.where(np.isfinite(a) & np.isfinite(b), a.astype("float64") - b, 0.0))
            if ZERO_SIGNS:
                bad |= (a == 0) & (b == 0) & (allowed == 0) & (np.signbit(a) != np.signbit(b))
        bad = ~np.isinf(allowed) & (bad | (distance > allowed))
    elif "float" in dtype:
        got = output.astype("float64")
        with np.errstate(all="ignore"):
            same = (got == expected) | (np.isnan(got) & np.isnan(expected))
            near = np.isfinite(got) & np.isfinite(expected) & (np.abs(got - expected) <= allowed)
        bad = ~np.isinf(allowed) & ~same & ~near
        if ZERO_SIGNS:
            bad |= (allowed == 0) & (got == 0) & (expected == 0) & (np.signbit(got) != np.signbit(expected))
    else:
        got, bad = output, ~np.isinf(allowed) & (output != expected)
    if not bad.any():
        return None
    at = tuple(int(i[0]) for i in np.nonzero(bad))
    detail = f"expected {expected[at]}, got {got[at]}, allowed {allowed[at]:.3g}"
    return f"{bad.sum()} of {bad.size} wrong, at {at}: {detail}"


def main():
    if SYMPTOM in ("crash", "timeout") and "--child" not in sys.argv:
        import subprocess

        try:
            code = subprocess.run([sys.executable, __file__, "--child"], timeout=SECONDS).returncode
        except subprocess.TimeoutExpired:
            print("reproduced: no result within", SECONDS, "s")
            return 1
        print("the process ended with status", code)
        return 0 if code == 0 else 77 if code == 77 else 1
    try:
        outputs = load({n: ARRAYS[n] for n in PARAMETERS})(*[ARRAYS[n] for n in INPUTS])
    except Exception as error:
        # another failure than the one looked for says nothing about it: like a framework that is not there
        why = (str(error).splitlines() or [""])[0]
        print(f"{'reproduced' if SYMPTOM == 'rejected' else 'not available'}: {type(error).__name__}: {why}")
        return 1 if SYMPTOM == "rejected" else 77
    if len(outputs) != len(OUTPUTS):
        print(f"reproduced: {len(outputs)} outputs instead of {len(OUTPUTS)}")
        return 1
    failed = 0
    for i, (dtype, shape) in enumerate(OUTPUTS):
        problem = wrong(np.asarray(outputs[i]), EXPECTED[i], ALLOWED[i], dtype, shape)
        print(f"output {i}: {problem or 'correct'}")
        failed |= problem is not None
    print("reproduced" if failed else "not reproduced")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
