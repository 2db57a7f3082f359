"""Matrices whose singular values are equal, of which formulas that divide by their differences know nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

from generators.baits.bait import Bait, Guard, Pattern

_DIAGONALS: dict[str, Any] = {"equal": (1, 1, 1), "signs": (1, -1, 1), "pair": (2, 1, 1), "different": (1, 2, 3)}


def _stretched(p: Pattern, operator: str, diagonal: str, turned: bool) -> str:
    """A function of a number times a diagonal matrix, or one whose rows are interchanged."""
    rows = np.diag(np.array(_DIAGONALS[diagonal], np.float64))
    return p.apply(operator, p.mul(p.input(), p.constant(np.roll(rows, 1, 0) if turned else rows)))


BAITS = (
    Bait("equal-singular-values", ("torch/linalg_det_backward",), _stretched,
         {"operator": Guard(("det", "matrix_exp")), "diagonal": Guard(("equal", "signs", "pair"), ("different",)),
          "turned": Guard((False, True))}, Guard(("float32",), ("float64",))),
)  # fmt: skip
