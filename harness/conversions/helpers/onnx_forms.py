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
