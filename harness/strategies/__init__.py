"""The distribution strategies: one file a kind. To add one, write its pieces and name its file here."""

from __future__ import annotations

from harness.strategies import jax_devices, torch_data, torch_pipeline, torch_sharded
from harness.strategies.strategy import Strategy

STRATEGIES: dict[str, Strategy] = {
    strategy.name: strategy
    for module in (torch_data, torch_sharded, torch_pipeline, jax_devices)
    for strategy in module.STRATEGIES
}

__all__ = ["STRATEGIES", "Strategy"]
