"""Keras on its back ends: what is spelled prints, runs and is right, and what it keeps in 32 bits is told apart."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from examples.one_node import applied, drawn

from generators.graph import Graph, Leaf, Node, TensorType
from generators.graphs import Case
from generators.ops import OPS, check
from harness.backends import TARGETS, probe
from harness.dialects.keras import KERAS, KERAS_FILES, KERAS_LAYERS, PLACES
from harness.dialects.legacy_keras import LEGACY_KERAS
from harness.execute.pool import Pool
from harness.quantisers import QUANTISERS
from harness.search.laboratory import Laboratory

TARGET = TARGETS["keras-torch"]
SPELLED = tuple(KERAS.spellings or ())


@pytest.fixture(scope="module")
def lab() -> Iterator[Laboratory]:
    status = probe.probe(TARGET)
    if not status.available:
        pytest.skip(f"{TARGET.name}: {status.reason}")
    with Pool() as pool:
        yield Laboratory(pool)


def test_spellings_are_of_operators() -> None:
    assert not set(SPELLED) - set(OPS)
    assert set(SPELLED) >= PLACES
    assert set(KERAS_FILES.spellings or ()) < set(SPELLED)


@pytest.mark.parametrize("operator", SPELLED[::5])
def test_prints_some_case(operator: str) -> None:
    """A spelling that refuses whatever is drawn is none."""
    texts = [KERAS.unsupported(drawn(operator, number).graph) for number in range(40)]
    complex_ = "complex" in str(texts[0])
    assert complex_ or None in texts, texts[0]


def test_places_are_asked_for_in_64_bits_and_values_are_not() -> None:
    rows = np.array([[1.0, 3.0, 2.0]], np.float32)
    assert TARGET.refused(applied("argmax", rows, axis=1, keepdims=False).graph) is None
    assert TARGET.refused(applied("add", np.array([1]), np.array([2])).graph)


def recurrent(operator: str, gates: int, states: int, **attrs: Any) -> Case:
    """A recurrent layer over three steps of two sequences."""
    rng = np.random.default_rng(3)
    shapes = [(3, 2, 2), *[(2, 3)] * states, (3 * gates, 2), (3 * gates, 3), (3 * gates,), (3 * gates,)]
    return applied(operator, *(rng.standard_normal(shape).astype(np.float32) for shape in shapes), **attrs)


@pytest.mark.slow(one_in=6)
@pytest.mark.parametrize("direction", ["forward", "reverse"])
def test_recurrent_layers_and_transposed_convolutions(direction: str, lab: Laboratory) -> None:
    """Gates, states and the order of time are where Keras has them."""
    image, kernel = np.arange(24, dtype=np.float32).reshape(1, 2, 3, 4), np.ones((2, 3, 1, 3), np.float32)
    cases = [
        recurrent("rnn", 1, 1, activation="relu", direction=direction, output="all"),
        recurrent("gru", 3, 1, reset="before", direction=direction, output="all"),
        recurrent("gru", 3, 1, reset="after", direction=direction, output="last"),
        recurrent("lstm", 4, 2, direction=direction, output="cell"),
        applied(
            "conv_transpose2d", image, kernel, stride=(2, 2), dilation=(1, 1), padding=(0, 1), output_padding=(1, 0),
            groups=1,
        ),
    ]  # fmt: skip
    for case in cases:
        assert lab.judge(case, [TARGET]).verdicts[TARGET.name].status == "agree", case.graph


@pytest.mark.slow(one_in=6)
def test_a_wrong_spelling_shows(lab: Laboratory) -> None:
    spellings = {**(KERAS.spellings or {}), "flip": "keras.ops.flip({0}, axis=0)"}
    wrong = replace(TARGET, name="wrong", dialect=replace(TARGET.dialect, spellings=spellings))
    case = applied("flip", np.arange(6, dtype=np.float32).reshape(2, 3), axes=(1,))
    found = lab.judge(case, [TARGET, wrong]).verdicts
    assert (found[TARGET.name].status, found["wrong"].status) == ("agree", "mismatch")


@pytest.mark.slow(one_in=6)
@pytest.mark.parametrize("kind", ["sum", "prod", "max", "min"])
def test_jax_is_told_how_many_segments_there_are(kind: str, lab: Laboratory) -> None:
    target = TARGETS["keras-jax"]
    if not probe.probe(target).available:
        pytest.skip("Keras on JAX is not here")
    case = applied(f"sorted_segment_{kind}", np.arange(6, dtype=np.float32).reshape(3, 2), sizes=(2, 1))
    assert lab.judge(case, [target]).verdicts[target.name].status == "agree"


@pytest.mark.slow(one_in=6)
def test_products_of_bytes_are_widened(lab: Laboratory) -> None:
    """Those of int8 are of int32, and cast back where the operator does not widen."""
    a, b = np.full((2, 3), 100, np.int8), np.full((3, 2), 100, np.int8)
    for case in (applied("matmul", a, b), applied("matmul_widened", a, b)):
        assert lab.judge(case, [TARGET]).verdicts[TARGET.name].status == "agree", case.graph
    assert KERAS.unsupported(applied("matmul_widened", a.view(np.uint8), b.view(np.uint8)).graph)


def test_places_of_several_axes_are_not_scattered_to() -> None:
    """keras.ops.scatter_update documents a matrix of places, and turns its axes on JAX."""
    leaves = (
        Leaf("x0", TensorType("float32", (4, 3))),
        Leaf("x1", TensorType("int64", (2, 1, 1)), domain=(0, 2)),
        Leaf("x2", TensorType("float32", (2, 1, 3))),
    )
    node = Node("v0", "scatter_nd", ("x0", "x1", "x2"), (("reduction", "add"),), leaves[0].type)
    assert "a row for each place" in str(KERAS.unsupported(check(Graph(leaves, (node,), ("v0",)))))


@pytest.mark.slow(one_in=6)
def test_a_dtype_that_keras_says_it_refuses_is_no_finding(lab: Laboratory) -> None:
    target = TARGETS["keras-jax"]
    if not probe.probe(target).available:
        pytest.skip("Keras on JAX is not here")
    signal, window = np.ones((1, 9), np.float16), np.ones(4, np.float16)
    case = applied("short_time_fourier", signal, window, step=1, onesided=True)
    assert lab.judge(case, [target]).verdicts[target.name].status == "unsupported"


def test_places_of_any_shape_are_unravelled() -> None:
    """Places of two dimensions: TensorFlow's back end of Keras has the axes in another order for them."""
    leaf = Leaf("x0", TensorType("int64", (2, 2)), domain=(0, 11))
    type_ = OPS["unravel_index"].result((leaf.type,), {"image": (3, 4)})
    assert type_.shape == (2, 2, 2)
    assert check(Graph((leaf,), (Node("v0", "unravel_index", ("x0",), (("image", (3, 4)),), type_),), ("v0",)))


def test_what_jobs_are_given_can_be_sent() -> None:
    """All targets, files of Keras models and quantisers, with the functions that spell their operators."""
    for dialect in (KERAS, KERAS_FILES, KERAS_LAYERS, LEGACY_KERAS):
        assert pickle.loads(pickle.dumps(dialect)) == dialect
    assert list(pickle.loads(pickle.dumps(dict(QUANTISERS)))) == list(QUANTISERS)
    assert [target.name for target in pickle.loads(pickle.dumps(list(TARGETS.values())))] == list(TARGETS)
