"""What a file says of its inputs, and what is tried where it leaves them open."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from examples.commands import model as run_model
from onnx import TensorProto, helper, numpy_helper

from harness.conversions.model_file import FormatError, Port
from harness.execute.pool import Pool
from harness.models.given.inputs import OTHER, drawn, fitted
from harness.models.given.takes import SIZES, Takes, draw, shapes_for, takes_of
from harness.models.reference import emptied
from harness.models.variants import ModelFile
from oracles.judge.outcome import Crash, Outcome, Rejected, Value

IMAGE = Port("x", "float32", (None, 3, None, None))


@pytest.fixture(scope="module")
def workers() -> Iterator[Pool]:
    with Pool() as pool:
        yield pool


def saved(path: Path, nodes: list, inputs: list, constants: list, **metadata: str) -> ModelFile:
    values = [helper.make_tensor_value_info(name, kind, shape) for name, kind, shape in inputs]
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    tensors = [numpy_helper.from_array(array, name) for name, array in constants]
    graph = helper.make_graph(nodes, "g", values, [y], tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    helper.set_model_props(model, metadata)
    onnx.save(model, path)
    return ModelFile(path, "onnx")


def embedding(path: Path) -> ModelFile:
    """Rows of a table of 5 by a table of 3 that is read sideways."""
    nodes = [
        helper.make_node("Cast", ["ids"], ["i"], to=TensorProto.INT64),
        helper.make_node("Unsqueeze", ["i", "one"], ["j"]),
        helper.make_node("Gather", ["words", "j"], ["a"]),
        helper.make_node("Gather", ["kinds", "types"], ["b"], axis=1),
        helper.make_node("ReduceSum", ["a"], ["c"], keepdims=0),
        helper.make_node("ReduceSum", ["b"], ["d"], keepdims=0),
        helper.make_node("Add", ["c", "d"], ["y"]),
    ]
    inputs = [("ids", TensorProto.INT32, ["batch", "seq"]), ("types", TensorProto.INT64, ["batch", "seq"])]
    tables = [("words", np.ones((5, 2), np.float32)), ("kinds", np.ones((4, 3), np.float32)), ("one", np.array([1]))]
    return saved(path, nodes, inputs, tables)


def test_tables_of_onnx_bound_what_is_drawn(workers: Pool, tmp_path: Path) -> None:
    takes = takes_of(workers, embedding(tmp_path / "net.onnx"))
    assert takes.rows == {"ids": 5, "types": 3}
    assert takes.dims == {"ids": ["batch", "seq"], "types": ["batch", "seq"]}
    ports = [Port(name, kind, (None, None)) for name, kind in (("ids", "int32"), ("types", "int64"), ("mask", "int64"))]
    ((ids, types, mask),), found = draw(ports, takes, 0, 1, {}, None, lambda arrays: Value(()))
    assert (set(ids.flat), set(types.flat), set(mask.flat)) == (set(range(5)), set(range(3)), {0, 1})
    assert found.told == "ids is drawn below 5; types is drawn below 3; mask is drawn below 2"
    free = drawn(ports, 0, 1, {"ids": (1, 99)})[0][0]
    assert max(free.flat) == 9  # what is not known is drawn as it was


KERAS = """
import sys

import keras

ids = keras.Input((4,), name="ids")
wide = keras.Input((2,), name="wide")
rows = keras.layers.Embedding(6, 3)(ids)
y = keras.layers.Dense(2)(keras.layers.Concatenate()([keras.layers.Flatten()(rows), wide]))
keras.Model([ids, wide], y).save(sys.argv[1] + "/functional.keras")
model = keras.Sequential([keras.Input((4,), name="words"), keras.layers.Embedding(7, 3), keras.layers.Flatten()])
model.save(sys.argv[1] + "/sequential.keras")

import tensorflow as tf

