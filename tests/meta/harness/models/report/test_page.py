"""The page on a given model: what stands at the top, where the line is, what each output shows, how large it is."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from syrupy.assertion import SnapshotAssertion
from typer.testing import CliRunner

from harness.commands import app
from harness.conversions.formats import RUNNERS
from harness.conversions.model_file import Port
from harness.models.layer_errors import Layer, LayerErrors
from harness.models.measure import Run
from harness.models.reference import Reference
from harness.models.report import page, store
from harness.models.report.glance import Glance, Node
from harness.models.results import Results, assemble
from harness.models.variants import ModelFile, Refusal, Variant
from oracles.judge.outcome import Rejected, Value
from oracles.models import noise

MODEL = ModelFile(Path("net.onnx"), "onnx")
NAMES = ("ort-all", "ort-basic", "ort-disable", "onnx-reference")
PORTS = [Port("boxes", "float32", (1, 40, 4)), Port("scores", "float32", (1, 40, 3)), Port("count", "int64", (1,))]
PLANTED = (0, 17, 2)
INPUTS = (np.zeros((1, 3, 4, 5), np.float32),)
MOST = 1_000_000
"""Bytes of a page."""


def ran(planted: float = 0.0, rounds: int = 8, refused: bool = False) -> tuple[Results, list[Run]]:
    """Four variants of a model with three outputs on two sets of inputs. planted: what an element of the boxes of
    ort-basic is off by, in the second set; refused: ort-disable returns nothing."""
    rng = np.random.default_rng(3)
    boxes, scores = rng.random((2, 1, 40, 4)), rng.random((2, 1, 40, 3))
    expected = tuple(
        noise.expect(
            ["boxes", "scores", "count"],
            ["float32", "float32", "int64"],
            [boxes[k], scores[k], np.array([40])],
            [
                boxes[k] + 1e-6 * rng.normal(size=(noise.RUNS, 1, 40, 4)),
                scores[k] + 1e-6 * rng.normal(size=(noise.RUNS, 1, 40, 3)),
                np.full((noise.RUNS, 1), 40),
            ],
        )
        for k in range(2)
    )
    runs = []
    for place, name in enumerate(NAMES):
        outcomes = []
        for k in range(2):
            found = boxes[k].astype(np.float32)
            if name == "ort-basic" and k == 1:
                found[PLANTED] += np.float32(planted)
            outcomes.append(Value((found, scores[k].astype(np.float32), np.array([40]))))
        if refused and name == "ort-disable":
            outcomes[1] = Rejected("RuntimeError", "no <b>kernel</b>")
        seconds = [1e-3 * (1 + place + 0.01 * math.sin(7 * number + place)) for number in range(rounds)]
        first = outcomes[0].outputs if rounds else ()
        runs.append(Run(Variant(MODEL, RUNNERS[name]), outcomes, seconds, [first] * rounds))
    refusals = [Refusal("onnx-tflite", "RuntimeError: no <b>such</b> operator")]
    reference = Reference(expected, "made up")
    inputs = [Port("x", "float32", (1, 3, 4, 5))]
    return assemble(MODEL, inputs, PORTS, reference, runs, refusals, 0, rounds, {"onnx": "1.23"}), runs


def plain(text: str) -> str:
    """Its words, a line each."""
    words = re.sub(r"<[^>]+>", " ", re.sub(r"<style.*?</style>", "", text, flags=re.DOTALL))
    return "\n".join(" ".join(line.split()) for line in words.splitlines() if line.strip())


def sections(text: str) -> list[str]:
    return re.findall(r"<h2>(.*?)</h2>", text)


def test_what_is_wrong_stands_at_the_top_with_its_worst_element() -> None:
    results, runs = ran(planted=1e-3)
    text = page.html_of(results, runs)
    chart = text[text.index('<div class="chart">') :]
    assert re.findall(r'<span class="name">([^<]+)</span>', chart)[0] == "ort-basic"
    assert chart.index('class="dot bad"') < chart.index('class="dot good"')
    assert re.findall(r"<tr><td><code>([^<]+)</code>", text)[0] == "ort-basic"
    worst = plain(text[text.index('<table class="worst">') :]).splitlines()[1]
    assert worst.startswith("ort-basic 1 (0, 17, 2) ")
    right, runs = ran()
    assert "dot bad" not in page.html_of(right, runs).partition("</style>")[2]


def test_one_is_the_line_not_to_cross() -> None:
    results, runs = ran(planted=1e-3)
    body = page.html_of(results, runs).partition("</style>")[2]
    chart = body[body.index('<div class="chart">') : body.index("<table>")]
    (limit,) = set(re.findall(r'<line class="limit" x1="([\d.]+)%"', chart))
    assert chart.count('<line class="limit"') == len(NAMES)  # one piece in each row
    assert dict(re.findall(r'<text x="([\d.]+)%"[^>]*>([^<]+)</text>', chart))[limit] == "1"
    dots = [(kind, float(at)) for kind, at in re.findall(r'class="dot (\w+)" cx="([\d.]+)%"', chart)]
    assert [kind for kind, at in dots if at > float(limit)] == ["bad"]
    assert all(at < float(limit) for kind, at in dots if kind == "good")


def test_all_outputs_are_shown() -> None:
    results, runs = ran(planted=1e-3)
    text = page.html_of(results, runs)
    assert re.findall(r"<h3>Output <code>(\w+)</code>", text) == ["boxes", "scores", "count"]
    assert text.count('<svg class="histogram"') == text.count("Errors of all elements") == 3
    parts = text.split('<section class="output">')[1:]
    assert "least IoU" in parts[0]
    assert "same side of 0.5" in parts[1]
    assert "the same" in parts[2]
    assert "top-1" not in text.lower().replace("top-1 agreement says", "")  # it classifies nothing


def test_the_page_says_what_there_is(snapshot: SnapshotAssertion) -> None:
    results, runs = ran(planted=1e-3, rounds=3, refused=True)
    text = page.html_of(replace(results, doubt="made up, <too>"), runs)
    assert "<b>" not in text
    assert "http" not in text
    assert "<script" not in text
    assert sections(text) == snapshot
    assert plain(text)[:1800] == snapshot


@pytest.mark.parametrize("rounds", [0, 1, 2, 4, 5])
def test_times_at_any_number_of_rounds(rounds: int) -> None:
    results, runs = ran(rounds=rounds)
    text = plain(page.html_of(results, runs)).partition("Times\n")[2]
    assert ("Not timed." in text) == (rounds == 0)
    assert ("Below five rounds there is no interval" in text) == (0 < rounds < 5)
    rows = [line for line in text.splitlines() if line.startswith("onnx-reference ")]
    assert len(rows) == (2 if rounds else 0)  # of the chart, and of the table
    ratio = {0: "", 1: r" 4(\.00)?$", 5: r" (3\.9|4\.0)\d \(\d\.\d+ to \d\.\d+\)$"}
    between = r" (3\.9|4\.0)\d \(\d\.\d+ to \d\.\d+ in a round\)$"
    assert all(re.search(ratio.get(rounds, between), row) for row in rows[1:])


def test_the_layer_where_an_error_begins_is_marked() -> None:
    nodes = tuple(Node(f"n{i}", "Relu", (f"v{i - 1}",) if i else ("x",), (f"v{i}",)) for i in range(4))
    layers = tuple(Layer(i, f"n{i}", "Relu", f"v{i}", 0.1, 50.0 if i == 2 else 0.1, 0.1) for i in range(4))
    results, runs = ran(planted=1e-3)
    results = replace(results, layers=(LayerErrors("ort-basic", layers), LayerErrors("x", why="no names")))
    text = page.html_of(results, runs, Glance("onnx", 7, nodes=nodes))
    (box,) = re.findall(r'<g class="box marked"><title>(.*?)</title>', text)
    assert box == "n2 (Relu): 50 of what it may add"
    assert text.count('<g class="box"') == 3
    assert text.count('<svg class="layers"') == 1
    assert "its layers could not be compared: no names" in text
    elsewhere = page.html_of(results, runs, Glance("onnx", 7, nodes=(Node("other", "Add", ("a",), ("b",)),)))
    assert "box marked" not in elsewhere


def test_links_lead_to_files_that_are_there(tmp_path: Path) -> None:
    results, runs = ran(planted=1e-3)
    assert "href" not in page.html_of(results, runs)
    store.write(tmp_path, results, runs, (INPUTS,) * 2)
    addresses = re.findall(r'href="([^"]+)"', page.html_of(results, runs, folder=tmp_path))
    assert all((tmp_path / address).exists() for address in addresses)
    assert "basic/cpu/ort/ort-basic_as_given/reproducer.py" in addresses
    assert {"inputs.npz", "results.json", "pairs.csv"} < set(addresses)
    assert sum("reproducer" in address for address in addresses) == 1


def test_forty_variants_of_many_outputs_are_below_a_megabyte() -> None:
    rng = np.random.default_rng(5)
    exact = [rng.normal(size=(2, 64, 64)) for _ in range(20)]
    moved = [one + 1e-6 * rng.normal(size=(noise.RUNS, *one.shape)) for one in exact]
    names = [f"output_{i}" for i in range(20)]
    expected = (noise.expect(names, ["float32"] * 20, exact, moved),)
    runs = []
    for number in range(40):
        file = ModelFile(Path("net.onnx"), "onnx", (f"a-conversion-with-a-name-{number}", "another-one"))
        arrays = tuple((one + 1e-6 * number * rng.normal(size=one.shape)).astype(np.float32) for one in exact)
        runs.append(Run(Variant(file, RUNNERS["ort-all"]), [Value(arrays)], [1e-3 * (number + 1)]))
    ports = [Port(name, "float32", (2, 64, 64)) for name in names]
    results = assemble(MODEL, [], ports, Reference(expected, "made up"), runs, [], 0, 1, {})
    layers = tuple(Layer(i, f"n{i}", "Relu", f"v{i}", 0.1, 50.0 if i == 200 else 0.1, 0.1) for i in range(700))
    nodes = tuple(Node(f"n{i}", "Relu", (f"v{i - 1}",), (f"v{i}",)) for i in range(700))
    results = replace(results, layers=(LayerErrors("ort-all", layers),))
    text = page.html_of(results, runs, Glance("onnx", 7, nodes=nodes))
    assert text.count('<section class="output">') == 20
    assert text.count('class="box marked"') == 1
    assert len(text.encode()) < MOST


def detector(path: Path) -> None:
    """Two convolutions, and heads for boxes and scores."""
    rng = np.random.default_rng(0)
    shapes = {"w1": (8, 3, 3, 3), "w2": (4, 8, 1, 1), "w3": (5, 8, 1, 1)}
    weights = [numpy_helper.from_array((0.2 * rng.normal(size=s)).astype(np.float32), n) for n, s in shapes.items()]
    weights += [numpy_helper.from_array(np.array([0, c, 256]), f"s{c}") for c in (4, 5)]
    nodes = [
        helper.make_node("Conv", ["image", "w1"], ["a"], name="stem", pads=[1, 1, 1, 1], strides=[2, 2]),
        helper.make_node("Relu", ["a"], ["b"]),
        *_head("boxes", "w2", "s4"),
        *_head("scores", "w3", "s5"),
    ]
    dims = {"image": ["batch", 3, 32, 32], "boxes": ["batch", 256, 4], "scores": ["batch", 256, 5]}
    image, *ends = (helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in dims.items())
    graph = helper.make_graph(nodes, "detector", [image], ends, weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)


def _head(name: str, weight: str, shape: str) -> Sequence[onnx.NodeProto]:
    return (
        helper.make_node("Conv", ["b", weight], [f"{name}1"], name=f"{name}_head"),
        helper.make_node("Reshape", [f"{name}1", shape], [f"{name}2"]),
        helper.make_node("Transpose", [f"{name}2"], [name], perm=[0, 2, 1]),
    )


def test_a_detector_at_a_glance(tmp_path: Path) -> None:
    detector(tmp_path / "detector.onnx")
    arguments = ["model", str(tmp_path / "detector.onnx"), "--targets", "ort-*", "--no-conversions", "--runs", "1"]
    result = CliRunner().invoke(app.app_of(), [*arguments, "--iterations", "1", "--out", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    text = (tmp_path / "out" / "report.html").read_text()
    assert len(text.encode()) < MOST
    told = plain(text)
    assert "format onnx, opset 17" in told
    assert "operators 8: 3 Conv, 2 Reshape, 2 Transpose, 1 Relu" in told
    assert f"{8 * 27 + 32 + 40 + 6} parameters" in told
    assert "image: float32[batch, 3, 32, 32]" in told
    assert "symbolic dimensions batch" in told
    assert "task, it seems detection" in told
    assert text.count('<g class="box"') == 8


@pytest.mark.slow
def test_the_page_of_digits(tmp_path: Path) -> None:
    arguments = ["model", "digits", "--targets", "torch-exported,ort-disable", "--edges", "torch-onnx", "--runs", "1"]
    result = CliRunner().invoke(app.app_of(), [*arguments, "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    text = (tmp_path / "report.html").read_text()
    assert len(text.encode()) < MOST
    assert "task, it seems classification" in plain(text)
    assert "Top-1 agreement" in text
    assert "as read from onnx by torch-onnx" in plain(text)
