"""TFLite: its builtin operators, and those of a converted function."""

import tensorflow as tf
import tflite

NAMES = {code: name for name, code in vars(tflite.BuiltinOperator).items() if not name.startswith("_")}
DTYPES = {code: name.lower() for name, code in vars(tflite.TensorType).items() if not name.startswith("_")}


def listed():
    return {name: [] for name in NAMES.values()}


def observe(program, note):
    bound = [tf.constant(array) for array in plain_numbers(program["PARAMETERS"], 1).values()]
    signature = [tf.TensorSpec(shape, dtype) for dtype, shape in program["INPUTS"].values()]
    function = tf.function(lambda *inputs: program["model"](*inputs, *bound), signature, autograph=False)
    converter = tf.lite.TFLiteConverter.from_concrete_functions([function.get_concrete_function()])
    converter.canonicalizing_inf_as_min_max_float = False
    model = tflite.Model.GetRootAsModel(converter.convert(), 0)
    codes = [model.OperatorCodes(number) for number in range(model.OperatorCodesLength())]
    for place in range(model.SubgraphsLength()):
        graph = model.Subgraphs(place)
        for number in range(graph.OperatorsLength()):
            node = graph.Operators(number)
            code = codes[node.OpcodeIndex()]
            operator = NAMES[max(code.BuiltinCode(), code.DeprecatedBuiltinCode())]
            first = graph.Tensors(node.Inputs(0)).Type() if node.InputsLength() and node.Inputs(0) >= 0 else None
            note(operator, [] if first is None else [f"type {DTYPES[first]}"])
