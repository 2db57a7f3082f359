"""Layers in place of the functions of a traced graph: they compute the same, and hold the weights that are buffers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from harness.backends.tvm.layers import LAYERED

torch = pytest.importorskip("torch")
SHAPE = (2, 4, 5, 5)
F = torch.nn.functional
Model = Callable[[Any, Callable[..., Any]], Any]
MODELS: dict[str, tuple[Model, str]] = {
    "elu": (lambda x, _: F.elu(x, alpha=2.0), "ELU"),
    "gelu": (lambda x, _: F.gelu(x, approximate="tanh"), "GELU"),
    "hardtanh": (lambda x, _: F.hardtanh(x, min_val=0.0, max_val=0.5), "Hardtanh"),
    "avg_pool2d": (lambda x, _: F.avg_pool2d(x, 3, 2, 1, False, False, 5), "AvgPool2d"),
    "max_pool2d": (lambda x, _: F.max_pool2d(x, 2, stride=1, padding=1), "MaxPool2d"),
    "places": (lambda x, _: F.max_pool2d(x, 2, return_indices=True)[1], "MaxPool2d"),
    "softmax": (lambda x, _: F.softmax(x, dim=1), "Softmax"),
    "conv2d": (lambda x, w: F.conv2d(x, w(6, 2, 3, 3), w(6), stride=2, padding=1, groups=2), "Conv2d"),
    "conv_transpose2d": (lambda x, w: F.conv_transpose2d(x, w(4, 3, 2, 2), stride=2, groups=2), "ConvTranspose2d"),
    "linear": (lambda x, w: F.linear(x, w(3, 5), w(3)), "Linear"),
    "prelu": (lambda x, w: F.prelu(x, w(4)), "PReLU"),
    "batch_norm": (lambda x, w: F.batch_norm(x, w(4), w(4), w(4), w(4), training=False, eps=0.5), "BatchNorm2d"),
    "group_norm": (lambda x, w: F.group_norm(x, 2, w(4), w(4), 0.5), "GroupNorm"),
    "group_norm_plain": (lambda x, _: F.group_norm(x, 2), "GroupNorm"),
    "layer_norm": (lambda x, w: F.layer_norm(x, (5,), w(5), None, 0.5), "LayerNorm"),
    "instance_norm": (lambda x, w: F.instance_norm(x, None, None, w(4), w(4)), "InstanceNorm2d"),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_layer_takes_the_place_of_its_function(name: str) -> None:
    model, kind = MODELS[name]
    torch.manual_seed(0)
    weights = iter([torch.rand(4, 4, 4, 4).flatten() + 0.5 for _ in range(4)])
    held = torch.nn.Module()

    def weight(*shape: int) -> Any:
        number = len(list(held.buffers()))
        held.register_buffer(f"w{number}", next(weights)[: torch.Size(shape).numel()].reshape(shape))
        return getattr(held, f"w{number}")

    traced = torch.fx.symbolic_trace(lambda x: model(x, weight))
    x = torch.randn(SHAPE)
    expected = traced(x)
    program: dict[str, Any] = {"torch": torch, "INPUTS": {"x": ("float32", SHAPE)}}
    exec(LAYERED, program)
    program["layered"](traced)
    placed = [traced.get_submodule(node.target) for node in traced.graph.find_nodes(op="call_module")]
    assert [type(layer).__name__ for layer in placed] == [kind]
    torch.testing.assert_close(traced(x), expected)


def test_what_a_layer_would_refuse_stays_a_function() -> None:
    traced = torch.fx.symbolic_trace(lambda x: F.hardtanh(x, min_val=0.0, max_val=0.0))
    program: dict[str, Any] = {"torch": torch, "INPUTS": {"x": ("float32", SHAPE)}}
    exec(LAYERED, program)
    program["layered"](traced)
    assert not traced.graph.find_nodes(op="call_module")
