"""What an ONNX file says of its inputs: names of dimensions, rows of tables that they are indices of, words of
vocabularies, sizes."""

import re

THROUGH = {
    *("Cast", "Expand", "Flatten", "Identity", "Reshape", "Slice", "Squeeze", "StringNormalizer", "Tile", "Transpose"),
    "Unsqueeze",
}
"""Operators whose first input's elements are those of their output."""
WORDS = {
    "CategoryMapper": "cats_strings",
    "LabelEncoder": "keys_strings classes_strings",
    "OneHotEncoder": "cats_strings",
    "TfIdfVectorizer": "pool_strings",
}
"""Operators of text, with the attributes that hold what they know."""
EMBEDDED = ((0, 2), (1, 4))
"""EmbedLayerNormalization: places of indices, and of the tables that they are of."""


def taken(model):
    """{"rows": {input: rows}, "dims": {input: [name, ...]}, "words": {input: [word, ...]}, "sizes": [...]}."""
    graph = model.graph
    tables = {tensor.name: list(tensor.dims) for tensor in graph.initializer}
    origin = {value.name: value.name for value in graph.input if value.name not in tables}
    dims = {}
    for value in graph.input:
        dims[value.name] = [dim.dim_param for dim in value.type.tensor_type.shape.dim]
    rows, words = {}, {}

    def bound(index, table, axis=0):
        name, shape = origin.get(index), tables.get(table)
        if name and shape and -len(shape) <= axis < len(shape):
            rows[name] = min(rows.get(name, shape[axis]), shape[axis])

    for node in graph.node:
        attributes = {attribute.name: attribute for attribute in node.attribute}
        if node.op_type == "Constant" and "value" in attributes:
            tables[node.output[0]] = list(attributes["value"].t.dims)
        elif node.op_type == "Gather":
            bound(node.input[1], node.input[0], attributes["axis"].i if "axis" in attributes else 0)
        elif node.op_type == "EmbedLayerNormalization":
            for index, table in EMBEDDED:
                if len(node.input) > max(index, table):
                    bound(node.input[index], node.input[table])
        elif node.op_type in WORDS and node.input[0] in origin:
            stated = [attributes[name].strings for name in WORDS[node.op_type].split() if name in attributes]
            found = [word.decode(errors="replace") for some in stated for word in some]
            words.setdefault(origin[node.input[0]], []).extend(found)
        elif node.op_type in ("Identity", "Cast", "DequantizeLinear") and node.input[0] in tables:
            tables[node.output[0]] = tables[node.input[0]]
        elif node.op_type in THROUGH and node.input[0] in origin:
            origin[node.output[0]] = origin[node.input[0]]
        elif node.op_type == "Where" and node.input[2] in origin:  # negative indices become ones from the end
            origin[node.output[0]] = origin[node.input[2]]
    said = [item.value for item in model.metadata_props if re.search("size|sz|shape", item.key.lower())]
    sizes = [int(number) for text in said for number in re.findall(r"(?<![\d.])\d{1,4}(?![\d.])", text)]
    return {"rows": rows, "dims": dims, "words": words, "sizes": sorted({size for size in sizes if size >= 8})}
