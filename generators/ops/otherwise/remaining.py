"""Operators of which Relax alone has further spellings."""

from __future__ import annotations

from generators.ops.otherwise import choosing, computing, moving, reducing
from generators.ops.otherwise.record import SAID, otherwise
from generators.ops.otherwise.relax_spellings import RELAX
from generators.ops.spec import OpSpec

_THERE = {spec.base for part in (choosing, computing, moving, reducing) for spec in part.OPERATORS}

OPERATORS: tuple[OpSpec, ...] = tuple(otherwise(SAID[name]) for name in RELAX if name not in _THERE)
