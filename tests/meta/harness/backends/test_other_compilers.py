"""Targets that take another framework's model: they run, a planted fault shows, and what they refuse is told apart."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from examples.small_graphs import chain_case
from planted.targets import planted

from generators.graph import Graph, Leaf, Node, TensorType
from generators.graphs import Case
from generators.ops import check
from harness.backends import TARGETS, probe, select
from harness.execute.pool import Pool
from harness.search.laboratory import Laboratory
from oracles.judge.outcome import Rejected

FAULTS = {
    "onnx": 'g.op("Abs", {right})',
    "tensorflow": "tf.abs({right})",
    "keras": "keras.ops.abs({right})",
    "torch": "torch.abs({right})",
}
OPT_IN = [target.name for target in TARGETS.values() if target.opt_in and target.dialect.name in FAULTS]
SLOW = ("keras-tensorflow", "keras-jax")
"""Whose imports cost more than the rest."""


@pytest.fixture(scope="module")
def lab() -> Iterator[Laboratory]:
    with Pool() as pool:
        yield Laboratory(pool)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.nightly) if name in SLOW else name for name in OPT_IN]
)
def test_right_and_wrong(name: str, lab: Laboratory) -> None:
    target = TARGETS[name]
    status = probe.probe(target)
    if not status.available:
        pytest.skip(f"{name}: {status.reason}")
    wrong = planted("neg", FAULTS[target.dialect.name], of=name)
    found = lab.judge(chain_case(), [target, wrong]).verdicts
    assert (found[name].status, found["planted"].status) == ("agree", "mismatch")


def test_only_globs_that_name_them_choose_them() -> None:
    assert OPT_IN
    assert not any(target.opt_in for target in select("*"))
    assert {target.name for target in select("litert-*,openvino,ort-*")} >= {"litert-xnnpack", "openvino", "ort-all"}
    assert "openvino" in {target.name for target in select("*,openvino")}


def test_an_input_that_nothing_reads_is_left_out(lab: Laboratory) -> None:
    """OpenVINO's importer drops it: all of x0 is overwritten."""
    status = probe.probe(TARGETS["openvino"])
    if not status.available:
        pytest.skip(f"openvino: {status.reason}")
    types = TensorType("float32", (2,))
    nodes = (Node("v0", "write", ("x0", "x1"), (("mode", "copy"),), types),)
    graph = check(Graph((Leaf("x0", types), Leaf("x1", types)), nodes, ("v0",)))
    case = Case(graph, {"x0": np.zeros(2, np.float32), "x1": np.ones(2, np.float32)})
    assert lab.judge(case, [TARGETS["openvino"]]).verdicts["openvino"].status == "agree"


@pytest.mark.nightly
@pytest.mark.parametrize("operator", ["sum", "prod"])
def test_keras_keeps_the_type_of_narrow_integers(operator: str, lab: Laboratory) -> None:
    """By itself it returns 32 bits, as numpy does. The product wraps."""
    type_, axes = TensorType("int16", (3,)), (("axes", (0,)), ("keepdims", False))
    node = Node("v0", operator, ("x0",), axes, TensorType("int16", ()))
    case = Case(check(Graph((Leaf("x0", type_),), (node,), ("v0",))), {"x0": np.array([300, -300, 2], np.int16)})
    assert lab.judge(case, [TARGETS["keras-tensorflow"]]).verdicts["keras-tensorflow"].status == "agree"


@pytest.mark.parametrize(
    ("name", "message", "refused"),
    [
        ("litert-xnnpack", "<unknown>:0: error: 'tf.Cosh' op is neither a custom op nor a flex op", True),
        ("litert-reference", "Didn't find op for builtin opcode 'ROUND' version '1'.", True),
        ("litert-xnnpack", "tflite/kernels/rfft2d.cc:121 IsPowerOfTwo(fft_length_data[1]) was not true.", True),
        ("litert-xnnpack", "Invalid tensor size.", False),
        ("torch-eager", "'tf.Cosh' op is neither a custom op nor a flex op", False),
    ],
)
def test_a_documented_lack_is_no_fault(name: str, message: str, refused: bool) -> None:
    assert (TARGETS[name].declined(Rejected("ConverterError", message)) is not None) == refused
