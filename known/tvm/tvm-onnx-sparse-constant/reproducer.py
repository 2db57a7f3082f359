"""tvm-onnx-sparse-constant: Rejection of onnx/onnx-sparse/tvm-onnx/tvm

ran with python 3.11.7, numpy 2.4.6, apache-tvm 0.27.0.post1, onnx 1.23.2
exit status: 1 reproduced, 0 not reproduced, 77 not available here
"""

import importlib.util
import sys

for module in ['onnx', 'tvm', 'tvm.relax']:
    if importlib.util.find_spec(module) is None:
        print(f"not available: {module}")
        sys.exit(77)

# ---- the program that ran ----

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

TARGET = 'onnx/onnx-sparse/tvm-onnx/tvm'
# name: (dtype, shape), in the order that the model takes them
INPUTS = {'x0': ('float32', (1, 2))}
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


def model(g, x0):
    v0 = g.op("Reshape", x0, g.const((2,), "int64"))
    return (v0,)


TRUST = True


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


"""How an ONNX model holds the numbers of its constants, and nodes that call functions of the model's own. Read as text,
behind onnx_forms.py."""


def in_fields(model):
    """In the fields of their types, in place of bytes: float_data, int32_data (what is narrower, too: the bits of
    float16 and bfloat16), int64_data, double_data, uint64_data (uint32, too)."""
    for tensor in tensors_of(model.graph):
        if tensor.HasField("raw_data"):
            numbers = numpy_helper.to_array(tensor).ravel()
            tensor.CopyFrom(helper.make_tensor(tensor.name, tensor.data_type, tensor.dims, numbers))
    onnx.checker.check_model(model, full_check=True)


def tensors_of(graph):
    """Of the graph, and of its nodes' attributes."""
    yield from graph.initializer
    for _, node in standard(graph):
        yield from (attribute.t for attribute in node.attribute if attribute.type == onnx.AttributeProto.TENSOR)


def by_default(model):
    """Constants are inputs, too, with these numbers as defaults, as in files of the first versions of the format."""
    graph = model.graph
    named = {one.name for one in graph.input}
    held = [one for one in graph.initializer if one.name not in named]
    if not held:
        raise NotImplementedError("no constant: no such form in opset 11 is another one")
    for tensor in held:
        graph.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
    onnx.checker.check_model(model, full_check=True)


def sparsely(model):
    """Constants of numbers with axes are made by nodes that hold them without their zeros: matrices and more by rows of
    places, vectors by places. Raises NotImplementedError where there is none."""
    graph, made = model.graph, []
    for tensor in list(graph.initializer):
        array = numpy_helper.to_array(tensor)
        if array.dtype.name not in ("float32", "float64", "float16", "int32", "int64") or not array.ndim:
            continue
        places = np.flatnonzero(array.ravel().view(f"u{array.itemsize}"))  # -0 is stored
        if not len(places):
            continue
        values = numpy_helper.from_array(array.ravel()[places], f"{tensor.name}.values")
        if array.ndim > 1:
            places = np.stack(np.unravel_index(places, array.shape), 1)
        held = numpy_helper.from_array(places.astype("int64"), f"{tensor.name}.places")
        sparse = helper.make_sparse_tensor(values, held, tensor.dims)
        made.append(helper.make_node("Constant", [], [tensor.name], sparse_value=sparse))
        graph.initializer.remove(tensor)
    if not made:
        raise NotImplementedError("no constant with axes and numbers: no such form in opset 11 is another one")
    nodes = [*made, *graph.node]
    del graph.node[:]
    graph.node.extend(nodes)
    onnx.checker.check_model(model, full_check=True)


LOCAL = "local"


def by_functions(model):
    """Nodes call functions of the model: one for each kind, with its attributes by reference. The last one calls a
    function that calls another."""
    known, opset = {}, [one for one in model.opset_import if one.domain != LOCAL]
    own = helper.make_opsetid(LOCAL, 1)
    calls = [node for node in model.graph.node if can_call(node)]
    for node in calls:
        attributes = sorted(given(node))
        kind = (node.op_type, len(node.input), len(node.output), *attributes)
        if kind not in known:
            known[kind] = f"{node.op_type}{len(known)}"
            model.functions.append(function_of(node, known[kind], opset))
        node.op_type, node.domain = known[kind], LOCAL
    if calls:
        last = calls[-1]
        model.functions.append(function_of(last, "Last", [*opset, own]))
        last.op_type = "Last"
        model.opset_import.append(own)
    onnx.checker.check_model(model, full_check=True)


def can_call(node):
    graphs = (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS)
    plain = not any(attribute.type in graphs for attribute in node.attribute)
    return node.domain in ("", "ai.onnx") and node.op_type != "Constant" and plain


def function_of(node, name, opsets):
    """A function that does what a node does, whose attributes it takes."""
    body = onnx.NodeProto()
    body.CopyFrom(node)
    body.input[:] = [f"a{place}" for place in range(len(node.input))]
    body.output[:] = [f"b{place}" for place in range(len(node.output))]
    del body.attribute[:]
    for attribute in node.attribute:
        body.attribute.append(
            onnx.AttributeProto(name=attribute.name, type=attribute.type, ref_attr_name=attribute.name)
        )
    names = [attribute.name for attribute in node.attribute]
    return helper.make_function(LOCAL, name, body.input, body.output, [body], opsets, names)


def convert_1(source, target):
    model = onnx.load(source)
    sparsely(model)
    onnx.save(model, target)


def convert_2(source, target):
    import json
    from pathlib import Path

    import tvm
    from tvm import relax

    names = []  # of the outputs, where the file has them in another order than its signature
    import onnx
    from tvm.relax.frontend.onnx import from_onnx

    module = from_onnx(onnx.load(source), keep_params_in_input=False)
    function = module["main"]

    def ports(kind, values):
        return [
            (
                name or f"{kind}{i}",
                str(type_.dtype),
                [int(dim) if isinstance(dim, tvm.tirx.IntImm) else None for dim in type_.shape or [None] * type_.ndim],
            )
            for i, (name, type_) in enumerate(values)
        ]

    returned = function.ret_ty
    results = list(returned.fields) if hasattr(returned, "fields") else [returned]
    signature = {
        "inputs": ports("in", [(variable.name, variable.ty) for variable in function.params]),
        "outputs": ports("out", [*zip(names or [""] * len(results), results)]),
    }
    tvm.compile(module, tvm.target.Target("llvm")).export_library(target)
    Path(target).with_suffix(".json").write_text(json.dumps(signature), encoding="utf-8")


def open_model(path):
    import json
    from pathlib import Path

    import tvm
    from tvm import relax

    signature = json.loads(Path(path).with_suffix(".json").read_text(encoding="utf-8"))
    machine = relax.VirtualMachine(tvm.runtime.load_module(path), tvm.cpu())

    def call(*arrays):
        returned = machine["main"](*[tvm.runtime.tensor(array) for array in arrays])
        return [value.numpy() for value in ([returned] if hasattr(returned, "numpy") else returned)]

    return *[[tuple(port) for port in signature[side]] for side in ("inputs", "outputs")], call


FILES = ['0.onnx', '1.onnx', '2.so']
STEPS = [('onnx-sparse', convert_1), ('tvm-onnx', convert_2)]


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

SYMPTOM = 'rejected'  # Rejection
SECONDS = 120.0
ZERO_SIGNS = True  # are the signs of zeros compared?
ARRAYS = {
    'x0': array([[1.0, 1.0]], dtype='float32'),
}
EXPECTED = [
    array([1.0, 1.0], dtype='float64'),
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
