"""The distribution strategies: one file a kind. To add one, write its pieces and name its file here."""

from __future__ import annotations

from harness.globs import matching
from harness.strategies import (
    jax_devices,
    tensorflow_keras,
    tensorflow_mirrored,
    tensorflow_workers,
    torch_data,
    torch_sharded,
)
from harness.strategies.strategy import Strategy

STRATEGIES: dict[str, Strategy] = {
    strategy.name: strategy
    for module in (torch_data, torch_sharded, jax_devices, tensorflow_mirrored, tensorflow_keras, tensorflow_workers)
    for strategy in module.STRATEGIES
}


def select(globs: str) -> list[Strategy]:
    """Strategies whose names match one of the comma-separated globs, in order. Raises ValueError for a glob that
    matches nothing."""
    return [STRATEGIES[name] for name in matching(globs, STRATEGIES, "strategy")]


__all__ = ["STRATEGIES", "Strategy", "select"]
