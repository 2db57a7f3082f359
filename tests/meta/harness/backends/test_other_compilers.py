"""Targets that take another framework's model: they run, a planted fault shows, and what they refuse is told apart."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from examples.small_graphs import chain_case
from planted.targets import planted

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


@pytest.mark.slow(one_in=11)
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


@pytest.mark.parametrize(
    ("name", "message", "refused"),
    [
        ("litert-xnnpack", "<unknown>:0: error: 'tf.Cosh' op is neither a custom op nor a flex op", True),
        ("litert-reference", "Didn't find op for builtin opcode 'ROUND' version '1'.", True),
        ("litert-xnnpack", "Invalid tensor size.", False),
        ("torch-eager", "'tf.Cosh' op is neither a custom op nor a flex op", False),
    ],
)
def test_a_documented_lack_is_no_fault(name: str, message: str, refused: bool) -> None:
    assert (TARGETS[name].declined(Rejected("ConverterError", message)) is not None) == refused
