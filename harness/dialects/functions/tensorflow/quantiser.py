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


def tflite_parts(content):
    """For each operator a model of it alone, and the numbers of the tensors that this takes, constants apart, and
    returns."""
    import flatbuffers
    from tensorflow.lite.python import schema_py_generated as schema

    count = len(schema.ModelT.InitFromPackedBuf(content, 0).subgraphs[0].operators)
    for number in range(count):
        model = schema.ModelT.InitFromPackedBuf(content, 0)
        graph = model.subgraphs[0]
        operator = graph.operators[number]
        buffers = {int(i): model.buffers[graph.tensors[i].buffer].data for i in operator.inputs if i >= 0}
        graph.operators = [operator]
        graph.inputs = [i for i, data in buffers.items() if data is None or not len(data)]
        graph.outputs = [int(i) for i in operator.outputs]
        model.signatureDefs = []
        builder = flatbuffers.Builder(0)
        builder.Finish(model.Pack(builder), file_identifier=b"TFL3")
        yield bytes(builder.Output()), *[[str(i) for i in side] for side in (graph.inputs, graph.outputs)]


def tflite_on_litert(content, taken, returned, values):
    """The outputs of a model by their numbers, from LiteRT with XNNPACK. taken, returned: the numbers of inputs and
    outputs, in order; values: of the inputs."""
    from ai_edge_litert.interpreter import Interpreter

    if not set(taken) <= set(values):
        return {}  # of a kernel's scratch memory
    interpreter = Interpreter(model_content=content, num_threads=1)
    interpreter.allocate_tensors()
    for detail, name in zip(interpreter.get_input_details(), taken):
        interpreter.set_tensor(detail["index"], values[name])
    interpreter.invoke()
    return {name: interpreter.get_tensor(one["index"]) for one, name in zip(interpreter.get_output_details(), returned)}
