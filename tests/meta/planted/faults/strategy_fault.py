"""What a fault of a distribution strategy is: a change of one of its pieces."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from harness.strategies import STRATEGIES, Strategy
from harness.strategies.jax import program as jax_program
from harness.strategies.keras import program as keras_program
from harness.strategies.tensorflow import program as tensorflow_program
from harness.strategies.torch import program as torch_program


@dataclass(frozen=True)
class StrategyFault:
    """What is wrong, the strategy that it is planted in, and (piece, text, the text in its place). trait: what a run
    must have to show it ("": any may)."""

    name: str
    strategy: str
    piece: str
    old: str
    new: str
    trait: str = ""

    @property
    def sound(self) -> str:
        """The piece without the fault."""
        strategy = STRATEGIES[self.strategy]
        named = {"torch": torch_program, "jax": jax_program, "keras": keras_program, "tensorflow": tensorflow_program}
        pieces: Mapping[str, str] = {**named[strategy.framework].SINGLE_DEVICE, **strategy.pieces}
        assert self.old in pieces[self.piece], f"{self.name}: the text to change is not there"
        return pieces[self.piece]

    def planted(self) -> Strategy:
        """The strategy with the fault."""
        strategy = STRATEGIES[self.strategy]
        return replace(strategy, pieces={**strategy.pieces, self.piece: self.sound.replace(self.old, self.new)})
