"""Which operators share a program, so that a compiler is asked once for many of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")
OPERATORS = 12
"""Of a pack at most: with seven sizes each, 84 small functions for a compiler."""
ELEMENTS = 1 << 20
"""Of the leaves of a pack at most, unless one operator alone has more."""


def packed(items: Sequence[T], size: Callable[[T], int]) -> list[list[T]]:
    """In their order, at most OPERATORS together, and no more than ELEMENTS unless one alone has more."""
    packs: list[list[T]] = []
    held = 0
    for item in items:
        if not packs or len(packs[-1]) == OPERATORS or held + size(item) > ELEMENTS:
            packs.append([])
            held = 0
        packs[-1].append(item)
        held += size(item)
    return packs
