"""Patterns that optimisers rewrite, with the guards of each rewrite put inside and outside: one record each, in the
tuple `BAITS` of a file of `patterns`. Every case is judged as any other."""

from __future__ import annotations

from generators.baits.bait import Bait
from generators.discovery import collected

BAITS: dict[str, Bait] = collected(f"{__name__}.patterns", "BAITS")
"""By name."""

__all__ = ["BAITS", "Bait"]
