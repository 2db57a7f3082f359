"""How much known issues hide: in which operator x dtype x target x symptom no new fault could show, measured with
planted ones."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache

from harness.backends import Target
from harness.findings.known.issues import KnownIssue
from harness.search.blame import planted
from harness.search.blame.excuses import Excuses
from harness.search.dtype_support import claim, involved, samples
from harness.search.laboratory import Laboratory

SYMPTOMS = ("value", "special", "type", "outputs", "rejected", "crash", "timeout")


@dataclass
class Blindness:
    """Cells by target and by symptom; those in which every planted fault is excused; the sum of the shares of faults,
    or of their elements, that are excused in a cell; the same by issue, each asked alone."""

    cells: Counter[str] = field(default_factory=Counter)
    blind: Counter[str] = field(default_factory=Counter)
    hidden: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    by_issue: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    blind_by_issue: Counter[str] = field(default_factory=Counter)

    def add(self, target: str, symptom: str, share: float) -> None:
        """Count a cell."""
        for name in (target, symptom, ""):
            self.cells[name] += 1
            self.blind[name] += share == 1
            self.hidden[name] += share

    def row(self, name: str) -> dict[str, float | int | str]:
        """What was counted of a target or a symptom; `` for all."""
        return {
            "name": name or "all",
            "cells": self.cells[name],
            "blind": self.blind[name],
            "hidden": self.hidden[name] / max(self.cells[name], 1),
        }

    def to_json(self) -> dict:
        """All that was counted, the issues that hide most first."""
        names = [name for name in self.cells if name]
        worst = sorted(self.by_issue, key=lambda name: (-self.by_issue[name], name))
        return {
            "all": self.row(""),
            "symptoms": [self.row(name) for name in names if name in SYMPTOMS],
            "targets": [self.row(name) for name in names if name not in SYMPTOMS],
            "issues": [
                {"id": name, "blind": self.blind_by_issue[name], "hidden": self.by_issue[name]} for name in worst
            ],
        }


def measure(
    lab: Laboratory, issues: Sequence[KnownIssue], targets: Sequence[Target], operators: Sequence[str]
) -> Blindness:
    """Plant faults into small cases of every operator, dtype and symptom that each target runs, and ask the issues of
    the laboratory's question. Runs no program."""
    found = Blindness()
    alone = [issue for issue in issues if issue.together is not True and issue.oracle in lab.question.oracles]
    on = {t.name: {i.id for i in alone if any(i.names(n) for n in (t.name, *t.inherits))} for t in targets}
    for operator in filter(lab.question.concerns, operators):
        of = [issue for issue in alone if any(fnmatchcase(operator, glob) for glob in issue.operators)]
        for dtype in involved(operator):
            running = [target for target in targets if claim(target, operator, dtype)[0] == "runs"]
            for symptom in SYMPTOMS:
                asked = [issue for issue in of if symptom in issue.symptoms]
                for share, target in _shares(lab, asked, running, on, (operator, dtype, symptom), found):
                    found.add(target.name, symptom, share)
    return found


def _shares(
    lab: Laboratory,
    asked: Sequence[KnownIssue],
    targets: Sequence[Target],
    on: dict[str, set[str]],
    cell: tuple[str, str, str],
    found: Blindness,
) -> Iterator[tuple[float, Target]]:
    """The excused share of a cell on each target that can show the symptom; the same issues excuse the same."""
    cases = samples(*cell[:2])

    @cache
    def share(names: tuple[str, ...], arithmetic: str, index: int) -> float | None:
        known = tuple(issue for issue in asked if issue.id in names)
        excuses = Excuses(lab, known)
        target = targets[index]
        parts = [
            planted.excused(excuses, target, c) for one in cases for c in planted.culprits(lab, target, one, cell[2])
        ]
        total = sum(of for _, of in parts)
        return sum(hidden for hidden, _ in parts) / total if total else None

    first: dict[tuple[tuple[str, ...], str], int] = {}
    for index, target in enumerate(targets):
        if target.arithmetic and not lab.question.expect_under:
            continue
        names = tuple(issue.id for issue in asked if issue.id in on[target.name])
        arithmetic = target.arithmetic.name if target.arithmetic else ""
        place = first.setdefault((names, arithmetic), index)
        got = share(names, arithmetic, place)
        if got is None:
            continue
        for name in names:
            single = share((name,), arithmetic, place) or 0.0
            found.by_issue[name] += single
            found.blind_by_issue[name] += single == 1
        yield got, target
