"""Names that globs choose."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from fnmatch import fnmatchcase, translate
from functools import cache

_FEW = 40
"""So many names can be read in one line."""


def matching(globs: str, names: Iterable[str], kind: str) -> tuple[str, ...]:
    """The names that match, in their own order. Raises ValueError for a glob that matches nothing, so that a mistyped
    name is never dropped. kind: what a name is of, for the message."""
    known = tuple(dict.fromkeys(names))
    patterns = [pattern.strip() for pattern in globs.split(",")]
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in known):
            near = get_close_matches(pattern, known) if len(known) > _FEW else known
            raise ValueError(f"no {kind} matches {pattern!r}" + (f"; known: {', '.join(near)}" if near else ""))
    return tuple(name for name in known if any(fnmatchcase(name, pattern) for pattern in patterns))


@cache
def any_of(globs: tuple[str, ...]) -> re.Pattern[str]:
    """What matches each name that one of the globs does: compiled once, for who asks often."""
    return re.compile("|".join(map(translate, globs)) or "(?!)")
