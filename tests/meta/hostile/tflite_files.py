"""TFLite files that an attacker would send, and such that nobody should refuse."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

Build = Callable[[Path, Path], Path]


def _model(change: Callable[[Any, Any, str], object] | None = None) -> Build:
    """A file of one operator, RELU, as an object that `change` may change."""

    def build(folder: Path, marker: Path) -> Path:
        import flatbuffers
        from tensorflow.lite.python import schema_py_generated as schema

        tensors = []
        for name in (b"x", b"y"):
            tensor: Any = schema.TensorT()
            tensors.append(tensor)
            tensor.name, tensor.shape, tensor.buffer, tensor.type = name, [2], 0, 0
        operator, code, graph, model = schema.OperatorT(), schema.OperatorCodeT(), schema.SubGraphT(), schema.ModelT()
        operator.inputs, operator.outputs, operator.opcodeIndex = [0], [1], 0
        code.builtinCode = code.deprecatedBuiltinCode = 19
        graph.tensors, graph.inputs, graph.outputs, graph.operators = tensors, [0], [1], [operator]
        model.version, model.operatorCodes, model.subgraphs, model.buffers = 3, [code], [graph], [schema.BufferT()]
        if change:
            change(model, schema, str(marker))
        builder = flatbuffers.Builder(1024)
        builder.Finish(model.Pack(builder), b"TFL3")
        path = folder / "model.tflite"
        path.write_bytes(builder.Output())
        return path

    return build


def _custom(name: str) -> Build:
    return _model(lambda model, schema, _: _set(model, name, b""))


def _set(model: Any, name: str, options: bytes) -> None:
    code = model.operatorCodes[0]
    code.builtinCode = code.deprecatedBuiltinCode = 32
    code.customCode = name.encode()
    model.subgraphs[0].operators[0].customOptions = list(options)


def _flex(operator: str, told: str | None = None, calls: str = "", **text: str) -> Build:
    def change(model: Any, schema: Any, marker: str) -> None:
        from flatbuffers import flexbuffers
        from tensorflow.core.framework.node_def_pb2 import NodeDef

        node = NodeDef(name="n", op=operator, input=["x"])
        for key, value in text.items():
            node.attr[key].s = value.replace("MARKER", marker).encode()
        if calls:
            node.attr["f"].func.name = calls
        builder = flexbuffers.Builder()
        with builder.Vector():
            builder.String(told or operator)
            builder.String(node.SerializeToString().decode("latin1"))
        _set(model, f"Flex{told or operator}", bytes(builder.Finish()))

    return _model(change)


def _at(**values: Any) -> Build:
    """Changes of the first tensor."""
    return _model(lambda model, *_: [setattr(model.subgraphs[0].tensors[0], *one) for one in values.items()])


def _itself(model: Any, schema: Any, _: str) -> None:
    code, operator = model.operatorCodes[0], model.subgraphs[0].operators[0]
    code.builtinCode, code.deprecatedBuiltinCode = 129, 127
    operator.builtinOptionsType = schema.BuiltinOptions.CallOnceOptions
    operator.builtinOptions = schema.CallOnceOptionsT()
    operator.builtinOptions.initSubgraphIndex = 0


def _outside(model: Any, schema: Any, _: str) -> None:
    """Bytes that begin behind the end of the file."""
    model.buffers[0].offset, model.buffers[0].size = 1 << 40, 8


def _metadata(model: Any, schema: Any, _: str) -> None:
    entry = schema.MetadataT()
    entry.name, entry.buffer = b"m", 99
    model.metadata = [entry]


def _signature(model: Any, schema: Any, _: str) -> None:
    one = schema.SignatureDefT()
    one.signatureKey, one.subgraphIndex, one.inputs, one.outputs = b"s", 7, [], []
    model.signatureDefs = [one]


HOSTILE: dict[str, Build] = {
    "flex-function": _flex("PartitionedCall", calls="f"),
    "flex-restore": _flex("RestoreV2"),
    "flex-table": _flex("InitializeTableFromTextFileV2"),
    "buffer-outside": _model(_outside),
    "metadata": _model(_metadata),
    "signature": _model(_signature),
    "code": _model(lambda model, *_: setattr(model.subgraphs[0].operators[0], "opcodeIndex", 5)),
    "dimensions": _at(shape=[1] * 1000),
    "short": _model(lambda model, *_: setattr(model.buffers[0], "data", [1])),
    "flex-write": _flex("WriteFile"),
    "flex-read": _flex("ReadFile"),
    "flex-print": _flex("PrintV2", output_stream="file://MARKER"),
    "flex-save": _flex("SaveV2"),
    "flex-python": _flex("EagerPyFunc"),
    "flex-disguised": _flex("WriteFile", told="Relu"),
    "flex-empty": _custom("FlexRelu"),
    "custom": _custom("System"),
    "terminal": _at(name=b"\x1b]0;owned\x07"),
    "buffer": _at(buffer=77),
    "huge": _at(shape=[1 << 30, 1 << 30]),
    "negative": _at(shape=[-7]),
    "tensor": _model(lambda model, *_: setattr(model.subgraphs[0].operators[0], "inputs", [9])),
    "itself": _model(_itself),
    "garbage": lambda folder, marker: _bytes(folder, b"\x20\0\0\0TFL3" + b"\xff" * 500),
}


def _bytes(folder: Path, data: bytes) -> Path:
    path = folder / "model.tflite"
    path.write_bytes(data)
    return path


def _converted(how: str) -> Build:
    """A network as TensorFlow's converter writes it."""

    def build(folder: Path, marker: Path) -> Path:
        import numpy as np
        import tensorflow as tf

        def serve(x: Any) -> dict[str, Any]:
            y = tf.nn.relu(tf.nn.conv2d(x, tf.ones((3, 3, 1, 4)), 1, "SAME"))
            y = tf.while_loop(lambda i, z: i < 3, lambda i, z: (i + 1, z * 2), (0, y))[1] if how == "loop" else y
            return {"y": tf.math.tan(y) if how == "select" else tf.matmul(y, tf.ones((4, 2)))}

        function = tf.function(serve, input_signature=[tf.TensorSpec((1, 6, 6, 1), tf.float32, name="x")])
        converter = tf.lite.TFLiteConverter.from_concrete_functions([function.get_concrete_function()])
        sets = tf.lite.OpsSet
        if how == "select":
            converter.target_spec.supported_ops = [sets.TFLITE_BUILTINS, sets.SELECT_TF_OPS]
        elif how != "loop":
            converter.optimizations = [tf.lite.Optimize.DEFAULT]
        if how == "float16":
            converter.target_spec.supported_types = [tf.float16]
        if how == "int8":
            converter.representative_dataset = lambda: [[np.ones((1, 6, 6, 1), "float32")]]
            converter.target_spec.supported_ops = [sets.TFLITE_BUILTINS_INT8]
        path = folder / "model.tflite"
        path.write_bytes(converter.convert())
        return path

    return build


HARMLESS: dict[str, Build] = {
    "relu": _model(),
    **{f"converted-{how}": _converted(how) for how in ("dynamic", "float16", "int8", "loop", "select")},
    "flex": _flex("Relu"),
    "detection": _custom("TFLite_Detection_PostProcess"),
    "dynamic": _at(shapeSignature=[-1]),
}
