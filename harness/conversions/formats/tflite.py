"""TensorFlow Lite's flatbuffer, run by LiteRT and by tf.lite, each with XNNPACK, with its own kernels and with the
plain ones."""

from __future__ import annotations

from harness.backends.target.text import swapped
from harness.conversions.formats.format import Format, Runner, begins

SIGNED = """
def signed(path):
    # (the tensor, the name by the signature) of each output, in the order of the file: two of them may be one tensor,
    # and the signature may have another order. Empty where the signature does not say it
    from pathlib import Path

    import tflite

    model, names = tflite.Model.GetRootAsModel(Path(path).read_bytes(), 0), {}
    if model.SignatureDefsLength():
        signature = model.SignatureDefs(0)
        for one in map(signature.Outputs, range(signature.OutputsLength())):
            names.setdefault(one.TensorIndex(), []).append(one.Name().decode())
    graph = model.Subgraphs(0)
    tensors = list(map(graph.Outputs, range(graph.OutputsLength())))
    if {i: tensors.count(i) for i in tensors} != {i: len(found) for i, found in names.items()}:
        return []
    return [(graph.Tensors(i).Name().decode(), sorted(names[i])[tensors[:n].count(i)]) for n, i in enumerate(tensors)]
"""
"""For tools that take the outputs of a TFLite file as they stand there."""

_OPEN = """
def open_model(path):
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    interpreter = Interpreter(
        model_path=path, num_threads=1, experimental_op_resolver_type=OpResolverType.BUILTIN
    )
    names = list(interpreter.get_signature_list())

    def ports(details):
        return [
            (name, np.dtype(one["dtype"]).name, [None if d < 0 else int(d) for d in one["shape_signature"]])
            for name, one in details.items()
        ]

    if names:  # names survive in signatures only
        runner = interpreter.get_signature_runner("serving_default" if "serving_default" in names else names[0])
        inputs, outputs = ports(runner.get_input_details()), ports(runner.get_output_details())

        def call(*arrays):
            returned = runner(**{name: array for (name, _, _), array in zip(inputs, arrays)})
            return [returned[name] for name, _, _ in outputs]
    else:
        given, returned = interpreter.get_input_details(), interpreter.get_output_details()
        inputs, outputs = [[ports({one["name"]: one})[0] for one in side] for side in (given, returned)]

        def call(*arrays):
            for one, array in zip(given, arrays):
                interpreter.resize_tensor_input(one["index"], array.shape)
            interpreter.allocate_tensors()
            for one, array in zip(given, arrays):
                interpreter.set_tensor(one["index"], array)
            interpreter.invoke()
            return [interpreter.get_tensor(one["index"]) for one in returned]

    return inputs, outputs, call
"""

_TF_LITE = swapped(
    _OPEN,
    (
        "    from ai_edge_litert.interpreter import Interpreter, OpResolverType\n",
        "    import tensorflow as tf\n\n    Interpreter, OpResolverType = tf.lite.Interpreter, "
        "tf.lite.experimental.OpResolverType\n",
    ),
)

_INHERITS = {
    "BUILTIN": "litert-xnnpack",
    "BUILTIN_WITHOUT_DEFAULT_DELEGATES": "litert-builtin",
    "BUILTIN_REF": "litert-reference",
}

FORMATS = (Format("tflite", ".tflite", (".tflite",), begins(b"TFL3", at=4)),)

RUNNERS = tuple(
    Runner(
        name + suffix,
        "tflite",
        framework,
        modules,
        packages,
        swapped(text, ("Type.BUILTIN", f"Type.{kernels}")),
        reference=kernels == "BUILTIN_REF",
        inherits=(_INHERITS[kernels],),
        level=list(_INHERITS)[::-1].index(kernels),
        owner="LiteRT",
        refuses=(
            ("Select TensorFlow op.s., included in the given model", "it needs TensorFlow's kernels (TF Select)"),
            (r"Didn't find op for builtin opcode '(\w+)'", "no kernel for {}"),
            (r"IsPowerOfTwo\(fft_length_data\[\d\]\) was not true", "no Fourier transform of such a length"),
            ("block_shape->dims->data.0. != spatial_dims_num", "no blocks of so many dimensions of such a tensor"),
            (r"Encountered unresolved custom op: (\w+)", "no {}, an operator of its maker's own"),
        ),
    )
    for name, framework, modules, packages, text in (
        ("litert", "litert", ("ai_edge_litert.interpreter",), {"ai-edge-litert": "2.0"}, _OPEN),
        ("tf.lite", "tensorflow", ("tensorflow",), {"tensorflow-cpu|tensorflow": "2.16"}, _TF_LITE),
    )
    for suffix, kernels in (("", "BUILTIN"), ("-builtin", "BUILTIN_WITHOUT_DEFAULT_DELEGATES"), ("-ref", "BUILTIN_REF"))
)
