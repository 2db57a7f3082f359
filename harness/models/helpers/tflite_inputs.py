"""What a TFLite file says of its inputs: rows of tables that they are indices of."""

THROUGH = {"CAST", "EXPAND_DIMS", "QUANTIZE", "RESHAPE", "SQUEEZE", "STRIDED_SLICE", "TILE", "TRANSPOSE"}
CHOSEN = ("SELECT", "SELECT_V2")
"""By which negative indices become ones from the end: the third input is the index itself."""
TABLES = {"GATHER": (1, 0), "EMBEDDING_LOOKUP": (0, 1)}
"""Operators with the places of the indices and of the table."""


def taken(interpreter):
    """{"rows": {input: rows}} of a file that an interpreter has opened."""
    shapes = {one["index"]: [int(d) for d in one["shape"]] for one in interpreter.get_tensor_details()}
    origin = {one["index"]: one["name"] for one in interpreter.get_input_details()}
    signatures = interpreter.get_signature_list()
    if signatures:
        key = "serving_default" if "serving_default" in signatures else next(iter(signatures))
        details = interpreter.get_signature_runner(key).get_input_details()
        origin = {one["index"]: name for name, one in details.items()}
    made, rows = set(origin), {}
    operators = interpreter._get_ops_details()
    for operator in operators:
        inputs, name = [int(i) for i in operator["inputs"]], operator["op_name"]
        if name in TABLES:
            index, table = (inputs[place] for place in TABLES[name])
            if index in origin and table not in made and shapes.get(table):
                rows[origin[index]] = min(rows.get(origin[index], shapes[table][0]), shapes[table][0])
        elif name in THROUGH and inputs[0] in origin:
            origin.update({int(i): origin[inputs[0]] for i in operator["outputs"]})
        elif name in CHOSEN and inputs[2] in origin:
            origin.update({int(i): origin[inputs[2]] for i in operator["outputs"]})
        made.update(int(i) for i in operator["outputs"])
    return {"rows": rows}
