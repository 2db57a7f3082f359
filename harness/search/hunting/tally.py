"""The figures of a hunt."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from harness.findings.store import Finding
from oracles.judge.discrepancy import WEAK


@dataclass
class Tally:
    """Running figures of a hunt; those of several jobs add up. cut: nodes that targets refuse, taken out of drawn
    cases; planned: verdicts of the plan by question; taken: places of the plan that were looked at; steps: that these
    were; off: why frameworks were switched off; died: a line for each job that ended before its time, repeated: for
    each that was lost and gone on with; unrecorded: why something is not in the store; elapsed: seconds of a job;
    faults: a line for each of ours that was met."""

    cases: int = 0
    statuses: dict[str, Counter[str]] = field(default_factory=dict)
    findings: dict[str, Finding] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    excused: Counter[str] = field(default_factory=Counter)
    elements: int = 0
    undetermined: int = 0
    seconds: dict[str, float] = field(default_factory=dict)
    restarts: int = 0
    unconfirmed: Counter[str] = field(default_factory=Counter)
    off: tuple[str, ...] = ()
    died: tuple[str, ...] = ()
    cut: Counter[str] = field(default_factory=Counter)
    planned: dict[str, Counter[str]] = field(default_factory=dict)
    taken: int = 0
    waiting: int = 0
    unrecorded: str | None = None
    steps: int = 0
    elapsed: float = 0.0
    repeated: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()

    @property
    def inconsistencies(self) -> tuple[str, ...]:
        """Those of the findings that are of the weaker class."""
        return tuple(name for name, finding in self.findings.items() if finding.symptom in WEAK)

    def merged(self, other: Tally) -> Tally:
        return Tally(
            self.cases + other.cases,
            _added(self.statuses, other.statuses),
            {**self.findings, **other.findings},
            self.counts + other.counts,
            self.excused + other.excused,
            self.elements + other.elements,
            self.undetermined + other.undetermined,
            {k: self.seconds.get(k, 0.0) + other.seconds.get(k, 0.0) for k in (*self.seconds, *other.seconds)},
            self.restarts + other.restarts,
            self.unconfirmed + other.unconfirmed,
            tuple(dict.fromkeys((*self.off, *other.off))),
            (),
            self.cut + other.cut,
            _added(self.planned, other.planned),
            self.taken + other.taken,
            self.waiting + other.waiting,
            self.unrecorded or other.unrecorded,
            self.steps + other.steps,
            self.elapsed + other.elapsed,
            (),
            self.faults + other.faults,
        )


def _added(one: Mapping[str, Counter[str]], other: Mapping[str, Counter[str]]) -> dict[str, Counter[str]]:
    return {name: one.get(name, Counter()) + other.get(name, Counter()) for name in dict.fromkeys((*one, *other))}


def total(tallies: Mapping[int, Tally]) -> Tally:
    """Of all jobs, in the order of their numbers."""
    found = Tally()
    for _, tally in sorted(tallies.items()):
        found = found.merged(tally)
    return found
