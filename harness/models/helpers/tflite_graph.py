"""What a TFLite file consists of: numbers in its constants, operators and how they are connected."""

from math import prod


def described(interpreter):
    """With plain types."""
    tensors = {one["index"]: one for one in interpreter.get_tensor_details()}
    ends = {one["index"] for one in interpreter.get_input_details()}
    operators, kinds, made = interpreter._get_ops_details(), {}, set(ends)
    for one in operators:
        kinds[one["op_name"]] = kinds.get(one["op_name"], 0) + 1
        made.update(int(index) for index in one["outputs"])

    def names(indices):
        return [tensors[int(i)]["name"] for i in indices if int(i) in tensors and int(i) in made]

    return {
        "opsets": {},
        "producer": "",
        "parameters": sum(prod(map(int, one["shape"])) for index, one in tensors.items() if index not in made),
        "operators": kinds,
        "dims": {},
        "nodes": [["", one["op_name"], names(one["inputs"]), names(one["outputs"])] for one in operators],
    }
