"""Nodes that make the constants of an ONNX model. Read as text, behind onnx_equals.py."""


def constants_made(model):
    """The model with its small constants made by nodes, and those that are quantised stored so."""
    graph, held = model.graph, constants_of(model.graph)
    nodes = [stored(node, held) for node in graph.node]
    nodes = [*made_constants(graph, nodes), *nodes]
    del graph.node[:]
    graph.node.extend(nodes)
    onnx.checker.check_model(model, full_check=True)


def stored(node, held):
    """In place of a node that quantises a constant what it makes, as weights are stored."""
    parts = [held.get(name) for name in node.input]
    if node.op_type != "QuantizeLinear" or len(parts) < 3 or any(one is None for one in parts):
        return node
    numbers, scale, point = parts
    if numbers.dtype != np.float32 or point.dtype not in (np.int8, np.uint8) or given(node).get("block_size"):
        return node
    if scale.ndim:
        axis = given(node).get("axis", 1) % numbers.ndim
        shape = [-1 if place == axis else 1 for place in range(numbers.ndim)]
        scale, point = scale.reshape(shape), point.reshape(shape)
    with np.errstate(all="ignore"):
        levels = np.rint(numbers / scale) + point.astype("float32")
    if not np.isfinite(levels).all():
        return node
    limits = np.iinfo(point.dtype)
    quantised = np.clip(levels, limits.min, limits.max).astype(point.dtype)
    return constant(node.output[0], value=numpy_helper.from_array(quantised))


def made_constants(graph, nodes):
    """Nodes that make the small constants, and what they replace is no longer held: numbers by attributes of their own,
    equal ones by ConstantOfShape where no size depends on them, counts by Range."""
    made = []
    asked = {one.name for one in (*graph.output, *graph.input)}
    takers = {}
    for node in nodes:
        for name in node.input:
            takers.setdefault(name, set()).add(node.op_type)
    for tensor in [one for one in graph.initializer if one.name not in asked and 0 < np.prod(one.dims) <= 64]:
        if tensor.data_location != onnx.TensorProto.EXTERNAL and tensor.data_type in PLAIN:
            array = numpy_helper.to_array(tensor)
            made += making(tensor, array, takers.get(tensor.name, {""}) <= PLAIN_TAKERS)
            graph.initializer.remove(tensor)
    return made


PLAIN_TAKERS = {"Add", "Sub", "Mul", "Div", "Pow", "Where", "Max", "Min", "Less", "Greater", "Equal", "Concat"}
OWN = {"float32": ("value_float", "value_floats"), "int64": ("value_int", "value_ints")}


def making(tensor, array, free):
    """Nodes that make one constant. free: no size depends on it. What has a number of its own in no attribute is made
    by a shape without sizes where it is a scalar."""
    name, kind = tensor.name, array.dtype.name
    bits = array.reshape(-1).view(f"u{array.itemsize}")
    scalar = array.ndim == 0 and kind not in OWN
    if free and (scalar or (array.ndim and array.size > 1)) and (bits == bits[0]).all():
        size = constant(f"{name}.size", value=numpy_helper.from_array(np.array(array.shape, "int64")))
        one = numpy_helper.from_array(array.reshape(-1)[:1])
        value = {} if kind == "float32" and not array.tobytes().strip(b"\0") else {"value": one}
        return [size, helper.make_node("ConstantOfShape", size.output, [name], **value)]
    counts = kind in OWN and array.ndim == 1 and array.size > 2
    if free and counts and np.array_equal(array, np.arange(array.size)):
        ends = [
            constant(f"{name}.{end}", value=numpy_helper.from_array(np.array(end, kind))) for end in (0, array.size, 1)
        ]
        return [*ends, helper.make_node("Range", [one.output[0] for one in ends], [name])]
    if kind in OWN and array.ndim < 2:
        return [constant(name, **{OWN[kind][array.ndim]: array.tolist()})]
    return [constant(name, value=tensor)]


def constant(name, **attribute):
    return helper.make_node("Constant", [], [name], **attribute)
