"""Given models from the command to the exit status: a wrong converter with its reproducers, known issues, folders of
images with their classes, files that carry code."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from examples.commands import model as command
from examples.networks_onnx import blocks
from onnx import TensorProto, helper, numpy_helper
from PIL import Image

from harness.conversions.edges import EDGES
from harness.conversions.formats import RUNNERS
from harness.findings.known.entry import KnownFileError
from harness.models import known
from harness.models.rows import Row
from harness.models.variants import ModelFile, Variant

RNG = np.random.default_rng(5)
WRONG = """
def convert(source, target):
    import onnx
    from onnx import helper

    model = onnx.load(source)
    node = [node for node in model.graph.node if node.op_type == "BatchNormalization"][-1]
    node.attribute.append(helper.make_attribute("epsilon", 1e-3))
    onnx.save(model, target)
"""


def again(program: Path) -> tuple[int, str]:
    """Exit status and output of a reproducer."""
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


@pytest.mark.slow
def test_a_wrong_converter_comes_with_its_reproducers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    onnx.save(blocks(4), tmp_path / "net.onnx")
    monkeypatch.setitem(EDGES, "onnx-version", replace(EDGES["onnx-version"], convert=WRONG))
    out = tmp_path / "out"
    few = (tmp_path / "net.onnx", "--targets", "ort-disable", "--edges", "onnx-version", "--runs", "0", "--out", out)
    status, told = command(*few)
    assert status == 1, told
    assert "1 of 2 variants deviate." in told
    assert "the error begins at v12 (BatchNormalization, 13 of 19)" in told
    assert "1 node; alone it errs by" in told
    place = out / "disable/cpu/ort/ort-disable_onnx-version"
    for program in (place / "reproducer.py", place / "culprit/reproducer.py"):
        code, said = again(program)
        assert (code, said.splitlines()[-1]) == (1, "reproduced"), said
    small = onnx.load(place / "culprit/culprit.onnx")
    assert [node.op_type for node in small.graph.node] == ["BatchNormalization"]
    # its file is made again where it is not there, and what is right then is not reproduced
    converted = out / "converted/onnx-version.onnx"
    converted.unlink()
    assert again(place / "reproducer.py")[0] == 1
    assert converted.exists()
    onnx.save(blocks(4), converted)
    assert again(place / "reproducer.py")[0] == 0

    entry = tmp_path / "known/onnx/epsilon/issue.toml"
    entry.parent.mkdir(parents=True)
    text = 'kind = "model"\nsymptoms = ["value"]\nedges = ["onnx-v*"]\noperators = ["{}"]\nreason = "planted"\n'
    entry.write_text(text.format("BatchNormalization"))
    converted.unlink()
    status, told = command(*few, "--known-issues", tmp_path / "known")
    assert status == 0, told
    assert "1 of 2 variants deviate, 1 of them as known issues say." in told
    assert json.loads((out / "results.json").read_text())["variants"][1]["known"] == "epsilon"
    entry.write_text(text.format("Conv"))
    assert command(*few, "--known-issues", tmp_path / "known")[0] == 1


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "$: Object missing required field `symptoms`"),
        ('symptoms = ["value"]\nreason = "r"\n', "neither runners nor edges are named"),
        ('symptoms = ["odd"]\nreason = "r"\nedges = ["tflite"]', "unknown symptom 'odd'"),
        ('symptoms = ["value"]\nreason = "r"\nrunners = ["x"]', "runners: nothing matches 'x'"),
        (
            'symptoms = ["value"]\nreason = "r"\nedges = ["tflite"]\nversions = ">1"',
            "$.versions: Expected `object`, got `str`",
        ),
        ("[[issue", "a/issue.toml: "),
    ],
)
def test_known_issues_that_cannot_be(text: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "onnx" / "a").mkdir(parents=True)
    (tmp_path / "onnx/a/issue.toml").write_text(f'kind = "model"\n{text}')
    with pytest.raises(KnownFileError, match=re.escape(told)):
        known.load(tmp_path)


def test_a_known_issue_is_of_models_with_certain_layers_and_of_versions() -> None:
    issue = known.KnownModel(
        Path("a"), ("value",), "r", edges=("keras-*",), layers=("Normalization",), versions={"keras": "<=3.15.1"}
    )
    variant = Variant(ModelFile(Path("x.onnx"), "onnx", ("keras-onnx",)), RUNNERS["ort-all"])
    row = Row(variant, "mismatch", "off", symptom="value")
    assert issue.explains(row, None, {"keras": "3.15.1"}, ["Dense", "Normalization"])
    assert not issue.explains(row, None, {"keras": "3.15.1"}, ["Dense"])
    assert not issue.explains(row, None, {"keras": "3.16.0"}, ["Normalization"])
    assert not issue.explains(row, None, {}, ["Normalization"])
    assert not issue.explains(replace(row, symptom="rejected"), None, {"keras": "3.15.1"}, ["Normalization"])


def test_the_known_issues_of_the_project_are_read() -> None:
    assert all(issue.reason.strip() for issue in known.load())


# ---- images and their classes --------------------------------------------------------------------------------


def brightest(path: Path) -> None:
    """A model whose scores are the means of an image's channels."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, 3, 6, 6])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [None, 3])
    axes = numpy_helper.from_array(np.array([2, 3]), "axes")
    graph = helper.make_graph([helper.make_node("ReduceMean", ["x", "axes"], ["y"], keepdims=0)], "g", [x], [y], [axes])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9), path)


