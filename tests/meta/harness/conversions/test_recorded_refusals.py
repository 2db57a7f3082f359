"""What the framework that a graph is written in refuses of rare dtypes, while its file is written."""

from __future__ import annotations

import pytest

from harness.conversions.route import target_of
from harness.questions.conversion import refusal
from oracles.judge.outcome import Rejected


@pytest.mark.parametrize(
    ("route", "kind", "said"),
    [
        ("torch/tvm-pt2/tvm", "NotImplementedError", "\"geqrf_cpu\" not implemented for 'Half'"),
        ("torch/torch-onnx/ort-all", "RuntimeError", "quantile() input tensor must be either float or double dtype"),
        ("tensorflow/tflite/litert", "ValueError", "data type <class 'ml_dtypes.bfloat16'> not inexact"),
    ],
)
def test_what_is_recorded_of_the_framework_is_a_refusal_in_its_own_step(route: str, kind: str, said: str) -> None:
    target = target_of(route)
    found = refusal(target, Rejected(kind, f"{said}\nin step write"))
    assert found is not None
    assert found.startswith("write: ")
    step = route.split("/")[1]
    assert refusal(target, Rejected(kind, f"{said}\nin step {step}")) is None


def test_what_is_not_recorded_of_it_stays_a_discrepancy() -> None:
    target = target_of("torch/tvm-pt2/tvm")
    for kind, said in (("RuntimeError", "quantile() gave up"), ("NotImplementedError", ""), ("KeyError", "'Half'")):
        assert refusal(target, Rejected(kind, f"{said}\nin step write")) is None
    onnx = target_of("onnx/tvm-onnx/tvm")  # a builder of protobufs writes it, which refuses nothing
    said = "\"geqrf_cpu\" not implemented for 'Half'\nin step write"
    assert refusal(onnx, Rejected("NotImplementedError", said)) is None
