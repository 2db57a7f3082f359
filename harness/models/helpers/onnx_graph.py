"""What an ONNX file consists of: opsets, producer, numbers in its constants, operators and how they are connected."""

from math import prod


def graphs_in(graph):
    """It, and those inside its nodes."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for inner in [*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs]:
                yield from graphs_in(inner)


def dims_of(value):
    return [dim.dim_param or (dim.dim_value if dim.HasField("dim_value") else None) for dim in shape_of(value)]


def shape_of(value):
    return value.type.tensor_type.shape.dim if value.type.HasField("tensor_type") else []


def described(model):
    """With plain types."""
    graph, numbers, kinds = model.graph, 0, {}
    constants = {tensor.name for tensor in graph.initializer}
    for one in graphs_in(graph):
        numbers += sum(prod(tensor.dims) for tensor in one.initializer)
        for node in one.node:
            kind = f"{node.domain}.{node.op_type}" if node.domain not in ("", "ai.onnx") else node.op_type
            kinds[kind] = kinds.get(kind, 0) + 1
            if node.op_type == "Constant":
                numbers += sum(prod(a.t.dims) for a in node.attribute if a.HasField("t"))
    nodes = [[n.name, n.op_type, [i for i in n.input if i and i not in constants], list(n.output)] for n in graph.node]
    return {
        "opsets": {one.domain or "ai.onnx": one.version for one in model.opset_import},
        "producer": f"{model.producer_name} {model.producer_version}".strip(),
        "parameters": numbers,
        "operators": kinds,
        "dims": {v.name: dims_of(v) for v in [*graph.input, *graph.output] if v.name not in constants},
        "nodes": nodes,
    }
