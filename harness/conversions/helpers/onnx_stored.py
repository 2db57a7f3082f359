"""How an ONNX model holds the numbers of its constants. Read as text, behind onnx_forms.py."""


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
