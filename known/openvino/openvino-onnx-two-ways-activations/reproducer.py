"""openvino-onnx-two-ways-activations: ValueMismatch of onnx/onnx-differently/openvino-onnx/openvino

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

TARGET = 'onnx/onnx-differently/openvino-onnx/openvino'
# name: (dtype, shape), in the order that the model takes them
INPUTS = {'x0': ('float32', (1, 1, 1)), 'x1': ('float32', (1, 1)), 'x2': ('float32', (1, 1)), 'x3': ('float32', (1, 1)), 'x4': ('float32', (1,)), 'x5': ('float32', (1,))}
PARAMETERS = {}
OUTPUTS = [('float32', (1, 1))]


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


def roll(g, x, place, axis):
    """The elements from `place` on come first."""
    place, axes = g.const([place], "int64"), g.const([axis], "int64")
    rest = g.op("Slice", x, place, g.const([np.iinfo(np.int64).max], "int64"), axes)
    return g.op("Concat", rest, g.op("Slice", x, g.const([0], "int64"), place, axes), axis=axis)


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


def model(g, x0, x1, x2, x3, x4, x5):
    v0 = recurrent(g, "rnn", x0, [x1], [x2, x3, x4, x5], (1, 1), activation='tanh', direction='forward', output='last')
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


def convert_1(source, target):
    model = onnx.load(source)
    differently(model)
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
STEPS = [('onnx-differently', convert_1), ('openvino-onnx', convert_2)]


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

SYMPTOM = 'value'  # ValueMismatch
SECONDS = 120.0
ZERO_SIGNS = False  # are the signs of zeros compared?
ARRAYS = {
    'x0': array([[[3.0]]], dtype='float32'),
    'x1': array([[0.0]], dtype='float32'),
    'x2': array([[1.0]], dtype='float32'),
    'x3': array([[0.0]], dtype='float32'),
    'x4': array([0.0], dtype='float32'),
    'x5': array([0.0], dtype='float32'),
}
EXPECTED = [
    array([[0.9950547536867305]], dtype='float64'),
]
ALLOWED = [
    array([[6.019197908285136e-07]], dtype='float64'),
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
