"""Formats of model files: what is bad is one clear line, what is right is opened and run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from examples.small_graphs import several_outputs

from generators.graph import Graph, Leaf, Node, TensorType
from harness.backends import TARGETS
from harness.conversions.edges import EDGES
from harness.conversions.formats import FORMATS, RUNNERS, runners_of
from harness.conversions.model_file import FormatError, Port, Signature, program, recognise, signature
from harness.conversions.route import target_of
from harness.execute.pool import Job, Pool
from harness.models.convert import convert
from oracles.judge.outcome import Value


def onnx_file(pool: Pool, folder: Path) -> Path:
    """The case as an ONNX file."""
    path = folder / "model.onnx"
    target = target_of("onnx/ort-all")
    kept = f"shutil.copy(os.path.join(folder, FILES[-1]), {str(path)!r})\n        step = 'open'"
    text = target.program(several_outputs().graph).replace('step = "open"', kept)
    assert isinstance(pool.run([Job(target.framework, target.modules, text, several_outputs().arrays)])[0], Value)
    return path


def test_formats_and_runners_belong_together() -> None:
    assert {runner.format for runner in RUNNERS.values()} == set(FORMATS)
    assert all(edge.source in FORMATS and edge.target in FORMATS for edge in EDGES.values())


def test_what_a_runner_refuses_of_its_own_graphs_its_files_are_not_asked() -> None:
    """An exporter may write the operator otherwise: its files are asked."""
    type_ = TensorType("float64", (2,))
    graph = Graph((Leaf("x0", type_),), (Node("v0", "acos", ("x0",), (), type_),), ("v0",))
    why = TARGETS["ort-all"].unsupported(graph)
    assert why == "acos: the CPU provider has a kernel for float only"
    assert target_of("onnx/onnx-opset-18/ort-all").unsupported(graph) == why
    assert target_of("torch/torch-onnx/ort-all").unsupported(graph) is None
    assert target_of("onnx/tvm-onnx/tvm").unsupported(graph) is None


BAD = {
    "bad.onnx": (b"nonsense", "does not open with ort-all: InvalidProtobuf"),
    "empty.onnx": (b"", "is not of format onnx: the file is empty"),
    "bad.tflite": (b"nonsense" * 9, "is not of format tflite: b'TFL3' does not stand at byte 4"),
    "cut.tflite": (
        b"\0\0\0\0TFL3nonsense",
        "does not open with litert: ValueError: The model is not a valid Flatbuffer",
    ),
    "bad.keras": (b"PK", "is not of format keras: it is not a zip archive"),
    "bad.pt2": (b"PK", "is not of format pt2: it is not a zip archive"),
    "bad.xml": (b"<xml/>", "is not of format openvino: it holds no <net>"),
    "model.pth": (b"PK", "is refused unless it is trusted (--trust): a pickle runs whatever code it names"),
    "model.so": (b"\x7fELF", "is not of format relax: model.json is not beside it"),
    "model.h5": (b"PK", "no format of model has the suffix '.h5'; there are .tflite, .onnx, .pt2"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_one_clear_line(name: str, quick: Pool, tmp_path: Path) -> None:
    content, message = BAD[name]
    path = tmp_path / name
    path.write_bytes(content)

    def opened() -> Signature:
        return signature(quick, runners_of(recognise(path).name)[0], path)

    with pytest.raises(FormatError) as caught:
        opened()
    assert message in str(caught.value)
    assert str(path) in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_what_is_not_there_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"nowhere\.onnx does not exist"):
        recognise(tmp_path / "nowhere.onnx")
    with pytest.raises(FormatError, match=r"saved_model\.pb is not in the folder"):
        recognise(tmp_path)


def test_outputs_that_are_inputs_keep_their_places(quick: Pool) -> None:
    """Steps that do nothing are left out of a TFLite file: OpenVINO then knows outputs by the names of inputs alone,
    in an order of its own."""
    leaves = (Leaf("x0", TensorType("float32", (1, 2))), Leaf("x1", TensorType("float32", (1, 1))))
    nodes = (
        Node("v0", "pad", ("x0",), (("pads", (0, 0, 0, 0)), ("value", 0.0)), leaves[0].type),
        Node("v1", "flatten_2d", ("x1",), (("axis", 1),), leaves[1].type),
    )
    for outputs in (("v0", "v1"), ("v1", "v0")):
        target = target_of("tensorflow/tflite/openvino-tflite/openvino")
        arrays = {"x0": np.array([[1.0, 2.0]], np.float32), "x1": np.array([[3.0]], np.float32)}
        text = target.program(Graph(leaves, nodes, outputs))
        (outcome,) = quick.run([Job(target.framework, target.modules, text, arrays)])
        assert isinstance(outcome, Value)
        assert [y.tolist() for y in outcome.outputs] == [arrays[f"x{name[1:]}"].tolist() for name in outputs]


def test_a_file_is_opened_and_run(quick: Pool, tmp_path: Path) -> None:
    path = onnx_file(quick, tmp_path)
    runner = RUNNERS["ort-all"]
    told = signature(quick, runner, path)
    assert told.inputs == (Port("x0", "float32", (3, 3)), Port("x1", "float32", (3, 3)))
    assert [str(port) for port in told.outputs] == ["out0: float32[3,3]", "out1: float32[4,3]"]
    arrays = {name: several_outputs().arrays[name] for name in ("x0", "x1")}
    (outcome,) = quick.run([Job(runner.framework, runner.modules, program(runner, path, list(arrays)), arrays)])
    assert isinstance(outcome, Value)
    assert np.array_equal(outcome.outputs[0], arrays["x0"] - arrays["x1"] + several_outputs().arrays["w2"])


@pytest.mark.nightly
def test_a_pt2_that_carries_code_is_refused(tmp_path: Path) -> None:
    """torch.export.load unpickles example inputs that are not plain tensors."""
    script = """
