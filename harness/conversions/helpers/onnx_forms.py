"""The same ONNX model in another form. Read as text; the program of an edge carries it."""

import numpy as np
import onnx
from onnx import defs, helper, numpy_helper

OPSETS = (8, 10, 11, 12, 13, 14, 17, 18, 21, 23, 24, 26)
"""Of almost every operator each version since opset 7 is that of one of these, or of 20, in which drawn graphs are
written (23 with attention)."""
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


def constants_of(graph):
    """Name -> array of what a graph holds, small ones only: larger ones are weights."""
    held = {tensor.name: tensor for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            held[node.output[0]] = node.attribute[0].t
    outside = onnx.TensorProto.EXTERNAL
    small = {name: one for name, one in held.items() if one.data_location != outside and np.prod(one.dims) <= 64}
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

    if kind in ("Conv", "ConvTranspose") or (kind.endswith("Pool") and "kernel_shape" in values):
        kernel = values.get("kernel_shape", list(shapes[min(1, len(shapes) - 1)][2:]))
        attributes = schema_of(node, opset).attributes
        ones, zeros = [1] * len(kernel), [0] * 2 * len(kernel)
        fixed = ("kernel_shape", kernel), ("strides", ones), ("dilations", ones), ("pads", zeros)
        for name, value in (*fixed, ("output_padding", [0] * len(kernel))):
            sized = name == "pads" and (values.get("auto_pad", b"NOTSET") != b"NOTSET" or "output_shape" in values)
            if name in attributes and name not in values and not sized:
                put(node, name, value)
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
CHANGED = {"Resize": 13, "RoiAlign": 16, "GroupNormalization": 21, "OneHot": 11}
"""Operators whose meaning, or demanded operands, were other ones before this opset."""

OLD_NAMES = {("GridSample", "mode", "linear"): (20, "bilinear"), ("GridSample", "mode", "cubic"): (20, "bicubic")}
"""What a value of an attribute was called before this opset."""


def move(model, opset):
    """The model in another opset of ONNX. Newer ones have every form that these nodes have. Raises NotImplementedError
    where an operator, an attribute or an operand that is no constant has no older form."""
    before, shapes = opset_of(model), ranks_of(model)
    for graph, node in standard(model.graph):
        if opset < before:
            aged(node, before, opset, constants_of(graph), shapes)
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


def aged(node, before, opset, constants, shapes):
    """One node in an older opset."""
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
        if shape is None or axis % len(shape) != len(shape) - 1:
            refuse(node, opset, "it would flatten the axes behind")
        put(node, "axis", len(shape) - 1)
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
