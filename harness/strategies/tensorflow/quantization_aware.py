"""TensorFlow: quantisation-aware training with tfmot (8-bit weights and activations) on virtual devices, D3's settings.
It runs in the environment `tfmot` of environments.toml."""

from __future__ import annotations

from generators.training.networks import TABLES
from generators.training.runs import Training
from harness.strategies.strategy import WORLDS, Strategy, first_reason
from harness.strategies.tensorflow.mirrored import FEED, KEPT
from harness.strategies.tensorflow.tfmot_program import ENVIRONMENT, LAYERS, MODULES


def _not_quantised(training: Training, world: int) -> str | None:
    """What quantize_model does not take, and of what it takes, what the programs have no layer of."""
    network = training.network
    if network.vocabulary or not set(TABLES).isdisjoint(network.kinds):
        return "quantize_model refuses models with tables: it puts a quantiser on inputs of integers"
    if "layer_norm" in network.kinds:
        return "quantize_model refuses LayerNormalization"
    made = {layer.name: layer for layer in network.layers}
    for layer in network.layers:
        source = made.get(layer.inputs[0])
        takers = [other for other in network.layers if layer.inputs[0] in other.inputs]
        weighted = source is not None and source.kind in ("conv2d", "linear")
        if layer.kind == "batch_norm" and not (weighted and len(takers) == 1):
            return "quantize_model refuses BatchNormalization that is not alone behind a layer with weights"
        if layer.kind == "linear" and len(network.shapes[layer.inputs[0]]) == 3:
            return "images have their channels last here, and dense layers work on the last axis"
    absent = sorted(set(network.kinds) - set(LAYERS))
    if absent or network.idle or any(layer.tied for layer in network.layers):
        return f"models with {absent[0] if absent else 'tied or idle layers'} have no quantised counterpart here"
    return None


def _more_than_a_step(training: Training, world: int) -> str | None:
    settings, options = training.settings, dict(training.settings.options)
    if settings.dtype != "float32":
        return "fake quantisation is of float32"
    if settings.optimizer != "sgd" or options["weight_decay"] or settings.clip or settings.accumulate > 1:
        return "quantisation-aware training here is a step of SGD on a whole batch"
    if settings.steps > 1:
        return "from the second step on, whether the greatest weight of a channel has a gradient is a rounding"
    return "a replica without samples has no range" if min(settings.part_sizes) < world else None


def _quantised(name: str, worlds: tuple[int, ...], pieces: dict[str, str]) -> Strategy:
    return Strategy(
        name, "tf_keras", MODULES, worlds, pieces, one_process=True, ranges=True, environment=ENVIRONMENT,
        unsupported=first_reason(_not_quantised, _more_than_a_step),
    )  # fmt: skip


STRATEGIES = (
    _quantised("tfmot-one-device", (1,), {}),
    _quantised("tfmot-mirrored", WORLDS, {"strategy_of": KEPT, "feed": FEED}),
)