converter = tf.lite.TFLiteConverter.from_keras_model(model)
open(sys.argv[1] + "/net.tflite", "wb").write(converter.convert())
"""


@pytest.mark.slow
def test_embeddings_of_keras_and_tflite(workers: Pool, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", KERAS, str(tmp_path)], check=True, capture_output=True)
    found = {
        name: takes_of(workers, ModelFile(tmp_path / name, name.rpartition(".")[2])).rows
        for name in ("functional.keras", "sequential.keras", "net.tflite")
    }
    assert found["functional.keras"] == {"ids": 6}
    assert found["sequential.keras"] == {"words": 7}
    assert list(found["net.tflite"].values()) == [7]


def test_dimensions_of_one_name_have_one_size_and_sums_that_of_their_terms() -> None:
    ids, mask = (Port(name, "int64", (None, None)) for name in ("ids", "mask"))
    ports = [ids, Port("past", "float32", (None, 2, None, 4)), mask]
    dims = {"ids": ["n", "new"], "past": ["n", "", "old", ""], "mask": ["n", "old + new"]}
    takes = Takes(dims=dims)
    assert shapes_for(ports, takes, {}, 8) == {"ids": (1, 8), "past": (1, 2, 8, 4), "mask": (1, 16)}
    found = shapes_for(ports, takes, {"past": (3, 2, 5, 4)}, 8)
    assert found == {"ids": (3, 8), "past": (3, 2, 5, 4), "mask": (3, 13)}
    assert shapes_for([IMAGE], Takes(), {}, 8) == {"x": (1, 3, 8, 8)}


def only(*sizes: int) -> tuple[list[tuple[int, ...]], object]:
    """The shapes that were asked, and what takes images of these sizes alone."""
    asked: list[tuple[int, ...]] = []

    def call(arrays: Sequence[np.ndarray]) -> Outcome:
        asked.append(arrays[0].shape)
        return Value(()) if arrays[0].shape[-1] in sizes else Rejected("Fail", "invalid dimensions")

    return asked, call


def test_other_sizes_are_tried_where_the_usual_one_is_refused() -> None:
    asked, call = only(OTHER)
    (arrays, *_), found = draw([IMAGE], Takes(), 0, 2, {}, None, call)  # pyright: ignore[reportArgumentType]
    assert (arrays[0].shape, found.told, len(asked)) == ((1, 3, 32, 32), "", 2)
    _, call = only(224)
    (arrays, *_), found = draw([IMAGE], Takes(), 0, 1, {}, None, call)  # pyright: ignore[reportArgumentType]
    assert arrays[0].shape == (1, 3, 224, 224)
    assert found.told == "x is drawn as [1, 3, 224, 224]: with sizes of 32 it is refused"
    asked, call = only(288)
    (arrays, *_), found = draw([IMAGE], Takes(sizes=[288]), 0, 1, {}, None, call)  # pyright: ignore[reportArgumentType]
    assert (arrays[0].shape[-1], len(asked)) == (288, 2)  # what the metadata name comes first
    _, call = only()
    (arrays, *_), found = draw([IMAGE], Takes(), 0, 1, {}, None, call)  # pyright: ignore[reportArgumentType]
    assert arrays[0].shape == (1, 3, 32, 32)
    assert set(found.tried) <= {OTHER, *SIZES}
    assert {1, 16, 32, 64, 128, 224, 320, 640} <= set(found.tried)


def test_what_is_given_fixed_or_crashes_is_not_tried() -> None:
    for port, shapes, outcome in (
        (IMAGE, {"x": (1, 3, 5, 5)}, Rejected("Fail", "no")),
        (Port("x", "float32", (1, 3)), {}, Rejected("Fail", "no")),
        (IMAGE, {}, Crash("signal SIGSEGV")),
    ):
        _, found = draw([port], Takes(), 0, 1, shapes, None, lambda arrays, outcome=outcome: outcome)
        assert (found.told, found.tried) == ("", ())


def test_smaller_whole_numbers_are_tried() -> None:
    ports = [Port("ids", "int64", (1, 4)), IMAGE]

    def call(arrays: Sequence[np.ndarray]) -> Outcome:
        return Value(()) if arrays[0].max() < 2 else Rejected("Fail", "out of bounds")

    ((ids, image),), found = draw(ports, Takes(), 0, 1, {}, None, call)
    assert (ids.max(), image.shape) == (1, (1, 3, 32, 32))
    assert found.told == "ids is drawn below 2: greater ones are refused"
    ((ids, _),), found = draw(ports, Takes(), 0, 1, {}, (5, 9), call)  # what is asked for is not changed
    assert ids.min() >= 5
    assert found.told == ""


def test_text_is_read() -> None:
    port = Port("words", "string", (None,))
    assert list(fitted(port, np.array(["a", "bcd"]), "x.npz")) == ["a", "bcd"]
    for array in (np.ones(2), np.array([["a"]])):
        with pytest.raises(FormatError, match="does not fit input words"):
            fitted(port, array, "x.npz")
    with pytest.raises(FormatError, match="does not fit input x"):
        fitted(Port("x", "float32", (2,)), np.array(["1", "2"]), "x.npz")


def test_text_is_drawn_from_what_the_file_knows(workers: Pool, tmp_path: Path) -> None:
    nodes = [
        helper.make_node("StringNormalizer", ["text"], ["lower"], case_change_action="LOWER"),
        helper.make_node(
            *("LabelEncoder", ["lower"], ["y"]),
            domain="ai.onnx.ml",
            keys_strings=["a", "bcd"],
            values_floats=[1.0, 2.0],
        ),
    ]
    file = saved(tmp_path / "text.onnx", nodes, [("text", TensorProto.STRING, [None])], [])
    takes = takes_of(workers, file)
    assert takes.words == {"text": ["a", "bcd"]}
    ports = [Port("text", "string", (None,)), Port("other", "string", (9,))]
    ((text, other),) = drawn(ports, 0, 1, {"text": (99,)}, words=takes.words)
    assert set(text.tolist()) == {"a", "bcd"}
    assert other.shape == (9,)
    with pytest.raises(FormatError, match="inputs of seq are not drawn: give x with --inputs"):
        drawn([Port("x", "seq", (2,))], 0, 1, {})


def command(*arguments: str | Path) -> tuple[int, str]:
    """Exit status and output of `model`."""
    few = "--targets", "ort-all,onnx-reference", "--no-conversions", "--runs", "0", "--iterations", "2"
    return run_model(*arguments, *few)


def flattened(path: Path, side: int, **metadata: str) -> Path:
    """A network that takes images of one size, and declares any."""
    nodes = [helper.make_node("Reshape", ["x", "shape"], ["a"]), helper.make_node("Tanh", ["a"], ["y"])]
    shape = [("shape", np.array([1, 3 * side * side]))]
    return saved(path, nodes, [("x", TensorProto.FLOAT, ["n", 3, "h", "w"])], shape, **metadata).path


@pytest.mark.slow
def test_from_the_command(tmp_path: Path) -> None:
    out = "--out", tmp_path / "out"
    status, told = command(flattened(tmp_path / "a.onnx", 64), *out)
    assert status == 0, told
    assert "inputs: x is drawn as [1, 3, 64, 64]: with sizes of 32 it is refused" in told
    status, told = command(flattened(tmp_path / "b.onnx", 88, imgsz="[88, 88]"), *out)
    assert status == 0, told
    assert "x is drawn as [1, 3, 88, 88]" in told
    status, told = command(flattened(tmp_path / "c.onnx", 77), *out)
    assert status == 3, told
    line = r"Inputs refused: 2 of 2 variants refuse what was drawn \(x: float32\[1, 3, 32, 32\]; sizes 1, 8, 16, .*"
    assert re.search(line, told), told
    assert "give others by --inputs FILE.npz, or shapes by --input-shapes 'x:[...]'" in told
    assert "reproducer" not in told
    assert not list((tmp_path / "out").rglob("reproducer.py"))
    status, told = command(tmp_path / "c.onnx", "--input-shapes", "x:[1,3,77,77]", *out)
    assert status == 0, told
    status, told = command(embedding(tmp_path / "d.onnx").path, *out)
    assert status == 0, told
    assert "inputs: ids is drawn below 5; types is drawn below 3" in told


def test_sizes_that_leave_a_pool_without_elements_are_told(workers: Pool, tmp_path: Path) -> None:
    """And none where the input itself has none, or the evaluation fails."""
    nodes = [
        helper.make_node("MaxPool", ["x"], ["h"], "small", kernel_shape=[4, 4], strides=[4, 4]),
        helper.make_node("Reshape", ["h", "shape"], ["y"]),
    ]
    shape = [("shape", np.array([1], np.int64))]
    file = saved(tmp_path / "net.onnx", nodes, [("x", TensorProto.FLOAT, [1, 1, None, None])], shape)
    told = [emptied(workers, file.path, [np.zeros((1, 1, size, size), "float32")]) for size in (4, 2, 0, 9)]
    assert [bool(one) for one in told] == [False, True, False, False]
    assert "small" in told[1]
