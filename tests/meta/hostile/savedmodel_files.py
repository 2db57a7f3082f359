"""SavedModels that an attacker would send, and such that nobody should refuse."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

Build = Callable[[Path, Path], Path]


def _saved(body: Callable[[Any, Any, str, str], Any]) -> Build:
    """body(tf, x, marker, secret): what the signature does beside returning its input plus one."""

    def build(folder: Path, marker: Path) -> Path:
        import tensorflow as tf

        module: Any = tf.Module()
        module.v = tf.Variable(tf.constant([1.0, 2.0]))

        def serve(x: Any) -> Any:
            body(tf, x, str(marker), str(marker.with_name("secret.txt")))
            return {"y": x + module.v}

        spec = tf.TensorSpec((2,), tf.float32, name="x")
        module.serve = tf.function(serve, input_signature=[spec], autograph=False)
        tf.saved_model.save(module, str(folder / "model"), signatures=module.serve)
        return folder / "model"

    return build


def _changed(change: Callable[[Path, Path], object]) -> Build:
    def build(folder: Path, marker: Path) -> Path:
        path = _plain(folder, marker)
        change(path, marker)
        return path

    return build


def _graph(change: Callable[[Any, str], object]) -> Build:
    def edit(path: Path, marker: Path) -> None:
        from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

        model = SavedModel.FromString((path / "saved_model.pb").read_bytes())
        change(model.meta_graphs[0], str(marker))
        (path / "saved_model.pb").write_bytes(model.SerializeToString())

    return _changed(edit)


def _link(path: Path, marker: Path) -> None:
    index = path / "variables" / "variables.index"
    index.unlink()
    index.symlink_to(marker.with_name("secret.txt"))


def _init(graph: Any, marker: str) -> None:
    graph.graph_def.node.add(name="evil", op="ReadFile", input=["x"])
    graph.signature_def["__saved_model_init_op"].outputs["__saved_model_init_op"].name = "evil"


def _itself(graph: Any, marker: str) -> None:
    function = graph.graph_def.library.function[0]
    function.node_def.add(name="again", op="PartitionedCall").attr["f"].func.name = function.signature.name


def _device(graph: Any, marker: str) -> None:
    graph.graph_def.node[0].device = "/job:worker/replica:0/task:1/device:CPU:0"


def _huge(graph: Any, marker: str) -> None:
    tensor = graph.graph_def.node.add(name="huge", op="Const").attr["value"].tensor
    tensor.dtype = 1
    tensor.tensor_shape.dim.add(size=1 << 40)


def _exported_saver(graph: Any, marker: str) -> None:
    name = next(one.signature.name for one in graph.graph_def.library.function if "traced_save" in one.signature.name)
    graph.graph_def.node.add(name="evil", op="StatefulPartitionedCall").attr["f"].func.name = name
    graph.signature_def["serving_default"].outputs["z"].name = "evil:0"


def _branch(tf: Any, x: Any, marker: str, _: str) -> None:
    tf.cond(tf.reduce_sum(x) > -1, lambda: tf.io.write_file(marker, "x"), tf.no_op)


def _unused(graph: Any, marker: str) -> None:
    """An optimiser may put a function in the place of another one."""
    function = graph.graph_def.library.function.add()
    function.signature.name = "unused"
    function.node_def.add(name="n", op="EagerPyFunc").attr["token"].s = b"pyfunc_0"


def _twice(graph: Any, marker: str) -> None:
    graph.graph_def.library.function.add().CopyFrom(graph.graph_def.library.function[0])


def _gradient(graph: Any, marker: str) -> None:
    """The gradient of a function that is called, which writes."""
    _unused(graph, marker)
    graph.graph_def.library.function[-1].node_def[0].op = "WriteFile"
    name = graph.graph_def.library.function[0].signature.name
    graph.graph_def.library.gradient.add(function_name=name, gradient_func="unused")


def _module(graph: Any, marker: str) -> None:
    node = graph.graph_def.node.add(name="evil", op="XlaCallModule")
    node.attr["module"].s = b"ML\xefRStableHLO_v1.0.0\x00garbage"


def _sparse(path: Path, marker: Path) -> None:
    with (path / "variables" / "variables.data-00001-of-00002").open("wb") as file:
        file.truncate(200 << 30)


_plain = _saved(lambda tf, x, marker, secret: None)

HOSTILE: dict[str, Build] = {
    "write": _saved(lambda tf, x, marker, _: tf.io.write_file(marker, "x")),
    "write-in-branch": _saved(_branch),
    "read": _saved(lambda tf, x, _, secret: tf.io.read_file(secret)),
    "matching": _saved(lambda tf, x, _, secret: tf.io.matching_files(secret)),
    "print": _saved(lambda tf, x, marker, _: tf.print("x", output_stream=f"file://{marker}")),
    "save": _saved(lambda tf, x, marker, _: tf.raw_ops.SaveV2(
        prefix=marker, tensor_names=["a"], shape_and_slices=[""], tensors=[x])),
    "restore": _saved(lambda tf, x, _, secret: tf.raw_ops.RestoreV2(
        prefix=secret, tensor_names=["a"], shape_and_slices=[""], dtypes=[tf.float32])),
    "merge": _saved(lambda tf, x, marker, _: tf.raw_ops.MergeV2Checkpoints(
        checkpoint_prefixes=[marker], destination_prefix=marker)),
    "python": _saved(lambda tf, x, _, __: tf.py_function(lambda v: v, [x], tf.float32)),
    "data-set": _saved(lambda tf, x, _, secret: tf.data.TextLineDataset(secret).reduce("", lambda a, b: b)),
    "reader": _saved(lambda tf, x, _, secret: tf.raw_ops.WholeFileReaderV2()),
    "debug": _saved(lambda tf, x, marker, _: tf.raw_ops.DebugIdentity(
        input=x, tensor_name="x:0", debug_urls=[f"file://{marker}"])),
    "dump": _saved(lambda tf, x, marker, _: tf.raw_ops.ImmutableConst(
        dtype=tf.float32, shape=[2], memory_region_name=marker)),
    "abort": _saved(lambda tf, x, _, __: tf.raw_ops.Abort()),
    "init": _graph(_init),
    "itself": _graph(_itself),
    "device": _graph(_device),
    "huge": _graph(_huge),
    "saver": _graph(_exported_saver),
    "asset": _graph(lambda graph, marker: graph.asset_file_def.add(filename="../../secret.txt")),
    "unused": _graph(_unused),
    "twice": _graph(_twice),
    "gradient": _graph(_gradient),
    "module": _graph(_module),
    "table": _saved(lambda tf, x, _, secret: tf.raw_ops.InitializeTableFromTextFileV2(
        table_handle=tf.raw_ops.HashTableV2(key_dtype=tf.string, value_dtype=tf.int64), filename=secret,
        key_index=-2, value_index=-1)),
    "vocabulary": _saved(lambda tf, x, _, secret: tf.raw_ops.FixedUnigramCandidateSampler(
        true_classes=[[1]], num_true=1, num_sampled=1, unique=False, range_max=9, vocab_file=secret)),
    "pipe": _changed(lambda path, _: os.mkfifo(path / "assets" / "pipe")),
    "sparse": _changed(_sparse),
    "as-text": _changed(lambda path, _: (path / "saved_model.pbtxt").write_bytes(b"x")),
    "link": _changed(_link),
    "chunked": _changed(lambda path, _: (path / "saved_model.cpb").write_bytes(b"x")),
    "garbage": _changed(lambda path, _: (path / "saved_model.pb").write_bytes(b"\xff" * 1000)),
}  # fmt: skip
EXECUTES = ("write", "write-in-branch", "print")
"""These make the marker's file where nothing stops them."""


