"""The derivative of one node by one operand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from oracles.derivatives.rounding.formulas import Known

Array = np.ndarray


@dataclass(frozen=True)
class Jacobian:
    """The derivative of a node by one operand: d result[rows] / d operand[columns] = value, all else 0.

    error: of the differences themselves; infinite where undetermined
    moved: how far the slope moves when the operands move by what they may be off
    floor: by element of the operand, how steep it may be for any result without having been seen
    open:  results whose columns could not be told: they leave every element of the operand undetermined
    at:    values of all operands, steps by element of this one -> the same slopes there, by central differences
    block: so many slopes, one after the other, are those of one number by one number: 2 or 4 of complex ones
    known: what the formula of the derivative loses, if it is known and is to be asked for"""

    rows: Array
    columns: Array
    value: Array
    error: Array
    moved: Array
    floor: Array
    open: Array
    at: Callable[[Sequence[Array], Array], Array]
    block: int = 1
    known: Known | None = None

    @property
    def size(self) -> Array:
        """Magnitudes: of what is of one block, the greatest singular value (|f'| of a holomorphic f)."""
        if self.block == 1:
            return np.abs(self.value)
        blocks = self.value.reshape(-1, self.block)
        square = np.sum(blocks**2, axis=1)
        if self.block == 4:
            twice = 2 * (blocks[:, 0] * blocks[:, 3] - blocks[:, 1] * blocks[:, 2])
            square = (square + np.sqrt(np.maximum((square - twice) * (square + twice), 0.0))) / 2
        return np.repeat(np.sqrt(square), self.block)

    def together(self, marked: Array) -> Array:
        """By slope: is any of its block marked?"""
        return np.repeat(marked.reshape(-1, self.block).any(1), self.block) if self.block > 1 else marked


def no_slopes(values: Sequence[Array], steps: Array) -> Array:
    """Of a derivative without any."""
    return np.zeros(0)
