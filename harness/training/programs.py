"""Who prints training programs, by framework: each file has `program` and `alone`."""

from __future__ import annotations

from types import ModuleType

from generators.training.runs import Training
from harness.strategies.jax import program as jax_program
from harness.strategies.keras import program as keras_program
from harness.strategies.strategy import Noise, Strategy
from harness.strategies.tensorflow import program as tensorflow_program
from harness.strategies.tensorflow import tfmot_program
from harness.strategies.torch import program as torch_program

_PRINTERS: dict[str, ModuleType] = {
    "torch": torch_program, "jax": jax_program, "keras": keras_program, "tensorflow": tensorflow_program,
    "tf_keras": tfmot_program,
}  # fmt: skip


def program(training: Training, strategy: Strategy, noise: Noise | None = None) -> str:
    """The text that every process runs: it defines `train(rank, world, arrays)`. noise: of the reference."""
    return _PRINTERS[strategy.framework].program(training, strategy, noise)


def alone(framework: str, shards: int, sent: bool = False) -> Strategy:
    """One device of a framework. Batch statistics are those of so many shares of each batch. sent: each share's
    gradients lose what they lose on their way between ranks."""
    return _PRINTERS[framework].alone(shards, sent)
