"""Quantisation-aware training through tfmot: a file that has the trained ranges is accepted; a scale or a zero point
that is a little off, two ranges that are swapped, a weight one level off and a layer trained without fake quantisation
are found. The record is made here, as a run returns it, so that no environment is needed; one test runs a case where
there is one."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

from generators import caseio
from generators.graph import Graph, Leaf, Node, TensorType
from generators.graphs import Case, seeded_case
from generators.ops import check
from harness.backends import probe
from harness.execute.pool import Pool
from harness.findings.known.entry import FOLDER
from harness.quantisers import QUANTISERS
from harness.questions.quantisers import QUANTISATION
from harness.search.laboratory import Laboratory
from harness.search.quantisation import expressible
from oracles.judge.outcome import Value
from oracles.quantised import model as quantised_model
from oracles.quantised.integers import away
from oracles.quantised.model import Operation, RecordedModel
from oracles.quantised.tflite.tfmot import judge

PATH = QUANTISERS["tfmot-int8"]
F = np.float32
_GROUPS = ("BUILTIN_REF", "BUILTIN_WITHOUT_DEFAULT_DELEGATES")


def record() -> RecordedModel:
    """What a run returns of two dense layers without a bias, one after the other: rounded as TFLite does."""
    draw = np.random.default_rng(5)
    x, w, v = (draw.normal(size=shape).astype(F) for shape in ((6, 8), (8, 5), (5, 4)))
    low, high = min(0, x.min()), max(0, x.max())
    ranges = {
        "in": np.array([[low], [high]], F),
        "a.weight": np.array([[-np.abs(w).max()], [np.abs(w).max()]], F),
        "a.post": np.array([[-7.1], [6.3]], F),
        "b.weight": np.array([[-np.abs(v).max()], [np.abs(v).max()]], F),
        "b.post": np.array([[-9.7], [8.9]], F),
    }
    activation = {"kind": "activation", "layer": "Dense"}
    weight = {"kind": "weight", "layer": "Dense", "epsilon": 0.0, "absent": False}
    listed = {
        "in": {"kind": "input", "layer": "QuantizeLayer", "of": "x"},
        "a.post": activation,
        "b.post": activation,
        "a.weight": {**weight, "behind": ["a.post"]},
        "b.weight": {**weight, "behind": ["b.post"]},
    }
    scales = {name: float(F((float(r[1, 0]) - float(r[0, 0])) / (254 if "weight" in name else 255)))
              for name, r in ranges.items()}  # fmt: skip
    zeros = {name: 0.0 if "weight" in name else float(np.rint(-128 - r[0, 0] / scales[name]))
             for name, r in ranges.items()}  # fmt: skip
    owners = {"1": "in", "2": "a.weight", "3": "a.post", "4": "b.weight", "5": "b.post"}
    values = {"0": x, "1": np.clip(away((x / F(scales["in"])).astype(float)) + zeros["in"], -128, 127).astype(np.int8)}
    values["2"] = np.rint(w.T / F(scales["a.weight"])).astype(np.int8)
    values["4"] = np.rint(v.T / F(scales["b.weight"])).astype(np.int8)
    for given, kernel, made in (("1", "2", "3"), ("3", "4", "5")):
        total = (values[given] - zeros[owners[given]]) @ values[kernel].T.astype(float)
        factor = scales[owners[given]] * scales[owners[kernel]] / scales[owners[made]]
        values[made] = np.clip(away(total * factor) + zeros[owners[made]], -128, 127).astype(np.int8)
    nodes = (
        Operation("QUANTIZE", "", ("0",), ("1",), {}),
        Operation("FULLY_CONNECTED", "", ("1", "2", ""), ("3",), {"fusedActivationFunction": 0}),
        Operation("FULLY_CONNECTED", "", ("3", "4", ""), ("5",), {"fusedActivationFunction": 0}),
    )
    tensors = {i: {"scale": [scales[name]], "zero": [zeros[name]], "axis": 0} for i, name in owners.items()}
    header = {"tensors": tensors, "ranges": listed, "inputs": {"x": "0"}, "outputs": ["5"], "share": 0.5}
    groups = {"ranges": ranges, "weights": {"a.weight": w, "b.weight": v}, "sample 0": {"x": x}}
    groups.update({group: dict(values) for group in _GROUPS})
    places = {(group, name): 1 for group, arrays in groups.items() for name in arrays}
    return RecordedModel(groups, dict.fromkeys(_GROUPS, nodes), header, places)


def test_trained_ranges_that_arrive_are_accepted() -> None:
    found = judge(record())
    assert not found.wrong
    assert not found.skipped
    assert found.exact == 2 * 3
    assert found.checked > 60


def _scale(given: RecordedModel) -> None:
    given.header["tensors"]["3"]["scale"][0] *= 1 + 1e-5


def _weight_scale(given: RecordedModel) -> None:
    given.header["tensors"]["4"]["scale"][0] *= 1 + 1e-5


def _zero_point(given: RecordedModel) -> None:
    given.header["tensors"]["3"]["zero"][0] += 1


def _swapped(given: RecordedModel) -> None:
    tensors = given.header["tensors"]
    tensors["3"], tensors["5"] = tensors["5"], tensors["3"]


def _level(given: RecordedModel) -> None:
    for group in _GROUPS:
        given.groups[group]["2"][0, 0] += 1  # type: ignore[index]


def _range_of_input(given: RecordedModel) -> None:
    given.groups["ranges"]["in"][1] *= F(1.001)


def _untrained(given: RecordedModel) -> None:
    given.header["ranges"]["b.weight"]["absent"] = True


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_scale, "FULLY_CONNECTED -> 3: scale .*, that of a.post comes nearest"),
        (_weight_scale, "scale of the weight of FULLY_CONNECTED -> 5: .* no trained range owes it"),
        (_zero_point, "FULLY_CONNECTED -> 3: scale .* and zero point .*, that of a.post comes nearest"),
        (_swapped, "FULLY_CONNECTED -> 3: scale .*, that of a.post comes nearest"),
        (_level, "weight of FULLY_CONNECTED -> 3: 1 of 40 levels wrong"),
        (_range_of_input, "range of in: .*, by what it has seen"),
        (_untrained, "b.weight has no range: the Dense was trained without fake quantisation of it"),
    ],
)
def test_what_is_planted_is_named(change: Callable[[RecordedModel], None], message: str) -> None:
    given = record()
    change(given)
    found = judge(given).wrong
    assert any(re.search(message, text) for text in found), found


def test_a_range_that_no_tensor_has_is_counted() -> None:
    given = record()
    given.header["ranges"]["c.output"] = {"kind": "activation", "layer": "LeakyReLU"}
    given.groups["ranges"]["c.output"] = np.array([[-1], [1]], F)  # type: ignore[index]
    found = judge(given)
    assert not found.wrong
    assert found.skipped["range of LeakyReLU that no tensor has"] == 1


def test_nodes_that_no_layer_says_are_taken_out() -> None:
    """So that graphs that are drawn can be trained; what is left says so."""
    x = TensorType("float32", (2, 4))
    nodes = (Node("v0", "mul", ("x", "x"), (), x), Node("v1", "linear", ("v0", "w", "b"), (), x))
    leaves = (Leaf("x", x), Leaf("w", TensorType("float32", (4, 4))), Leaf("b", TensorType("float32", (4,))))
    graph = check(Graph(leaves, nodes, ("v1",)))
    case = Case(graph, {leaf.name: np.full(leaf.type.shape, 3, F) for leaf in leaves})
    cut = expressible(PATH, case)
    assert [node.op for node in cut.graph.nodes] == ["linear"]
    assert cut.arrays["v0"].tolist() == np.full((2, 4), 9).tolist()
    assert PATH.unsupported(QUANTISATION.prepare(cut).graph) is None
    plain = seeded_case(0, 0, 4, ["linear"], QUANTISATION.style)
    assert expressible(QUANTISERS["tflite-int8"], plain) == plain


def test_a_case_is_trained_converted_and_judged(pool: Pool) -> None:
    """A real run, with the fault of tfmot that is known."""
    status = probe.probe(PATH)
    if not status.available:
        pytest.skip(status.reason or "tfmot is not available")
    case = caseio.loads((FOLDER / "tensorflow/tfmot-relu-weight/case.json").read_text(encoding="utf-8"))
    (outcome,) = Laboratory(pool, QUANTISATION).outcomes([(PATH, case)])
    assert isinstance(outcome, Value), outcome
    found = judge(quantised_model.read(outcome.outputs))
    assert found.judged > 4
    assert found.wrong == ["quant_dense.weight has no range: the Dense was trained without fake quantisation of it"]
