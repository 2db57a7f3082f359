"""Conversions: a planted wrong converter is caught and named, a right one accepted, one that fails is counted."""

from __future__ import annotations

import csv
import json
import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from examples.small_graphs import several_outputs
from typer.testing import CliRunner

from generators.graph import Graph, Leaf, Node, TensorType
from generators.graphs import Case
from harness.backends.target.text import swapped
from harness.commands import app
from harness.conversions.edges import EDGES, Edge
from harness.conversions.formats import RUNNERS
from harness.conversions.route import ORDERED, Route, draw_route, planned, route_of, routes, shortest, target_of
from harness.execute.pool import Pool
from harness.findings.store import Store
from harness.models.convert import convert_all
from harness.models.variants import ModelFile
from harness.questions.conversion import CONVERSION, refusal
from harness.search import conversions
from harness.search.campaign import Campaign
from harness.search.conversions import OUTCOMES, ConversionResult, csv_of, examine, rows_of
from harness.search.laboratory import Laboratory
from oracles.judge.outcome import Rejected

ONNX = {"onnx": "1.17"}

BREAKING = """
def convert(source, target):
    import onnx

    model = onnx.load(source)
    for node in model.graph.node:
        if node.op_type == {operator!r}:
            {fault}
    onnx.save(model, target)
"""
FAULTS = {
    "planted-pads": ("Pad", "node.input[1:2] = [turned(model, node.input[1])]"),
    "planted-transpose": ("Transpose", "node.op_type = 'Identity'; del node.attribute[:]"),
    "planted-order": ("Sub", "node.input[:] = [node.input[1], node.input[0]]"),
}
TURNED = """
def turned(model, name):
    \"\"\"Pads with what stands before an axis behind it.\"\"\"
    import onnx

    kept = next(one for one in model.graph.initializer if one.name == name)
    pads = onnx.numpy_helper.to_array(kept)
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.roll(pads, len(pads) // 2), "turned"))
    return "turned"
"""
FAILING = {
    "planted-refusal": 'raise NotImplementedError("no converter for operator Sub")',
    "planted-error": 'raise KeyError("shape")',
    "planted-crash": "import os; os.abort()",
    "planted-hang": "import time; time.sleep(60)",
    "planted-nothing": 'open(target, "wb").write(b"nonsense")',
}
OFF = Edge("off", "onnx", "onnx", (), {"no-such-tool": "1"}, "\ndef convert(source, target):\n    pass\n")


def planted(name: str) -> Edge:
    """An edge of ours from ONNX to ONNX that breaks one operator, or fails."""
    if name in FAULTS:
        operator, fault = FAULTS[name]
        text = BREAKING.format(operator=operator, fault=fault) + (TURNED if "turned" in fault else "")
    else:
        text = f"\ndef convert(source, target):\n    {FAILING[name]}\n"
    return Edge(
        name, "onnx", "onnx", ("onnx",), ONNX, text, refuses=(("no converter for operator", "no such operator"),)
    )


@pytest.fixture
def campaign(quick: Pool, tmp_path: Path) -> Campaign:
    return Campaign(Laboratory(quick, CONVERSION), (), Store(tmp_path / "findings"), confirmations=1)


@pytest.fixture(autouse=True)
def edges(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*FAULTS, *FAILING):
        monkeypatch.setitem(EDGES, name, planted(name))


def through(campaign: Campaign, name: str, keep: bool = False) -> ConversionResult:
    """The case by the route of this name."""
    return examine(campaign, route_of(target_of(name)), 0, several_outputs(), keep)


# ---- edges --------------------------------------------------------------------------------------------------


def test_a_right_conversion_is_accepted(campaign: Campaign) -> None:
    found = through(campaign, "onnx/onnx-version/ort-optimised/ort-disable")
    assert (found.outcome, found.why, found.edge) == ("agree", "", "ort-optimised")


