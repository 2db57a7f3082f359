"""Rules that are wrong are caught by the cases of onnx."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from examples.onnx_cases import BackendCase, apart, backend_cases

from oracles.onnx import evaluate
from oracles.onnx.evaluate import EvaluationError
from oracles.onnx.rule import Call, Rule, Value
from oracles.onnx.rules import rules

Plant = Callable[[Rule], Rule]


def stating(**attributes: Any) -> Plant:
    """The attributes are these, whatever the node says."""

    def plant(rule: Rule) -> Rule:
        return lambda call: rule(replace(call, attributes={**call.attributes, **attributes}))

    return plant


def ignoring(*names: str) -> Plant:
    """The attributes have their defaults."""

    def plant(rule: Rule) -> Rule:
        def wrong(call: Call) -> Any:
            return rule(replace(call, attributes={k: v for k, v in call.attributes.items() if k not in names}))

        return wrong

    return plant


def giving(change: Callable[[np.ndarray], np.ndarray], place: int = 0) -> Plant:
    """One result is another one."""

    def plant(rule: Rule) -> Rule:
        def wrong(call: Call) -> list[Value]:
            results = list(rule(call))
            results[place] = change(np.asarray(results[place]))
            return results

        return wrong

    return plant


def taking(change: Callable[[Any], Any], place: int) -> Plant:
    """One input is another one."""

    def plant(rule: Rule) -> Rule:
        def wrong(call: Call) -> Any:
            inputs = list(call.inputs)
            if place < len(inputs) and inputs[place] is not None:
                inputs[place] = change(inputs[place])
            return rule(replace(call, inputs=tuple(inputs)))

        return wrong

    return plant


def version(number: int) -> Plant:
    """The rule of another version."""
    return lambda rule: lambda call: rule(replace(call, version=number))


PLANTED: dict[str, tuple[str, Plant]] = {
    "a convolution without its strides": ("Conv", ignoring("strides", "pads")),
    "the other half of an odd padding": ("Conv", stating(auto_pad="SAME_UPPER")),
    "a transposed convolution without dilation": ("ConvTranspose", ignoring("dilations")),
    "an average over the padding": ("AveragePool", stating(count_include_pad=1)),
    "a pool that rounds its size down": ("MaxPool", ignoring("ceil_mode")),
    "indices in the order of columns": ("MaxPool", stating(storage_order=1)),
    "a softmax of the last axis": ("Softmax", stating(axis=-1)),
    "a softmax of the older versions": ("Softmax", version(11)),
    "the least instead of the greatest": ("TopK", ignoring("largest")),
    "indices from the front": ("Gather", taking(np.abs, 1)),
    "an epsilon that is the default one": ("BatchNormalization", ignoring("epsilon")),
    "a normalization of the last axis": ("LayerNormalization", ignoring("axis")),
    "groups that have scales of their own": ("GroupNormalization", version(18)),
    "responses of a shorter window": ("LRN", stating(size=1)),
    "steps of 1": ("Slice", taking(np.ones_like, 4)),
    "a reflection that repeats the edge": ("Pad", stating(mode="edge")),
    "the sign of the divisor": ("Mod", stating(fmod=0)),
    "a sum with its own element": ("CumSum", ignoring("exclusive")),
    "the tanh form of Gelu": ("Gelu", stating(approximate="tanh")),
    "the last of equals": ("ArgMax", stating(select_last_index=1)),
    "an axis that is not kept": ("ReduceSum", stating(keepdims=0)),
    "the other order of blocks": ("DepthToSpace", stating(mode="DCR")),
    "a product in 16 bits": ("MatMul", taking(lambda x: x.astype(np.float16).astype(x.dtype), 0)),
    "a function of four digits more than it may lack": ("Erf", giving(lambda y: y * (1 + 1e-5))),
    "a mask that is turned around": ("Where", taking(np.logical_not, 0)),
    "casts that do not saturate": ("Cast", stating(saturate=0)),
    "a reset gate behind the product": ("GRU", stating(linear_before_reset=1)),
    "a cell without peepholes": ("LSTM", taking(np.zeros_like, 7)),
    "recurrent weights the wrong way round": ("RNN", taking(lambda r: r.swapaxes(1, 2), 2)),
    "ties that go up": ("Resize", stating(nearest_mode="round_prefer_ceil")),
    "pixels at their corners": ("Resize", stating(coordinate_transformation_mode="asymmetric")),
    "weights outside that count": ("Resize", ignoring("exclude_outside")),
    "a filter that is not stretched": ("Resize", ignoring("antialias")),
    "a grid of other corners": ("GridSample", ignoring("align_corners")),
    "regions that are not shifted": ("RoiAlign", version(10)),
    "boxes by their centres": ("NonMaxSuppression", stating(center_point_box=1)),
    "an overlap that always counts": ("NonMaxSuppression", taking(np.zeros_like, 3)),
    "a scale that is too great": ("QuantizeLinear", taking(lambda scale: scale * 1.1, 1)),
    "small floats that do not saturate": ("QuantizeLinear", stating(saturate=0)),
    "no zero point": ("DequantizeLinear", taking(np.zeros_like, 2)),
    "a convolution without a zero point": ("QLinearConv", taking(np.zeros_like, 2)),
    "a transform the wrong way": ("DFT", giving(lambda y: y * [1, -1])),
    "a window of one more step": ("HannWindow", stating(periodic=1)),
    "a mean without its weights": ("NegativeLogLikelihoodLoss", taking(np.ones_like, 2)),
    "a sum of losses": ("SoftmaxCrossEntropyLoss", stating(reduction="sum")),
    "causal attention from the first key on": ("Attention", taking(lambda past: past[:, :, :0], 4)),
    "attention without its cap": ("Attention", ignoring("softcap")),
    "attention that sees what follows": ("Attention", ignoring("is_causal")),
    "pairs of neighbours": ("RotaryEmbedding", stating(interleaved=1)),
    "a state that does not decay": ("LinearAttention", taking(np.zeros_like, 4)),
    "a state that is forgotten": ("CausalConvWithState", taking(np.zeros_like, 3)),
    "distances of no tokens": ("TfIdfVectorizer", ignoring("max_skip_count")),
    "the standard momentum": ("ai.onnx.preview.training:Momentum", stating(mode="standard")),
    "a tree with a transform": ("ai.onnx.ml:TreeEnsemble", stating(post_transform=2)),
}


def cases_of(operator: str) -> list[BackendCase]:
    name = operator.rpartition(":")[2]
    return [case for case in backend_cases() if [node.op_type for node in case.model.graph.node] == [name]]


@pytest.mark.slow(one_in=4)
@pytest.mark.parametrize("name", PLANTED)
def test_a_wrong_rule_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    operator, plant = PLANTED[name]
    wrong = {**rules(), operator: plant(rules()[operator])}
    monkeypatch.setattr(evaluate, "rules", lambda: wrong)
    told = []
    for case in cases_of(operator):
        for inputs, outputs in case.sets:
            try:
                told.append(apart(case.model, inputs, outputs))
            except EvaluationError as error:
                told.append(str(error))
    assert any(told), f"{len(told)} cases of {operator} accept it"
