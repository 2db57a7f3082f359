"""Rules of rare operators, and of ONNX Runtime's own, against ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime as ort
import pytest
from examples.onnx_cases import apart, one_node
from examples.onnx_contrib_nodes import NODES as CONTRIB
from examples.onnx_runtime_nodes import RuntimeNode
from examples.onnx_standard_nodes import NODES as STANDARD

from oracles.onnx.evaluate import evaluate
from oracles.onnx.kinds import widened

UNIT = 2.0**-24
PLACES = {"Resize": 128, "GridSample": 128, "DFT": 128, "STFT": 128, "RNN": 64, "ai.onnx.ml:ZipMap": 1}
"""By operator, roundings of the greatest element of the inputs. A coordinate below 9 is off by three roundings of 9, on
two axes, and what lies between elements rises by at most two of them: 108. A transform of 32 elements has their sum
times cosines that are off by two roundings: 64. A recurrent layer rounds 11 terms in each of four steps: 44."""


def expected(node: RuntimeNode) -> tuple[Any, dict[str, np.ndarray], list[Any]]:
    """The model, its inputs, and what ONNX Runtime returns without rewriting it."""
    domain, _, operator = node.operator.rpartition(":")
    model = one_node(operator, node.inputs, node.version, node.outputs, domain, **node.attributes)
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    given = {f"x{place}": x for place, x in enumerate(node.inputs) if x is not None}
    session = ort.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    return model, given, list(session.run(None, given))


def within(found: Any, right: Any, allowed: float) -> bool:
    if isinstance(right, list):
        return len(found) == len(right) and all(within(*pair, allowed) for pair in zip(found, right, strict=True))
    if isinstance(right, dict):
        return list(found) == list(right) and within(list(found.values()), list(right.values()), allowed)
    return np.shape(found) == np.shape(right) and bool(np.all(np.abs(np.subtract(found, widened(right))) <= allowed))


def wrong_with(node: RuntimeNode) -> str:
    """ "" where the rule agrees."""
    model, given, results = expected(node)
    if node.operator not in PLACES:
        return apart(model, given, results)
    greatest = max(np.abs(x[np.isfinite(x)]).max(initial=0) for x in given.values() if x.dtype == np.float32)
    allowed = PLACES[node.operator] * UNIT * max(1.0, greatest)
    found = evaluate(model, given)
    return "" if within(found, results, allowed) else f"{found} is not {results}"[:300]


@pytest.mark.parametrize("node", CONTRIB, ids=lambda node: node.label)
def test_operators_of_onnx_runtime_agree(node: RuntimeNode) -> None:
    assert wrong_with(node) == ""


@pytest.mark.parametrize("node", STANDARD, ids=lambda node: node.label)
def test_rare_forms_of_operators_agree(node: RuntimeNode) -> None:
    assert wrong_with(node) == ""
