"""What programs that quantise TFLite models call. Read as text; a program carries the source of what it uses."""

import numpy as np
import tensorflow as tf


def tflite_model(content):
    """The operators of a model and how each of its tensors is quantised, as JSON can hold them; tensors go by their
    numbers."""
    from tensorflow.lite.python import schema_py_generated as schema

    parsed = schema.ModelT.InitFromPackedBuf(content, 0)
    graph, codes = parsed.subgraphs[0], {v: k for k, v in vars(schema.BuiltinOperator).items() if isinstance(v, int)}
    nodes = []
    for operator in graph.operators:
        code = parsed.operatorCodes[operator.opcodeIndex]
        options = vars(operator.builtinOptions) if operator.builtinOptions else {}
        plain = {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in options.items()}
        operands = ["" if i < 0 else str(i) for i in operator.inputs]
        name = codes[max(code.builtinCode, code.deprecatedBuiltinCode)]
        nodes.append([name, "", operands, [str(i) for i in operator.outputs], plain])
    tensors = {}
    for i, tensor in enumerate(graph.tensors):
        given = tensor.quantization
        if given is not None and given.scale is not None:
            scale, zero = (np.asarray(v).tolist() for v in (given.scale, given.zeroPoint))
            tensors[str(i)] = {"scale": scale, "zero": zero, "axis": int(given.quantizedDimension)}
    return nodes, tensors


def tflite_values(content, feeds, kernels):
    """All tensors by their numbers, and the numbers of inputs (in the order of `feeds`) and outputs. Inputs that the
    model takes as integers are quantised by its own scale and zero point, rounded to the nearest, half away from 0."""
    interpreter = tf.lite.Interpreter(
        model_content=content,
        experimental_preserve_all_tensors=True,
        experimental_op_resolver_type=tf.lite.experimental.OpResolverType[kernels],
        num_threads=1,
    )
    interpreter.allocate_tensors()
    given = {}
    for detail in interpreter.get_input_details():
        name = detail["name"].split(":")[0].removeprefix("serving_default_")
        array, (scale, zero) = feeds[name], detail["quantization"]
        if array.dtype == np.float32 and detail["dtype"] != np.float32:
            limits, level = np.iinfo(detail["dtype"]), array / np.float32(scale)
            level = np.copysign(np.floor(np.abs(level) + np.float32(0.5)), level) + zero
            array = np.clip(level, limits.min, limits.max).astype(detail["dtype"])
        interpreter.set_tensor(detail["index"], array)
        given[name] = str(detail["index"])
    interpreter.invoke()
    values = {}
    for detail in interpreter.get_tensor_details():
        try:
            values[str(detail["index"])] = interpreter.get_tensor(detail["index"])
        except ValueError:
            continue  # scratch memory of a kernel
    return values, given, [str(detail["index"]) for detail in interpreter.get_output_details()]