@pytest.mark.parametrize("name", FAULTS)
def test_a_wrong_converter_is_caught(name: str, campaign: Campaign) -> None:
    found = through(campaign, f"onnx/{name}/ort-all")
    assert (found.outcome, found.edge, found.culprit) == ("wrong", name, "")


@pytest.mark.parametrize("name", FAULTS)
def test_the_wrong_edge_of_a_path_is_named(name: str, campaign: Campaign) -> None:
    found = through(campaign, f"onnx/onnx-version/{name}/ort-optimised/ort-all")
    assert (found.outcome, found.culprit) == ("source", f"onnx/onnx-version/{name}/ort-all")


def test_a_wrong_runner_is_told_from_a_wrong_converter(campaign: Campaign, monkeypatch: pytest.MonkeyPatch) -> None:
    right = RUNNERS["ort-all"]
    broken = right.open.replace("return session.run(None", "return [1 + x for x in session.run(None") + "\n"
    broken = broken.replace("zip(inputs, arrays)})", "zip(inputs, arrays)})]")
    name = "planted-runner"
    monkeypatch.setitem(RUNNERS, name, type(right)(**{**vars(right), "name": name, "open": broken, "inherits": ()}))
    found = examine(campaign, Route("onnx", (EDGES["onnx-version"],), RUNNERS[name]), 0, several_outputs(), keep=False)
    assert found.outcome == "runner"
    assert "is right)" in found.why


@pytest.mark.parametrize(
    ("name", "outcome", "why"),
    [
        ("planted-refusal", "refused", "planted-refusal: no such operator"),
        ("planted-error", "error", "planted-error: KeyError: 'shape'"),
        ("planted-crash", "error", "signal SIGABRT"),
        ("planted-hang", "error", "no answer within 5 s"),
        ("planted-nothing", "error", "open: InvalidProtobuf"),
    ],
)
def test_a_converter_that_fails_is_counted(name: str, outcome: str, why: str, campaign: Campaign) -> None:
    found = through(campaign, f"onnx/{name}/ort-all")
    assert found.outcome == outcome
    assert found.why.startswith(why)
    rows = rows_of([found], EDGES.values())
    assert rows[name].outcomes == {outcome: 1}
    (line,) = csv.DictReader(csv_of([found]).splitlines())
    assert (line["edge"], line["outcome"]) == (name, outcome)


