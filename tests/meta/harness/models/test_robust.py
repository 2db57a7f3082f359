"""Whatever a runner does is a row of the table and a finding, never the end of the report; outputs of every kind are
judged."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from examples.commands import model as command
from onnx import TensorProto, helper, numpy_helper
from syrupy.assertion import SnapshotAssertion

from harness.conversions.formats import RUNNERS

RNG = np.random.default_rng(3)
ODD = {
    "empty": "return [np.zeros((0, 2), np.float32)]",
    "flat": "return [found[0][0]]",
    "double": "return [found[0].astype(np.float64)]",
    "two": "return found * 2",
    "none": "return []",
    "nothing": "return None",
    "text": 'return [np.array([["a", "b"]])]',
    "object": "return [np.array([[{}, []]], object)]",
    "ragged": "return [[np.ones(2, np.float32), np.ones(3, np.float32)]]",
    "nan": "return [np.full_like(found[0], np.nan)]",
    "off": "return [found[0] + np.float32(0.01)]",
    "fewer": "return [np.float32(found[0][0, 0])]",
    "misspelt": "return found.no_such_attribute",
    "dies": "import os; os.abort()",
    "raises": 'raise RuntimeError("no \\x1b[31mkernel")',
    "hangs": "import time; time.sleep(100)",
}
"""What runners that are planted make of the right outputs."""


def plant(monkeypatch: pytest.MonkeyPatch, name: str, body: str) -> None:
    """A runner of ONNX files that returns something else than ONNX Runtime does."""
    right = RUNNERS["ort-disable"]
    text = f"{right.open}\n\nright_model = open_model\n\n\ndef open_model(path):\n"
    text += "    inputs, outputs, ask = right_model(path)\n\n    def call(*arrays):\n        found = ask(*arrays)\n"
    text += f"        {body}\n\n    return inputs, outputs, call\n"
    planted = replace(right, name=f"odd-{name}", framework=f"odd-{name}", open=text, owner=name)
    monkeypatch.setitem(RUNNERS, planted.name, planted)


def tensor(name: str, array: np.ndarray) -> onnx.TensorProto:
    return numpy_helper.from_array(array, name)


def save(path: Path, nodes: list, inputs: list, outputs: list, constants: list) -> Path:
    graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 2)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path


def dense(path: Path) -> Path:
    """A network with an output of shape (1, 2)."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 2])
    weights = tensor("w", RNG.normal(size=(4, 2)).astype(np.float32))
    return save(path, [helper.make_node("MatMul", ["x", "w"], ["y"], name="dense")], [x], [y], [weights])


@pytest.mark.slow
def test_whatever_a_runner_returns_is_a_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    for name, body in ODD.items():
        plant(monkeypatch, name, body)
    asked = "--targets", "ort-all,odd-*", "--no-conversions", "--iterations", "1", "--runs", "1", "--timeout", "8"
    status, told = command(dense(tmp_path / "net.onnx"), *asked, "--out", tmp_path / "out")
    assert status == 1, told
    results = json.loads((tmp_path / "out/results.json").read_text())
    lines = {one["name"]: (one["status"], one["message"][:60]) for one in results["variants"]}
    assert len(lines) == len(ODD) + 1
    assert lines.pop("odd-dies")[0] == "crash"
    assert [results["headline"], lines] == snapshot
    assert (tmp_path / "out/report.html").exists()
    reproduced = {path.parent.name for path in (tmp_path / "out").rglob("reproducer.py")}
    assert reproduced == {f"odd-{name}_as_given" for name in ODD if name != "misspelt"}


def test_a_runner_that_returns_something_else_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = "call.times = getattr(call, 'times', -1) + 1; return found * (1 + call.times % 3)"
    plant(monkeypatch, "fickle", body)
    asked = "--targets", "ort-all,odd-*", "--no-conversions", "--iterations", "1", "--runs", "3"
    command(dense(tmp_path / "net.onnx"), *asked, "--out", tmp_path / "out")
    _, fickle = json.loads((tmp_path / "out/results.json").read_text())["variants"]
    assert (fickle["status"], fickle["spread"]) == ("agree", "inf")


def several(path: Path) -> Path:
    """A network that returns nothing, truths, whole numbers, a scalar, text and a sequence."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])
    kinds = (
        ("empty", TensorProto.FLOAT, [0, 3]),
        ("above", TensorProto.BOOL, [2, 3]),
        ("best", TensorProto.INT64, [2]),
        ("total", TensorProto.FLOAT, []),
        ("word", TensorProto.STRING, [2]),
    )
    outputs = [helper.make_tensor_value_info(*kind) for kind in kinds]
    nodes = [
        helper.make_node("Slice", ["x", "none", "none"], ["empty"]),
        helper.make_node("Greater", ["x", "zero"], ["above"]),
        helper.make_node("ArgMax", ["x"], ["best"], axis=1, keepdims=0),
        helper.make_node("ReduceSum", ["x"], ["total"], keepdims=0),
        helper.make_node(
            "LabelEncoder", ["best"], ["word"], domain="ai.onnx.ml", keys_int64s=[0, 1, 2], values_strings=[*"abc"]
        ),
        helper.make_node("SplitToSequence", ["x"], ["rows"], axis=0, keepdims=0),
    ]
    outputs.append(helper.make_tensor_sequence_value_info("rows", TensorProto.FLOAT, [3]))
    constants = [tensor("none", np.array([0])), tensor("zero", np.array(0, np.float32))]
    return save(path, nodes, [x], outputs, constants)


@pytest.mark.slow(one_in=4, ci=2)
@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("return found", ""),
        ("found[0] = np.zeros((1, 3), np.float32); return found", "float32[1,3] instead of float32[0,3]"),
        ("found[1] = ~found[1]; return found", "mismatched 6 of 6 (100 %)   first at (0, 0): expected"),
        ("found[2] = found[2] + 1; return found", "mismatched 2 of 2 (100 %)   first at (0): expected"),
        ("found[3] = found[3] * 2; return found", "mismatched 1 of 1 (100 %)   greatest error"),
        ("found[5][1] = found[5][1] + 1; return found", "mismatched 3 of 3 (100 %)   greatest error"),
        ("found[4][:] = 'z'; return found", "mismatched 2 of 2 (100 %)   first at (0): expected"),
        ("found[5] = found[5][:1]; return found", "6 outputs instead of 7"),
    ],
)
def test_outputs_of_every_kind_are_judged(
    body: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch, "kind", body)
    asked = "--targets", "ort-all,odd-*", "--no-conversions", "--iterations", "2", "--runs", "0"
    status, said = command(several(tmp_path / "net.onnx"), *asked, "--out", tmp_path / "out")
    right, odd = json.loads((tmp_path / "out/results.json").read_text())["variants"]
    assert (status, right["status"]) == (int(bool(told)), "agree"), said
    assert told in odd["message"]
