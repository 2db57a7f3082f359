"""The rules of operators against the cases that come with onnx."""

from __future__ import annotations

from collections import Counter

import pytest
from examples.onnx_cases import apart, backend_cases

from oracles.onnx.rule import NoRule

BATCHES = 8
LEAST = 1500
"""Cases whose nodes all have a rule here, and not a function body."""
WRITTEN_DOWN = {"test_averagepool_2d_ceil_last_window_starts_on_pad": "its expected values are stated with four digits"}
ELSEWHERE = {
    *("DFT", "DequantizeLinear", "DynamicQuantizeLinear", "GRU", "GridSample", "LSTM", "MatMulInteger", "ConvInteger"),
    *("MelWeightMatrix", "NonMaxSuppression", "Optional", "OptionalGetElement", "OptionalHasElement", "QLinearConv"),
    *("QLinearMatMul", "QuantizeLinear", "RNN", "RandomUniformLike", "RegexFullMatch", "Resize", "RoiAlign", "STFT"),
    *("SequenceConstruct", "SequenceEmpty", "SequenceInsert", "SequenceLength", "SplitToSequence", "StringConcat"),
    *("StringNormalizer", "StringSplit", "TfIdfVectorizer", "MaxRoiPool", "Bernoulli", "ConcatFromSequence"),
}
"""Operators that these rules leave out."""
NEVER = {
    "ImageDecoder": "it decodes files",
    "Dropout": "it draws what it drops",
    "ai.onnx.ml": "",
    "ai.onnx.preview": "",
}


@pytest.mark.parametrize("batch", range(BATCHES))
def test_cases_of_onnx_agree(batch: int) -> None:
    wrong: dict[str, str] = {}
    without: Counter[str] = Counter()
    for case in backend_cases()[batch::BATCHES]:
        for inputs, outputs in case.sets:
            try:
                told = apart(case.model, inputs, outputs)
            except NoRule as error:
                without[str(error).split(":")[0].split()[0]] += 1
                continue
            if told and case.name not in WRITTEN_DOWN:
                wrong[case.name] = told
    assert wrong == {}
    left = {name for name in without if not any(name.startswith(known) for known in NEVER)}
    assert left <= ELSEWHERE


def test_most_cases_have_rules() -> None:
    from oracles.onnx.model import read
    from oracles.onnx.rules import rules

    covered = sum(
        all(node.operator in rules() or node.bodies for node in read(case.model).nodes) for case in backend_cases()
    )
    assert covered >= LEAST
