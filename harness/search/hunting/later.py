"""What a hunt may spend on its findings: a share of its time, what is more waits until its end."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from generators.graphs import Case
from harness.backends import Target
from harness.findings.store import Finding
from harness.search.campaign import Campaign
from oracles.judge.discrepancy import Discrepancy

SHARE = 0.2
"""Of a hunt's time, at most."""


@dataclass(frozen=True)
class Waiting:
    """A finding that is stored as it was met."""

    campaign: Campaign
    target: Target
    case: Case
    discrepancy: Discrepancy
    kept: Finding


@dataclass
class Later:
    """start, end: of the hunt, as `time.monotonic` has them"""

    start: float
    end: float
    spent: float = 0.0
    waiting: list[Waiting] = field(default_factory=list)

    @property
    def affordable(self) -> bool:
        """Is less spent than the share of the time that is over?"""
        return self.spent < SHARE * (time.monotonic() - self.start)

    @property
    def reserve(self) -> float:
        """Seconds that are kept at the end for those that wait."""
        return max(0.0, SHARE * (self.end - self.start) - self.spent) if self.waiting else 0.0

    @contextmanager
    def clock(self) -> Iterator[None]:
        """What goes on here is spent."""
        started = time.monotonic()
        try:
            yield
        finally:
            self.spent += time.monotonic() - started

    def due(self) -> Iterator[Waiting]:
        """Those that wait, the smallest first, as long as there is something to spend."""
        self.waiting.sort(key=lambda one: (len(one.case.graph.nodes), one.kept.fingerprint))
        while self.waiting and self.spent < SHARE * (self.end - self.start) and time.monotonic() < self.end:
            yield self.waiting.pop(0)
