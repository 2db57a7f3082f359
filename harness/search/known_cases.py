"""The stored cases of known issues, run again: does an entry still show itself, and a program that shows it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from generators import caseio
from generators.graphs import Case
from harness.backends import Target
from harness.backends.probe import probe
from harness.execute.pool import Pool
from harness.execute.reading import read_by
from harness.findings import reproducer
from harness.findings.known.issues import KnownIssue
from harness.questions import QUESTIONS
from harness.questions.conversion import CONVERSION
from harness.questions.question import reproduction_of
from harness.search.laboratory import Laboratory
from oracles.judge.discrepancy import SYMPTOMS, Discrepancy

SHOWS, FIXED = "shows", "fixed"


def targets_of(issue: KnownIssue) -> list[Target]:
    """The targets that an entry names, where they are available here and of a version that it names; those that are to
    be asked for only where it names no others; none where it is of other processors."""
    asked = QUESTIONS[issue.oracle].targets
    named = [asked[name] for name in asked if issue.here and issue.names(name)]
    ordinary = [target for target in named if not target.opt_in]
    if issue.oracle == CONVERSION.name:  # one route is enough: its program's, or the shortest
        written = _target_of(issue.reproducer)
        named = [target for target in named if target.name == written] or named[:1]
    found = [(target, probe(target)) for target in ordinary or named]
    return [target for target, here in found if here.available and issue.applies_to(here.version or "0")]


def _target_of(reproducer: Path) -> str:
    """The target that a program says it is of; empty where it says none, or is not there."""
    text = reproducer.read_text(encoding="utf-8") if reproducer.is_file() else ""
    said = re.search(r"^TARGET = '(.*)'$", text, re.MULTILINE)
    return said[1] if said else ""


def still_shows(lab: Laboratory, issue: KnownIssue, target: Target, case: Case) -> str:
    """Run an entry's own case: `SHOWS`, `FIXED`, or "not run" with the reason."""
    why = QUESTIONS[issue.oracle].why_not(target, case.graph)
    if why:
        return f"not run: {why}"
    return SHOWS if _shown(lab, issue, target, case) else FIXED


def _shown(lab: Laboratory, issue: KnownIssue, target: Target, case: Case) -> Discrepancy | None:
    """What the entry is about, if it still shows, with the threads and in the time that the entry asks for."""
    limits = lab.pool.limits
    asked = replace(limits, threads=max(issue.threads, limits.threads), seconds=issue.seconds or limits.seconds)
    if asked != limits:
        with Pool(asked) as pool:
            return _found(Laboratory(pool), issue, target, case)
    return _found(lab, issue, target, case)


def _found(lab: Laboratory, issue: KnownIssue, target: Target, case: Case) -> Discrepancy | None:
    """A worker that has run other programs before may hide it (what is compiled, what lies in memory), so that a miss
    is asked again of a fresh one: most entries cost no import."""
    asking = Laboratory(lab.pool, QUESTIONS[issue.oracle])
    for again in (False, True):
        if again:
            lab.pool.restart_worker(*target.worker)
        found = asking.judge(case, [target]).verdicts[target.name].discrepancy
        if found and found.symptom in issue.symptoms and issue.says(found.message):
            return found
    return None


def write_reproducers(lab: Laboratory, issues: Sequence[KnownIssue]) -> list[str]:
    """Write the reproducer of each entry that has none yet into its folder, of the first of its targets that shows it
    here. Returns the ids of those that no target shows."""
    missing = []
    for issue in issues:
        if issue.reproducer.exists():
            continue
        case = read_by(issue.case, caseio.loads)
        for target in targets_of(issue):
            found = _shown(lab, issue, target, case)
            if found:
                title = f"{issue.id}: {SYMPTOMS[found.symptom].__name__} of {target.name}"
                question = QUESTIONS[issue.oracle]
                outcome = Laboratory(lab.pool, question).returned(target, case, found.symptom)
                shown = reproduction_of(question, target, case, outcome)
                # alone, it imports the framework in that time, too
                seconds = issue.seconds + 30 if issue.seconds else lab.pool.limits.seconds
                reproducer.write(issue.folder, shown, found.symptom, title, seconds)
                break
        else:
            missing.append(issue.id)
    return missing