def _table(folder: Path, marker: Path) -> Path:
    import tensorflow as tf

    words = folder / "words.txt"
    words.write_text("a\nb\n")
    module: Any = tf.Module()
    index = tf.lookup.TextFileIndex
    module.table = tf.lookup.StaticHashTable(
        tf.lookup.TextFileInitializer(str(words), tf.string, index.WHOLE_LINE, tf.int64, index.LINE_NUMBER), -1
    )
    spec = tf.TensorSpec((2,), tf.float32, name="x")
    module.serve = tf.function(
        lambda x: {"y": x + tf.cast(module.table.lookup(tf.constant(["b"])), tf.float32)}, input_signature=[spec]
    )
    tf.saved_model.save(module, str(folder / "model"), signatures=module.serve)
    return folder / "model"


def _strings(tf: Any, x: Any, _: str, __: str) -> None:
    words = tf.strings.split(tf.strings.regex_replace(tf.constant(["a b", "c"]), "[a-z]", "x"))
    tf.strings.reduce_join(words.to_tensor(), axis=1)
    tf.io.decode_image(tf.io.encode_png(tf.zeros((2, 2, 3), tf.uint8)))
    tf.io.parse_example(tf.constant([""]), {"a": tf.io.VarLenFeature(tf.int64)})


def _lists(tf: Any, x: Any, _: str, __: str) -> None:
    tf.map_fn(lambda one: one * 2, x)
    tf.scan(lambda a, b: a + b, x)
    tf.switch_case(tf.constant(1), [lambda: x, lambda: x + 1])
    tf.TensorArray(tf.float32, 0, dynamic_size=True).write(0, x).stack()


def _numbers(tf: Any, x: Any, _: str, __: str) -> None:
    square = tf.einsum("i,j->ij", x, x)
    tf.linalg.svd(square, compute_uv=False)
    tf.signal.fft(tf.cast(x, tf.complex64))
    tf.sparse.to_dense(tf.sparse.from_dense(square))
    tf.math.top_k(x, 1)
    tf.gradients(x * x, x)


HARMLESS: dict[str, Build] = {
    "plain": _plain,
    "strings": _saved(_strings),
    "lists": _saved(_lists),
    "numbers": _saved(_numbers),
    "table": _table,
    "random": _saved(lambda tf, x, _, __: tf.random.stateless_normal((2,), (1, 2))),
    "loop": _saved(lambda tf, x, _, __: tf.while_loop(lambda i: i < 3, lambda i: (i + 1,), [0])),
    "assert": _saved(lambda tf, x, _, __: tf.debugging.assert_greater(x, -1e30)),
}
