"""Who prints training programs, by framework: a module of `harness/strategies/` with `FRAMEWORK`, `program` and
`single_device`."""

from __future__ import annotations

from types import ModuleType

from generators.discovery import modules_of
from generators.training.runs import Training
from harness.strategies.strategy import Noise, Strategy

_PRINTERS: dict[str, ModuleType] = {
    module.FRAMEWORK: module for module in modules_of("harness.strategies") if hasattr(module, "FRAMEWORK")
}


def program(training: Training, strategy: Strategy, noise: Noise | None = None) -> str:
    """The text that every process runs: it defines `train(rank, world, arrays)`. noise: of the reference."""
    return _PRINTERS[strategy.framework].program(training, strategy, noise)


def single_device(framework: str, shards: int, sent: bool = False) -> Strategy:
    """One device of a framework. Batch statistics are those of so many shares of each batch. sent: each share's
    gradients lose what they lose on their way between ranks."""
    return _PRINTERS[framework].single_device(shards, sent)
