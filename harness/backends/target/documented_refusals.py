"""Exceptions in which a framework says that it does not do what a question asks for: refusals, not findings."""

from __future__ import annotations

import re
from collections.abc import Callable

from harness.backends.target.target import Target
from oracles.judge.outcome import Rejected

Patterns = tuple[tuple[str, str, str], ...]
"""(library, regular expression of "class: message", why)"""


def refusal_of(patterns: Patterns) -> Callable[[Target, Rejected], str | None]:
    """What tells why a target's framework refused, where one of the patterns is found in what it said; else None."""

    def refusal(target: Target, outcome: Rejected) -> str | None:
        text = f"{outcome.kind}: {outcome.message}"
        return next((why for name, said, why in patterns if name == target.library and re.search(said, text)), None)

    return refusal
