"""Attention by operators of com.microsoft, and all that onnx_microsoft.py says. Read as text, behind that file."""


def turned_heads(node, around):
    """Angles by places: all of them in one table, of which a batch of one names the first; heads side by side where
    there are several."""
    shape, angles = around.shape(node.input[0]), around.shape(node.input[1])
    if (
        shape is None
        or angles is None
        or len(shape) != 4
        or len(node.input) != 3
        or type_of(node, around) not in (SINGLE, HALF)
    ):
        return
    batch, heads, length, size = shape
    if 2 * angles[-1] != size or given(node).get("rotary_embedding_dim"):
        return
    tables = [around.op("Reshape", name, around.const([-1, angles[-1]], "int64")) for name in node.input[1:]]
    places = around.const([0] if batch == 1 else np.arange(batch * length).reshape(batch, length), "int64")
    x, turned = node.input[0], given(node).get("interleaved", 0)
    if heads > 1:
        x = in_line(around, x, shape)
        around.then(node, "Transpose", perm=[0, 2, 1, 3])
        around.then(node, "Reshape", around.const([batch, length, heads, size], "int64"))
    become(node, "RotaryEmbedding", x, places, *tables, **({"interleaved": turned} if turned else {}))


def in_line(around, x, shape):
    """Heads side by side in each row."""
    batch, heads, length, size = shape
    x = around.op("Transpose", x, perm=[0, 2, 1, 3])
    return around.op("Reshape", x, around.const([batch, length, heads * size], "int64"))


def many_heads(node, around):
    """As MultiHeadAttention, or as GroupQueryAttention where each place attends those up to itself and heads have eight
    features, or a multiple."""
    shapes, values = [around.shape(name) for name in node.input[:4]], given(node)
    if None in shapes or len(node.input) > 4 or len(node.output) > 1 or any(len(one) != 4 for one in shapes[:3]):
        return
    if type_of(node, around) != SINGLE or any(0 in one for one in shapes) or set(values) - {"is_causal", "scale"}:
        return
    (batch, heads, queries, size), (_, groups, keys, _), (*_, own) = shapes[:3]
    causal = bool(values.get("is_causal", 0))
    if causal and queries != keys:
        return  # it counts from the last key
    scale = {"scale": values["scale"]} if "scale" in values else {}
    behind = around.const([batch, queries, heads, own], "int64")
    q, k, v = node.input[:3]
    grouped = causal and own == size and not size % 8
    if not grouped and groups != heads:
        places = around.const(np.repeat(np.arange(groups), heads // groups), "int64")
        k, v = (around.op("Gather", one, places, axis=1) for one in (k, v))
        groups = heads
    line = [in_line(around, q, shapes[0])]
    if grouped:
        line += [in_line(around, one, (batch, groups, keys, size)) for one in (k, v)]
        lengths = around.const(np.full(batch, keys - 1), "int32"), around.const(keys, "int32")
        become(node, "GroupQueryAttention", *line, None, None, *lengths, num_heads=heads, kv_num_heads=groups, **scale)
    else:
        bias = added(node, around, shapes)
        past = 1 if keys > 1 and keys != queries and own == size else 0  # keys that came before
        parts = [one if not past else around.op("Slice", one, *cut(around, past, keys)) for one in (k, v)]
        line += [in_line(around, x, (batch, heads, keys - past, one)) for x, one in zip(parts, (size, own))]
        came = [around.op("Slice", one, *cut(around, 0, past)) for one in (k, v)] if past else []
        shift = nothing(around, heads * (2 * size + own), SINGLE) if batch == 1 and not past else None
        ends = [shift, None, bias, *came]
        while ends and ends[-1] is None:
            del ends[-1]
        one_way = {"unidirectional": 1} if causal else {}
        become(node, "MultiHeadAttention", *line, *ends, num_heads=heads, **one_way, **scale)
        if past:
            node.output.extend([around.name(), around.name()])
    around.then(node, "Transpose", perm=[0, 2, 1, 3])
    around.then(node, "Reshape", behind)


def cut(around, start, stop):
    """Operands of a Slice of the keys."""
    return [around.const([number], "int64") for number in (start, stop, 2)]


def added(node, around, shapes):
    """The mask as what is added to the scores, of four axes; None where there is none."""
    if len(shapes) < 4:
        return None
    mask = node.input[3]
    if around.types[mask] == np.bool_:
        mask = around.op("Where", mask, around.const(0, SINGLE), around.const(-np.inf, SINGLE))
    if len(shapes[3]) == 2:
        mask = around.op("Unsqueeze", mask, around.const([0, 1], "int64"))
    return mask


MICROSOFT = (
    ({"QuantizeLinear"}, 13, quantised_product),
    ({"Gelu"}, 20, gelu),
    ({"Swish"}, 24, swish),
    ({"LayerNormalization", "RMSNormalization"}, 17, normalised_sum),
    ({"Gather"}, 13, rows_in_blocks),
    ({"Gather"}, 13, embedded),
    ({"MatMul"}, 13, remembered),
    ({"MatMul"}, 13, weights_in_blocks),
    ({"MatMul"}, 13, product),
    ({"Gemm"}, 13, fused_product),
    ({"Conv"}, 13, fused_conv),
    ({"ConvTranspose"}, 13, spread),
    ({"QuantizeLinear", "DequantizeLinear"}, 13, quantised),
    ({"MatMulInteger"}, 13, in_whole_numbers),
    ({"MaxPool"}, 12, channels_last_pool),
    ({"RotaryEmbedding"}, 23, turned_heads),
    ({"Attention"}, 23, many_heads),
    (set(OLDER), 13, same_operator),
)
"""As RULES."""