import io, os, sys, zipfile
import torch

class Evil:
    def __reduce__(self):
        return (os.mkdir, (sys.argv[2],))

path = sys.argv[1]
torch.export.save(torch.export.export(torch.nn.ReLU(), (torch.zeros(2),)), path + ".good")
code = io.BytesIO()
torch.save(Evil(), code)
with zipfile.ZipFile(path + ".good") as good, zipfile.ZipFile(path, "w") as bad:
    for name in good.namelist():
        bad.writestr(name, code.getvalue() if name.endswith("sample_inputs/model.pt") else good.read(name))
"""
    path, mark = tmp_path / "model.pt2", tmp_path / "executed"
    subprocess.run([sys.executable, "-c", script, str(path), str(mark)], check=True)
    with Pool() as pool:
        with pytest.raises(FormatError, match="it holds a pickle of more than tensors"):
            signature(pool, RUNNERS["torch-exported"], path)
        why = convert(pool, EDGES["tvm-pt2"], path, tmp_path / "model.so")
        assert why
        assert "it holds a pickle of more than tensors" in why
        assert not mark.exists()
        with pytest.raises(FormatError):  # what the code makes is no tuple of inputs
            signature(pool, RUNNERS["torch-exported"], path, trust=True)
    assert mark.exists()
    assert all("exported_program(source)" in edge.convert for edge in EDGES.values() if edge.source == "pt2")


def test_every_runner_says_whose_kernels_it_runs_on() -> None:
    owners = {runner.owner for runner in RUNNERS.values()}
    assert "" not in owners
    assert {RUNNERS[name].owner for name in ("ort-all", "ort-disable")} == {"ONNX Runtime"}
    assert RUNNERS["tf-xla-savedmodel"].owner == RUNNERS["jax-exported"].owner != RUNNERS["tf-savedmodel"].owner
