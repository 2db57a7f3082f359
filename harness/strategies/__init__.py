"""The distribution strategies: one file a kind. To add one, write its pieces and name its file here."""

from __future__ import annotations

from harness.strategies.jax import checkpoint as jax_resumed
from harness.strategies.jax import devices as jax_devices
from harness.strategies.keras import devices as keras_devices
from harness.strategies.strategy import Strategy
from harness.strategies.tensorflow import checkpoint as tensorflow_resumed
from harness.strategies.tensorflow import dtensor, keras_fit, mirrored, quantization_aware, workers
from harness.strategies.tensorflow import mixed_precision as tensorflow_mixed
from harness.strategies.torch import checkpoint as torch_resumed
from harness.strategies.torch import (
    ddp,
    join,
    local_sgd,
    pipeline,
    pipeline_replicas,
    powersgd,
    sequence_parallel,
    sharded,
    torchrec,
    torchrec_quantised,
)

_FILES = (
    ddp,
    local_sgd,
    join,
    powersgd,
    sharded,
    sequence_parallel,
    pipeline,
    pipeline_replicas,
    torch_resumed,
    torchrec,
    torchrec_quantised,
    jax_devices,
    jax_resumed,
    keras_devices,
    mirrored,
    tensorflow_mixed,
    keras_fit,
    tensorflow_resumed,
    dtensor,
    workers,
    quantization_aware,
)
STRATEGIES: dict[str, Strategy] = {strategy.name: strategy for file in _FILES for strategy in file.STRATEGIES}

__all__ = ["STRATEGIES", "Strategy"]
