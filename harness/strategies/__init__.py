"""The distribution strategies: one file a kind. To add one, write its pieces and name its file here."""

from __future__ import annotations

from harness.strategies import (
    jax_devices,
    jax_resumed,
    keras_devices,
    tensorflow_keras,
    tensorflow_meshes,
    tensorflow_mirrored,
    tensorflow_mixed,
    tensorflow_quantised,
    tensorflow_resumed,
    tensorflow_workers,
    torch_averaged,
    torch_data,
    torch_grid,
    torch_joined,
    torch_pipeline,
    torch_power,
    torch_resumed,
    torch_sequence,
    torch_sharded,
    torch_tables,
    torch_tables_quantised,
)
from harness.strategies.strategy import Strategy

_FILES = (
    torch_data,
    torch_averaged,
    torch_joined,
    torch_power,
    torch_sharded,
    torch_sequence,
    torch_pipeline,
    torch_grid,
    torch_resumed,
    torch_tables,
    torch_tables_quantised,
    jax_devices,
    jax_resumed,
    keras_devices,
    tensorflow_mirrored,
    tensorflow_mixed,
    tensorflow_keras,
    tensorflow_resumed,
    tensorflow_meshes,
    tensorflow_workers,
    tensorflow_quantised,
)
STRATEGIES: dict[str, Strategy] = {strategy.name: strategy for file in _FILES for strategy in file.STRATEGIES}

__all__ = ["STRATEGIES", "Strategy"]
