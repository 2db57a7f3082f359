"""What D3 asks of a distributed setting: are its softmaxed outputs close to those of one device, and if not, in which
layers does the difference grow?

Clusters: MAD is the mean absolute difference of a layer's outputs between setting and base, at inference; its relative
change is RL = (MAD - m) / (m + 1e-7), m the greatest MAD of the layers that feed it. The kinds of the two layers with
the highest RL name the cluster. Outputs of layers are computed here, in float64, from the parameters and running
statistics that each run returned."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from generators.training.networks import INPUT, Layer, Network, columns_of

Arrays = Mapping[str, np.ndarray]

RTOL, ATOL = 1e-4, 5e-4
"""Of D3's `allclose`."""
SMALL = 1e-7
INFERENCE = "inference only"
"""The cluster of outputs that differ though all that was trained is the same."""
_erf = np.vectorize(math.erf, otypes=[np.float64])
_VARIANCE = ("running_var", "moving_variance")
_MEAN = ("running_mean", "moving_mean")


@dataclass(frozen=True)
class Closeness:
    """consistent: within D3's thresholds; largest: the greatest difference of softmaxed outputs (L-infinity), infinite
    where only one of them is a number; finite: both runs predict numbers only."""

    consistent: bool
    largest: float
    finite: bool


def softmaxed(prediction: np.ndarray) -> np.ndarray:
    """Softmax over the last axis, in float64; NaN where a row has no finite greatest element."""
    wide = prediction.astype(np.float64)
    with np.errstate(all="ignore"):
        powers = np.exp(wide - wide.max(-1, keepdims=True))
        return powers / powers.sum(-1, keepdims=True)


def closeness(base: np.ndarray, given: np.ndarray) -> Closeness:
    """Predictions of one device and of a setting (logits, a row a sample). NaN equals NaN: D3 counts it as an
    inconsistency, though both runs say the same."""
    if base.shape != given.shape:
        return Closeness(False, float("inf"), False)
    first, second = softmaxed(base), softmaxed(given)
    lost = np.isnan(first) | np.isnan(second)
    with np.errstate(all="ignore"):
        gaps = np.where(np.isnan(first) & np.isnan(second), 0.0, np.where(lost, np.inf, np.abs(first - second)))
    close = np.allclose(second, first, rtol=RTOL, atol=ATOL, equal_nan=True)
    return Closeness(
        close, float(np.max(gaps, initial=0.0)), bool(np.isfinite(base).all() and np.isfinite(given).all())
    )


def cluster(network: Network, base: Arrays, given: Arrays, x: np.ndarray) -> str:
    """The kinds of the two layers in which the difference grows most, the highest first. base, given: what the runs
    returned (`parameter.l0.weight`, `buffer.l1.running_mean`); x: the samples of inference."""
    first, second = (activations(network, run, x) for run in (base, given))
    with np.errstate(all="ignore"):
        mads = {name: float(np.mean(np.abs(first[name] - second[name]))) for name in first}
    changes = relative_changes(network, {name: mad if mad == mad else np.inf for name, mad in mads.items()})
    if not any(mads.values()):
        return INFERENCE
    kinds = {layer.name: layer.kind for layer in network.layers}
    highest = sorted(changes, key=lambda name: -changes[name])[:2]
    return " + ".join(kinds[name] for name in highest)


def relative_changes(network: Network, mads: Mapping[str, float]) -> dict[str, float]:
    """RL of every layer. mads: MAD by name of a layer; the input's is 0. Infinite where MAD is infinite first."""
    found = {}
    for layer in network.layers:
        before = max((mads[name] for name in layer.inputs if name != INPUT), default=0.0)
        mine = mads[layer.name]
        found[layer.name] = -1.0 if before == np.inf else (mine - before) / (before + SMALL)
    return found


def activations(network: Network, values: Arrays, x: np.ndarray) -> dict[str, np.ndarray]:
    """What each layer returns at inference, in float64, the batch first. values: as of `cluster`."""
    wide = {name: array.astype(np.float64) for name, array in values.items()}
    found: dict[str, np.ndarray] = {INPUT: x if network.vocabulary else x.astype(np.float64)}
    with np.errstate(all="ignore"):
        for layer in network.layers:
            given = [found[name] for name in layer.inputs]
            if layer.kind in ("columns", "embedding_bag"):
                first, last = columns_of(layer, network.shapes)
                given = [found[INPUT][:, first:last]]
            found[layer.name] = _layer(layer, wide, given)
    del found[INPUT]
    return found


def _layer(layer: Layer, values: Arrays, given: list[np.ndarray]) -> np.ndarray:
    x = given[0]

    def own(*names: str) -> np.ndarray:
        source = layer.tied if layer.tied and names == ("weight",) else layer.name
        kinds = ("parameter", "buffer")
        return next(values[key] for kind in kinds for name in names if (key := f"{kind}.{source}.{name}") in values)

    match layer.kind:
        case "linear":
            return x @ own("weight").T + (own("bias") if layer.numbers["bias"] else 0.0)
        case "conv2d":
            side = layer.numbers["kernel"] // 2
            padded = np.pad(x, ((0, 0), (0, 0), (side, side), (side, side)))
            windows = sliding_window_view(padded, (2 * side + 1, 2 * side + 1), (2, 3))
            return np.einsum("nchwij,ocij->nohw", windows, own("weight"), optimize=True) + _across(own("bias"), x)
        case "layer_norm":
            centred = x - x.mean(-1, keepdims=True)
            return centred / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * own("weight") + own("bias")
        case "batch_norm":
            mean, variance = _across(own(*_MEAN), x), _across(own(*_VARIANCE), x)
            return (x - mean) / np.sqrt(variance + 1e-5) * _across(own("weight"), x) + _across(own("bias"), x)
        case "embedding":
            return own("weight")[x]
        case "embedding_bag":
            rows = own("weight")[x.astype(np.int64)]
            return rows.mean(1) if layer.numbers["mean"] else rows.sum(1)
        case "columns":
            return x.reshape(len(x), *layer.shape)
        case "interaction":
            together = np.stack(given, 1)
            places = [(i, j) for i in range(len(given)) for j in range(i)]
            products = [(together[:, i] * together[:, j]).sum(1, keepdims=True) for i, j in places]
            return np.concatenate([x, *products], 1)
        case "flatten":
            return x.reshape(len(x), -1)
        case "add":
            return sum(given[1:], given[0])
        case "relu":
            return np.maximum(x, 0.0)
        case "tanh":
            return np.tanh(x)
        case "sigmoid":
            return _sigmoid(x)
        case "silu":
            return x * _sigmoid(x)
        case "gelu":
            return 0.5 * x * (1 + _erf(x / np.sqrt(2)))
        case kind:
            raise ValueError(f"{layer.name}: outputs of {kind} are not computed here")


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 0.5 * (1 + np.tanh(x / 2))


def _across(channels: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Numbers by channel, shaped so that they go with a batch of images or of vectors."""
    return channels.reshape(-1, *[1] * (x.ndim - 2))