@pytest.mark.slow(one_in=2)
@pytest.mark.parametrize("name", ["tensorflow-variables", "jax-variables"])
def test_parameters_may_be_variables(name: str, campaign: Campaign, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file holds variables; one that is filled with another value is seen."""
    type_ = TensorType("float32", (3,))
    leaves = Leaf("x0", type_), Leaf("w0", type_, role="parameter")
    graph = Graph(leaves, (Node("v0", "add", ("x0", "w0"), (), type_),), ("v0",)).validate()
    case = Case(graph, {"x0": np.ones(3, "f4"), "w0": np.arange(3, dtype="f4")})
    target = target_of(f"{name}/tf-savedmodel")
    kept = "tf.Variable(parameters[name])"
    with_variables = replace(
        target,
        load=swapped(
            target.load,
            ("return inputs, outputs, call", "assert len(loaded.kept) == 1\n    return inputs, outputs, call"),
        ),
    )
    wrong = replace(target, name="planted", load=swapped(target.load, (kept, f"{kept[:-1]} + 1)")))
    verdicts = campaign.lab.judge(case, [with_variables, wrong]).verdicts
    assert (verdicts[target.name].status, verdicts["planted"].status) == ("agree", "mismatch")


def test_what_is_written_with_variables_has_the_known_issues_of_what_is_not() -> None:
    for name, like in (
        ("tensorflow-variables/tflite/litert", "tensorflow/tflite/litert"),
        (
            "jax-variables/tf2onnx/ort-all",
            "jax/jax2tf/tf2onnx/ort-all",
        ),
    ):
        assert like in target_of(name).inherits
        assert name in {route.name for route in planned()}


def test_files_of_keras_have_the_known_issues_of_keras_on_tensorflow() -> None:
    assert {"tf-graph", "keras-tensorflow"} <= {*target_of("keras/tflite-keras/litert").inherits}


def test_what_xla_compiles_into_a_file_has_its_known_issues() -> None:
    assert "tf-xla" in target_of("tensorflow-variables/call-tf/jax-exported").inherits
    assert "tf-xla" in target_of("jax-variables/tf-savedmodel").inherits


@pytest.mark.parametrize(
    ("route", "step"),
    [
        ("jax/jax2tf/tf-savedmodel", "run"),
        ("jax-variables/tf-savedmodel", "run"),
        ("jax-variables/call-tf/jax-exported", "call-tf"),
    ],
)
def test_what_jax_writes_for_a_newer_tensorflow_is_refused(route: str, step: str) -> None:
    for version, why in (("StableHLO_v1.13.7", f"{step}: TensorFlow reads StableHLO_v1.13.7 only"), ("nothing", None)):
        said = f"unregistered operation\nerror: failed to deserialize portable artifact using {version}\nin step {step}"
        assert refusal(target_of(route), Rejected("ValueError", said)) == why


@pytest.mark.parametrize(
    ("kind", "said", "step", "why"),
    [
        ("UnsupportedOperatorException", "aten.geqrf.default", "write", "no meta kernel of aten.geqrf.default"),
        ("UnsupportedOperatorException", "aten.geqrf.default", "tvm-pt2", "no meta kernel of aten.geqrf.default"),
        ("DynamicOutputShapeException", "aten.linalg_lstsq.default", "write",
         "no aten.linalg_lstsq.default, whose sizes depend on values"),
        ("ValueError", "Unsupported input kind: InputKind.TOKEN", "tvm-pt2", "no inputs of kind TOKEN"),
        ("NotImplementedError", "affine_grid with align_corners=False is not yet supported in TVM", "tvm-pt2",
         "no affine_grid with align_corners=False"),
        ("RuntimeError", "numel: integer multiplication overflow", "write", None),
        ("TypeError", "IndexPut requires each index tensor to have integer dtype.", "tvm-pt2", None),
    ],
)  # fmt: skip
def test_what_cannot_be_traced_or_imported_by_documentation_is_refused(
    kind: str, said: str, step: str, why: str | None
) -> None:
    found = refusal(target_of("torch/tvm-pt2/tvm"), Rejected(kind, f"{said}\nin step {step}"))
    assert found == (f"{step}: {why}" if why else None)


def test_a_wrong_conversion_is_reduced_and_reproduced(campaign: Campaign) -> None:
    found = through(campaign, "onnx/planted-order/ort-all", keep=True)
    assert found.finding.startswith("value-planted-order-sub-")
    folder = campaign.store.root / found.finding
    kept = json.loads((folder / "finding.json").read_text())
    assert (kept["operators"], kept["nodes"]) == (["sub"], 1)
    done = subprocess.run([sys.executable, str(folder / "reproducer.py")], capture_output=True, text=True)
    assert (done.returncode, "reproduced" in done.stdout) == (1, True)


def test_routes_lead_from_format_to_format() -> None:
    listed = list(routes())
    assert len({route.name for route in listed}) == len(listed) > 80
    for route in listed:
        assert [edge.source for edge in route.edges] == [one.name for one in route.formats[:-1]]
        assert route.runner.format == route.formats[-1].name
        assert route_of(target_of(route.name)).name == route.name


def test_drawn_paths_depend_on_the_seed_alone() -> None:
    here = list(EDGES.values())
    names = [[draw_route(random.Random(f"{seed}/{i}"), here).name for i in range(40)] for seed in (1, 1, 2)]
    assert names[0] == names[1] != names[2]
    assert {name.count("/") for name in names[0]} == {2, 3, 4}


def test_a_drawn_path_ends_before_what_its_environment_has_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(EDGES, "off", OFF)
    found = [route.edges for _, route, _ in conversions.drawn_routes([EDGES["onnx-version"], OFF], range(30), 1)]
    assert {OFF in edges for edges in found if len(edges) > 1} == {False}


MATCHING: dict = {}
exec(ORDERED, MATCHING)  # what every route's program carries


@pytest.mark.parametrize(
    ("found", "names", "order"),
    [
        (["x1", "x0"], ["x0", "x1"], ["x1", "x0"]),  # by name
        (["serving_default_x1:0", "serving_default_x0:0"], ["x0", "x1"], ["x1", "x0"]),
        (["out001", "out000"], ["out0", "out1"], ["out1", "out0"]),
        (["PartitionedCall:1", "PartitionedCall:0"], ["out0", "out1"], ["out1", "out0"]),  # by number
        (["Identity_1:0", "Identity:0"], ["out0", "out1"], ["out1", "out0"]),
        (["in1", "in0"], ["x3", "x5"], ["x5", "x3"]),
        (["PartitionedCall:1", "serving_default_x0:0"], ["out0", "out1"], ["out1", "out0"]),  # the second is an input
        (  # sorted as text: 11, and 9 at the end, are inputs by their own names
            ["Identity", "Identity_1", "Identity_10", "x1", *(f"Identity_{i}" for i in range(2, 9)), "x0"],
            [f"out{i}" for i in range(12)],
            ["out0", "out1", "out10", "out11", *(f"out{i}" for i in range(2, 9)), "out9"],
        ),
        (["PartitionedCall:3", "x"], ["out0", "out1"], ["out0", "out1"]),  # no such number
        ([f"inputs_{i}" for i in range(11)], [f"x{i}" for i in range(11)], [f"x{i}" for i in range(11)]),
        (["lambda", "out0"], ["out0", "out1"], ["out1", "out0"]),  # the first is a constant
        (["add_1", "add"], ["out0", "out1"], ["out0", "out1"]),  # names of nodes say nothing of their order
        (["x1"], ["x0", "x1"], ["x1"]),  # a tool may drop an input that changes nothing
        (
            ["PartitionedCall:2", "PartitionedCall:1", "PartitionedCall:0"],
            ["PartitionedCall:2", "PartitionedCall:1", "PartitionedCall:0"],
            ["PartitionedCall:2", "PartitionedCall:1", "PartitionedCall:0"],
        ),
        (
            ["PartitionedCall:0", "PartitionedCall:1"],
            ["PartitionedCall:1", "PartitionedCall:0"],
            ["PartitionedCall:0", "PartitionedCall:1"],
        ),
    ],
)
def test_what_a_model_takes_and_returns_is_matched_by_name_number_or_place(
    found: list[str], names: list[str], order: list[str]
) -> None:
    assert MATCHING["ordered"]([(name, "float32", []) for name in found], names) == order


def test_another_number_of_outputs_is_an_error() -> None:
    with pytest.raises(ValueError, match="the model has a, b in place of out0"):
        MATCHING["ordered"]([("a", "", []), ("b", "", [])], ["out0"])


# ---- all files made of one -----------------------------------------------------------------------------------


@patch.dict(EDGES, clear=True)  # deleted one by one they would come back in another order
def test_a_file_in_every_format(quick: Pool, tmp_path: Path) -> None:
    copy = "import shutil; shutil.copy(source, target)"
    for name, source, target, body in (
        ("refuses", "onnx", "tflite", 'raise KeyError("shape")'),
        ("first", "onnx", "stablehlo", copy),
        ("second", "stablehlo", "tflite", copy),
        ("third", "tflite", "keras", 'raise NotImplementedError("no")'),
    ):
        text = f"\ndef convert(source, target):\n    {body}\n"
        EDGES[name] = Edge(name, source, target, ("json",), {"numpy": "1"}, text)
    EDGES["off"] = OFF  # and one whose file could not be opened here is not tried:
    EDGES["far"] = Edge("far", "onnx", "pickled", (), {"numpy": "1"}, OFF.convert, "onnx2torch")
    path = tmp_path / "model.onnx"
    path.write_bytes(b"a model")
    files, refusals = convert_all(quick, ModelFile(path, "onnx"), tmp_path, depth=3)
    assert [(one.format, one.edges) for one in files] == [
        ("onnx", ()),
        ("stablehlo", ("first",)),
        ("tflite", ("first", "second")),
    ]
    assert all(one.path.read_bytes() == b"a model" for one in files)
    assert {one.what: one.why for one in refusals} == {
        "refuses": "KeyError: 'shape'",
        "off": "no-such-tool is not installed",
        "first > second > third": "NotImplementedError: no",
    }


# ---- the command --------------------------------------------------------------------------------------------


def test_edges_are_listed(tmp_path: Path) -> None:
    done = CliRunner().invoke(
        app.app_of(), ["conversions", "--json", str(tmp_path / "e.json"), "--edges", "onnx-*,off"]
    )
    assert done.exit_code == 2
    assert "no edge matches 'off'" in done.stderr
    done = CliRunner().invoke(
        app.app_of(), ["conversions", "--json", str(tmp_path / "e.json"), "--edges", "onnx-version"]
    )
    assert done.exit_code == 0
    (row,) = json.loads((tmp_path / "e.json").read_text())
    assert list(row) == ["name", "source", "target", "tool", "version", "environment", "available", "reason"]
    assert (row["source"], row["target"], row["available"], row["environment"]) == ("onnx", "onnx", True, ".")


def test_the_command_counts_keeps_and_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [
        "--record",
        str(tmp_path / "r.jsonl"),
        "--json",
        str(tmp_path / "t.json"),
        "--csv",
        str(tmp_path / "t.csv"),
    ]
    known = ["--known-issues", str(tmp_path / "known")]
    arguments = ["conversions", "--edges", "onnx-version", "--max-nodes", "2", *known]
    (tmp_path / "known").mkdir()
    assert CliRunner().invoke(app.app_of(), [*arguments, "--cases", "2", "--seed", "5", *files]).exit_code == 0
    seen: list[int] = []
    kept = conversions.examine
    monkeypatch.setattr(conversions, "examine", lambda *a, **k: (seen.append(a[2]), kept(*a, **k))[1])
    done = CliRunner().invoke(app.app_of(), [*arguments, "--cases", "4", *files])
    assert done.exit_code == 0
    assert seen == [2, 3]
    (row,) = json.loads((tmp_path / "t.json").read_text())["edges"]
    assert row["graphs"] == 4 == sum(row[outcome] for outcome in OUTCOMES)
    assert len((tmp_path / "t.csv").read_text().splitlines()) == 5
    assert CliRunner().invoke(app.app_of(), [*arguments, "--numbers", "9,3, 9", *files]).exit_code == 0
    assert seen == [2, 3, 9]
    for wrong, told in (["--cases", "4"], "give one of them"), ([], "takes numbers of graphs, such as 3,14, not '4,x'"):
        done = CliRunner().invoke(app.app_of(), [*arguments, "--numbers", "4,x", *wrong])
        assert done.exit_code == 2
        assert told in done.stderr


def test_every_edge_but_those_of_keras_is_reached() -> None:
    unreached = [name for name, edge in EDGES.items() if shortest(edge) is None]
    assert all(EDGES[name].source == "keras" for name in unreached)


def test_a_dtype_that_tf2onnx_has_no_number_for_is_refused() -> None:
    for number, why in ((18, "tf2onnx-tflite: its table of TFLite's dtypes has no bfloat16"), (180, None), (1, None)):
        said = Rejected("KeyError", f"{number}\nin step tf2onnx-tflite")
        assert refusal(target_of("tensorflow/tflite/tf2onnx-tflite/ort-all"), said) == why