def photographs(folder: Path) -> None:
    """Four images, the first with most red, then green, blue, red."""
    folder.mkdir()
    for number, channel in enumerate((0, 1, 2, 0)):
        pixels = RNG.integers(100, size=(9, 12, 3), dtype=np.uint8)
        pixels[..., channel] += 100
        Image.fromarray(pixels).save(folder / f"{number}.png")


def test_a_folder_of_images_with_names_of_classes_and_the_true_ones(tmp_path: Path) -> None:
    brightest(tmp_path / "net.onnx")
    photographs(tmp_path / "images")
    out = tmp_path / "out"
    few = (tmp_path / "net.onnx", "--no-conversions", "--targets", "ort-all", "--runs", "0", "--out", out)
    status, told = command(*few, "--inputs", tmp_path / "images")
    assert status == 2
    assert "images need it" in told
    (tmp_path / "images/preprocessing.toml").write_text("size = [6, 6]\n")
    (tmp_path / "images/labels.csv").write_text("0.png,red\n1.png,green\n2.png,red\n3.png,0\n")
    status, told = command(*few, "--inputs", tmp_path / "images")
    assert status == 2
    assert "'red' is neither a number nor one of the labels" in told
    (tmp_path / "labels.txt").write_text("red\ngreen\nblue\n")
    status, told = command(*few, "--inputs", tmp_path / "images", "--labels", tmp_path / "labels.txt")
    assert status == 0, told
    (variant,) = json.loads((out / "results.json").read_text())["variants"]
    assert variant["accuracy"] == {"top1": 0.75, "top5": 1.0}
    text = (out / "report.html").read_text()
    assert "<td>red</td><td>blue</td>" in text  # the third is blue, whatever the list says


def test_classes_beside_arrays_and_labels_as_json(tmp_path: Path) -> None:
    brightest(tmp_path / "net.onnx")
    x = np.zeros((2, 1, 3, 6, 6), np.float32)
    x[0, :, 1] = x[1, :, 2] = 1
    np.savez(tmp_path / "x.npz", x=x, labels=np.array([1, 2]))
    (tmp_path / "labels.json").write_text('["red", "green", "blue"]')
    few = (tmp_path / "net.onnx", "--no-conversions", "--targets", "ort-all", "--runs", "0", "--out", tmp_path / "out")
    status, told = command(*few, "--inputs", tmp_path / "x.npz", "--labels", tmp_path / "labels.json")
    assert status == 0, told
    assert json.loads((tmp_path / "out/results.json").read_text())["variants"][0]["accuracy"]["top1"] == 1
    np.savez(tmp_path / "x.npz", x=x, labels=np.array([1, 2, 0]))
    status, told = command(*few, "--inputs", tmp_path / "x.npz")
    assert status == 2
    assert "3 true classes are given for 2 samples" in " ".join(told.split())
    (tmp_path / "labels.json").write_text('{"red": 0}')
    status, told = command(*few, "--labels", tmp_path / "labels.json")
    assert status == 2
    assert "$: Expected `array`, got `object`" in " ".join(told.split())


