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
