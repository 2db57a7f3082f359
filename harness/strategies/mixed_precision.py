"""Which layers compute in bfloat16 in mixed precision, beside parameters in float32: by PyTorch's autocast, or all."""

from __future__ import annotations

from dataclasses import dataclass

from generators.training.networks import RECURRENT, Network, parameters_of

LOWER = ("linear", "conv2d", "attention", "interaction", *RECURRENT)
"""Layers that autocast computes in bfloat16 whatever they are given, their parameters cast (PyTorch 2.13, "CPU Ops that
can autocast to bfloat16": linear, _convolution, matmul, bmm, mkldnn_rnn_layer, scaled_dot_product_attention)."""
WIDE = ("columns", "embedding", "embedding_bag", "dropout")
"""Layers whose result autocast leaves in float32: of what was float32, or (dropout) times a mask that is. All others
compute in what they are given."""

SCALE, GROWTH = 16, 5
"""By which the loss is multiplied at first where layers compute in float16, and after how many steps that is doubled:
less than Keras has it (32768, 2000), so that it grows in a run, and little overflows that would not without it."""


@dataclass(frozen=True)
class LowPrecision:
    """layers: that compute in bfloat16; cast: those of them whose operands are float32, and are cast; narrow:
    parameters, and data (`x`), that are cast each time that they are used."""

    layers: tuple[str, ...]
    cast: tuple[str, ...]
    narrow: tuple[str, ...]


def low_precision_of(network: Network, policy: str) -> LowPrecision:
    """By a strategy's policy: "autocast", or "all"."""
    if policy == "all":
        return LowPrecision(tuple(layer.name for layer in network.layers), (), ("x", *network.parameters))
    layers: list[str] = []
    cast: list[str] = []
    narrow: list[str] = []
    for layer in network.layers:
        given = [name in layers for name in layer.inputs]
        if layer.kind in LOWER:
            layers.append(layer.name)
            cast += [] if all(given) else [layer.name]
            own = parameters_of(layer, network.shapes[layer.inputs[0]])
            names = (f"{layer.tied if layer.tied and key == 'weight' else layer.name}.{key}" for key in own)
            narrow += [name for name in names if name not in narrow]
        elif layer.kind not in WIDE and all(given):
            layers.append(layer.name)
    return LowPrecision(tuple(layers), tuple(cast), tuple(narrow))