# ---- files that carry code -----------------------------------------------------------------------------------

PICKLE = """
import sys

import torch

torch.manual_seed(0)
torch.save(torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Tanh()), sys.argv[1])
"""


@pytest.mark.slow
def test_a_pickled_module_is_refused_unless_it_is_trusted(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", PICKLE, str(tmp_path / "net.pt")], check=True)
    np.savez(tmp_path / "x.npz", input=np.ones((2, 4), np.float32))
    few = (tmp_path / "net.pt", "--inputs", tmp_path / "x.npz", "--runs", "0", "--out", tmp_path / "out")
    status, told = command(*few)
    assert status == 2
    assert "refused unless it is trusted (--trust): a pickle runs whatever code it names" in " ".join(told.split())
    status, told = command(*few, "--trust")
    assert status == 3, told
    assert "Nothing judged: no reference: the model cannot be had as ONNX" in told
    asked = [
        sys.executable,
        "-m",
        "pytest",
        "tests/test_model.py",
        "--model",
        str(tmp_path / "net.pt"),
        "-p",
        "no:cacheprovider",
    ]
    given = ["--inputs", str(tmp_path / "x.npz"), "--targets", "torch-pickled", "-rA"]
    done = subprocess.run([*asked, *given, "--trust"], capture_output=True, text=True, check=False)
    assert "nothing judged: not judged: Nothing judged: no reference" in done.stdout
    assert "SKIPPED" in done.stdout  # the other runners were not asked
    for wrong, why in (
        ([], "refused unless it is trusted (--trust)"),
        (["--trust", "--targets", "odd-*"], "no runner matches 'odd-*'"),
        (["--trust", "--labels", "nowhere.txt"], "nowhere.txt: No such file or directory"),
    ):
        done = subprocess.run([*asked, *given, *wrong], capture_output=True, text=True, check=False)
        assert done.returncode != 0
        assert why in done.stdout + done.stderr


def old_norm(path: Path) -> Path:
    """A BatchNormalization of opset 9, which onnx' own evaluator gets wrong, and after it one convolution."""
    rng = np.random.default_rng(2)
    weights = {name: rng.uniform(0.5, 1, 3).astype(np.float32) for name in ("scale", "bias", "mean", "variance")}
    nodes = [
        helper.make_node("BatchNormalization", ["x", *weights], ["v"], "norm"),
        helper.make_node("Conv", ["v", "w"], ["y"], "conv"),
    ]
    weights["w"] = rng.normal(size=(2, 3, 1, 1)).astype(np.float32)
    sides = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, c, 4, 4]) for n, c in (("x", 3), ("y", 2))]
    constants = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = helper.make_graph(nodes, "g", sides[:1], sides[1:], constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 9)], ir_version=8), path)
    return path


def test_a_known_issue_of_a_runner_without_layers_is_told_by_the_nodes_of_the_model(tmp_path: Path) -> None:
    few = "--targets", "ort-disable,onnx-reference", "--no-conversions", "--runs", "0", "--iterations", "1"
    status, told = command(old_norm(tmp_path / "net.onnx"), *few, "--out", tmp_path / "out")
    assert status == 0, told
    assert "onnx-reference: onnx-reference-batch-norm" in told
    issue = known.KnownModel(Path("a"), ("value",), "r", runners=("onnx-*",), nodes=("LSTM-*(*4*)(*clip*)",))
    row = Row(Variant(ModelFile(Path("x.onnx"), "onnx"), RUNNERS["onnx-reference"]), "mismatch", "off", symptom="value")
    assert issue.explains(row, None, {}, [], ["LSTM-14(0,1,2,4)(clip,hidden_size)"])
    assert not issue.explains(row, None, {}, [], ["LSTM-14(0,1,2)(clip,hidden_size)", "GRU-14(0,1,2,4)(clip)"])
