"""What programs call that run a TFLite model in TVM. Read as text; a program carries the source of what it uses."""

import numpy as np


def tflite_parts(content):
    """For each operator: its number, a model of it alone, and the numbers of the tensors that this takes, constants
    apart, and returns."""
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
        yield number, bytes(builder.Output()), *[[str(i) for i in side] for side in (graph.inputs, graph.outputs)]


def tflite_on_tvm(content, taken, returned, values, passes, level):
    """The outputs of a model by their numbers, imported into Relax and compiled with these passes before the lowering
    and LLVM's optimisation at this level; nothing where the importer says that it does not implement an operator.
    taken, returned: the numbers of inputs and outputs, in order; values: of the inputs."""
    import tflite
    import tvm
    from tvm.relax.frontend.tflite import from_tflite

    try:
        module = from_tflite(tflite.Model.GetRootAsModel(content, 0))
    except tvm.error.OpNotImplemented:
        return {}
    results = run_on_tvm(module, [values[name] for name in taken], passes, level)  # noqa: F821 - functions/shared
    return dict(zip(returned, results))
