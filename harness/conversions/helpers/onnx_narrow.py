"""Quantised constants of an ONNX model, stored in as few bits as hold them. Read as text, behind onnx_constants.py and
onnx_opsets.py."""

SINCE_TWO_BITS = 25
"""The opset that has numbers of two bits; those of four are older."""


def narrowed(model):
    """The model in that opset, with constants that are quantised stored as integers of two or four bits, where these
    hold them; a matrix of such with a scale for each column in blocks of 16 rows. Raises NotImplementedError where none
    is."""
    if opset_of(model) < SINCE_TWO_BITS:
        move(model, SINCE_TWO_BITS)
    graph, held, count = model.graph, constants_of(model.graph, 4096), 0
    made = {}
    for node in graph.node:
        if node.op_type == "QuantizeLinear" and stored(node, held).op_type == "Constant":
            made[node.output[0]] = numpy_helper.to_array(stored(node, held).attribute[0].t)
    for node in graph.node:
        if node.op_type == "DequantizeLinear" and node.input[0] in made and len(node.input) == 3:
            levels = made[node.input[0]].astype("int64")
            count += store(graph, node, levels, *(held[name] for name in node.input[1:]))
    if not count:
        raise NotImplementedError(f"no constant of a few levels: no such form in opset {SINCE_TWO_BITS} is another one")
    taken = {name for node in graph.node for name in node.input} | {one.name for one in graph.output}
    nodes = [node for node in graph.node if node.output[0] in taken or node.output[0] not in made]
    del graph.node[:]
    graph.node.extend(nodes)
    onnx.checker.check_model(model, full_check=True)


def store(graph, node, levels, scale, point):
    """Counted from each zero point: without one where signed numbers hold them, else from the least that is there. Is
    it done?"""
    axis = given(node).get("axis", 1) % levels.ndim if scale.ndim and levels.ndim else None
    spread = [-1 if place == axis else 1 for place in range(levels.ndim)]
    moved = levels - (point.astype("int64").reshape(spread) if scale.ndim else int(point))
    low, high = (int(function(moved, initial=0)) for function in (np.min, np.max))
    if not levels.size:
        return False
    signed = point.dtype == np.int8
    for bits in (2, 4):
        least = -(2 ** (bits - 1)) if signed else 0
        zero = 0 if signed and least <= low and high < -least else least - low
        if high + zero < least + 2**bits and zero < least + 2**bits:
            break
    else:
        return False
    kind = getattr(onnx.TensorProto, f"{'' if signed else 'U'}INT{bits}")
    if levels.ndim == 2 and axis == 1 and len(levels) > 1:
        scale = np.repeat(scale[None], -(-len(levels) // 16), 0)
        put(node, "axis", 0)
        put(node, "block_size", 16)
    arrays = {"levels": moved + zero, "scale": scale, "zero": np.full(scale.shape, zero)}
    names = {part: f"{node.output[0]}.{part}" for part in arrays}
    for part, array in arrays.items():
        element = onnx.TensorProto.FLOAT if part == "scale" else kind
        graph.initializer.append(helper.make_tensor(names[part], element, array.shape, array.ravel().tolist()))
    node.input[:] = [names[part] for part in arrays if zero or part != "zero"]
    return True
