"""What the verdict on a given model says, and the exit status that it comes with: never more than was judged."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from examples.commands import model as command
from onnx import TensorProto, helper, numpy_helper
from syrupy.assertion import SnapshotAssertion

from harness.conversions.formats import RUNNERS
from harness.conversions.model_file import Port
from harness.models import examine
from harness.models.convert import unbuilt
from harness.models.given.takes import Drawn
from harness.models.layer_errors import Layer, LayerErrors
from harness.models.measure import Run
from harness.models.reference import Reference
from harness.models.report import page
from harness.models.results import Results, assemble, with_layers
from harness.models.variants import ModelFile, Refusal, Variant
from oracles.judge.outcome import Crash, Outcome, Rejected, Timeout, Unsupported, Value
from oracles.models import noise

GIVEN = ModelFile(Path("net.onnx"), "onnx")
MADE = ModelFile(Path("net.xml"), "openvino", ("openvino-onnx",))
PORTS = [Port("y", "float32", (1, 4))]
EXACT = np.random.default_rng(4).normal(size=(1, 4))
RIGHT = Value((EXACT.astype(np.float32),))
OFF = Value((EXACT.astype(np.float32) + np.float32(0.1),))
EMPTY = Value((np.zeros((0, 4), np.float32),))
REFUSES = Rejected("Fail", "Got invalid dimensions for input: x")
NO_KERNEL = Unsupported("no kernel for Foo")
KNOWN = Reference((noise.expect(["y"], ["float32"], [EXACT], [EXACT + 1e-7 * np.ones((noise.RUNS, 1, 1))]),), "made up")
NONE = Reference(None, "no reference: node foo has no rule")
LOST = replace(KNOWN, expected=(noise.expect(["y"], ["float32"], [EXACT], [EXACT + 9 * np.ones((noise.RUNS, 1, 1))]),))
NAMES = {"ort-all": GIVEN, "ort-disable": GIVEN, "onnx-reference": GIVEN, "openvino": MADE}


def made(
    reference: Reference, *outcomes: Outcome, names: Sequence[str] = tuple(NAMES), drawn: Drawn | None = None
) -> Results:
    """Of variants that returned these, in the order of their names."""
    runs = [Run(Variant(NAMES[name], RUNNERS[name]), [one]) for name, one in zip(names, outcomes, strict=False)]
    ports = [Port("x", "float32", (None, 3, None, None))]
    return assemble(GIVEN, ports, PORTS, reference, runs, [], 0, 0, {}, drawn=drawn)


CASES = {
    "all right": (0, made(KNOWN, RIGHT, RIGHT, RIGHT, RIGHT)),
    "one alone": (0, made(KNOWN, RIGHT)),
    "some not run": (0, made(KNOWN, RIGHT, NO_KERNEL, RIGHT)),
    "one right": (0, made(KNOWN, RIGHT, NO_KERNEL)),
    "one off": (1, made(KNOWN, RIGHT, OFF, RIGHT)),
    "one off, one not run": (1, made(KNOWN, RIGHT, OFF, NO_KERNEL)),
    "one of another shape": (1, made(KNOWN, RIGHT, EMPTY)),
    "one refuses": (1, made(KNOWN, RIGHT, RIGHT, REFUSES)),
    "off, crashed and late": (1, made(KNOWN, RIGHT, OFF, Crash("signal SIGSEGV"), Timeout(9))),
    "no kernel anywhere": (3, made(KNOWN, NO_KERNEL, NO_KERNEL)),
    "only crashes": (3, made(KNOWN, Crash("signal SIGSEGV"))),
    "one owner refuses": (3, made(KNOWN, REFUSES, REFUSES)),
    "noise decides": (3, made(LOST, RIGHT, RIGHT)),
    "no reference": (3, made(NONE, RIGHT, RIGHT, RIGHT)),
    "no reference, one variant": (3, made(NONE, RIGHT)),
    "no reference, one refuses": (3, made(NONE, RIGHT, RIGHT, REFUSES)),
    "no reference, another shape": (3, made(NONE, RIGHT, EMPTY, RIGHT)),
    "all refuse what was drawn": (3, made(KNOWN, REFUSES, REFUSES, REFUSES, REFUSES, drawn=Drawn("", (16, 32)))),
    "all refuse what is given": (3, made(NONE, REFUSES, REFUSES, REFUSES)),
    "a lax one does not refuse": (3, made(NONE, REFUSES, REFUSES, REFUSES, RIGHT, drawn=Drawn())),
    "two owners are off together": (3, made(KNOWN, OFF, OFF, RIGHT, OFF)),
    "one owner is off": (1, made(KNOWN, OFF, OFF, RIGHT)),
    "two owners are off, one is not": (1, made(KNOWN, OFF, RIGHT, RIGHT, OFF)),
}


@pytest.mark.parametrize("name", CASES)
def test_the_verdict_says_what_was_judged(name: str, snapshot: SnapshotAssertion) -> None:
    status, results = CASES[name]
    assert results.headline == snapshot
    assert results.exit_status == status, results.headline
    assert ("return what a correct" in results.headline) <= any(row.judged for row in results.rows)
    assert not (results.doubted or results.refused) or not results.unexplained
    assert results.headline.split(".")[0] in page.html_of(results)


def test_a_layer_that_errs_decides_where_outputs_hide_it(snapshot: SnapshotAssertion) -> None:
    layers = tuple(Layer(i, f"n{i}", "Relu", f"v{i}", 0.1, 50.0 if i == 1 else 0.1, 0.1) for i in range(3))
    wrong, fine = LayerErrors("ort-all", layers), LayerErrors("ort-disable", layers[:1])
    hidden = with_layers(made(KNOWN, RIGHT, RIGHT, RIGHT), [wrong, fine])
    assert [row.status for row in hidden.rows] == ["layer deviates", "agree", "agree"]
    assert (hidden.exit_status, hidden.headline, hidden.rows[0].message) == snapshot
    assert "layer deviates" in page.html_of(hidden)
    shown = with_layers(made(KNOWN, OFF, RIGHT, RIGHT), [wrong])
    assert (shown.rows[0].status, shown.exit_status) == ("mismatch", 1)
    assert "hide" not in shown.headline
    assert with_layers(made(KNOWN, RIGHT, RIGHT), [fine]).exit_status == 0
    unknown = with_layers(made(NONE, RIGHT, RIGHT), [wrong])  # nothing to hold outputs against, and no layers then
    assert unknown.exit_status == 3


def test_a_wrong_conversion_is_the_references_own_fault() -> None:
    """What runs the converted file agrees with a reference that is made of it, and speaks for nothing."""
    given, converted = ModelFile(Path("a.tflite"), "tflite"), ModelFile(Path("a.onnx"), "onnx", ("tf2onnx-tflite",))
    runners = {"litert": (given, OFF), "tvm-O2-tflite": (given, OFF), "ort-all": (converted, RIGHT)}
    runs = [Run(Variant(file, RUNNERS[name]), [one]) for name, (file, one) in runners.items()]
    for through, owners in (("tf2onnx-tflite",), ("LiteRT", "TVM")), (("another",), None):
        results = assemble(given, [], PORTS, replace(KNOWN, through=through), runs, [], 0, 0, {})
        assert (results.doubted.owners if results.doubted else None) == owners, results.headline
        assert results.exit_status == (3 if owners else 1)


def test_a_model_that_returns_no_elements_is_not_said_to_be_right_in_them(snapshot: SnapshotAssertion) -> None:
    nothing = np.zeros((0, 4))
    reference = Reference((noise.expect(["y"], ["float32"], [nothing], [np.zeros((noise.RUNS, 0, 4))]),), "made up")
    results = made(reference, EMPTY, EMPTY)
    assert (results.exit_status, results.headline) == snapshot


def test_environments_that_are_not_built_are_told_in_one_line() -> None:
    why = "environment {0} is not built (python -m harness env create {0})"
    refusals = [Refusal(f"edge-{n}", why.format("a" if n % 2 else "b")) for n in range(5)]
    other = Refusal("torch-onnx", "RuntimeError: no")
    line = "5 paths need environments that are not built: b, a (python -m harness env create NAME)"
    assert unbuilt([*refusals, other]) == ([other], line)
    assert unbuilt([other]) == ([other], "")
    assert unbuilt(refusals[:1])[1].startswith("1 path needs an environment that is not built: b (")


def test_no_layer_adds_error_is_never_all_that_is_said_of_a_deviation(snapshot: SnapshotAssertion) -> None:
    results = made(KNOWN, OFF, RIGHT)
    right = Layer(0, "a", "Conv", "v0", 0.0, 0.2, 0.0)
    unseen = replace(right, added=float("nan"), excess=float("nan"), shown=float("nan"))
    layers = {"all": (right, replace(right, shown=0.5)), "some": (right, unseen), "fused": (right, right)}
    told = {name: page.blamed(LayerErrors("ort-all", errors), results) for name, errors in layers.items()}
    assert told == snapshot
    assert page.blamed(LayerErrors("ort-disable", (right,)), results).startswith("none of 1 layers adds more error")


# ---- from the command -------------------------------------------------------------------------------------------


def network(path: Path, shift: float = 0.0) -> Path:
    """Convolution, normalisation and Relu. shift: of the mean that is subtracted."""
    rng = np.random.default_rng(8)
    arrays = {name: rng.normal(size=4).astype(np.float32) for name in "sbm"}
    arrays |= {"w": rng.normal(size=(4, 3, 3, 3)).astype(np.float32), "v": np.ones(4, np.float32)}
    arrays["m"] = arrays["m"] + np.float32(shift)
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], name="conv"),
        helper.make_node("BatchNormalization", ["a", "s", "b", "m", "v"], ["c"], name="norm"),
        helper.make_node("Relu", ["c"], ["y"], name="relu"),
    ]
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in (("x", [1, 3, 8, 8]), ("y", [1, 4, 6, 6]))
    ]
    constants = [numpy_helper.from_array(array, name) for name, array in arrays.items()]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


@pytest.mark.parametrize("other", ["openvino", "ort-disable"])
def test_a_wrong_reference_is_in_doubt_where_two_owners_contradict_it(
    other: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    folder = tmp_path / "out/converted"  # which workers may read
    folder.mkdir(parents=True)
    wrong = ModelFile(network(folder / "wrong.onnx", 1e-3), "onnx")
    monkeypatch.setattr(examine, "_onnx", lambda files: [wrong])
    few = "--targets", f"ort-all,{other}", "--edges", "openvino-onnx", "--runs", "0", "--iterations", "1"
    status, told = command(network(tmp_path / "net.onnx"), *few, "--out", tmp_path / "out")
    results = json.loads((tmp_path / "out/results.json").read_text())
    assert [status, results["headline"], [one["status"] for one in results["variants"]]] == snapshot
    assert bool(list((tmp_path / "out").rglob("reproducer.py"))) == (other != "openvino")
    assert "deviate" not in told or other != "openvino"


def test_one_that_dissents_deviates_from_a_right_reference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = RUNNERS["ort-disable"]
    text = right.open.replace(
        "return session.run(None, {name: array", "return session.run(None, {name: array * np.float32(1.001)"
    )
    assert text != right.open
    monkeypatch.setitem(RUNNERS, "ort-disable", replace(right, open=text, owner="another"))
    few = "--targets", "ort-all,ort-disable,openvino", "--edges", "openvino-onnx", "--runs", "0", "--iterations", "1"
    status, told = command(network(tmp_path / "net.onnx"), *few, "--depth", "1", "--out", tmp_path / "out")
    assert status == 1
    assert "1 of 3 variants deviate." in told
