"""Nodes that make the constants of an ONNX model. Read as text, behind onnx_equals.py."""


def constants_made(model):
    """The model with its small constants made by nodes."""
    graph, nodes = model.graph, list(model.graph.node)
    nodes = [*made_constants(graph, nodes), *nodes]
    del graph.node[:]
    graph.node.extend(nodes)
    onnx.checker.check_model(model, full_check=True)


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
    """Nodes that make one constant. free: no size depends on it."""
    name, kind = tensor.name, array.dtype.name
    bits = array.reshape(-1).view(f"u{array.itemsize}")
    if free and array.ndim and array.size > 1 and (bits == bits[0]).all():
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
