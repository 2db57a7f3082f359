"""Lists of names, written as text."""

from __future__ import annotations

from functools import cache
from pathlib import Path


def words(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


@cache
def listed(file: str) -> frozenset[str]:
    """The words of a file of `allowed/`."""
    return words((Path(__file__).parents[1] / "allowed" / file).read_text(encoding="ascii"))
