"""Two versions of a framework on the same cases. Both are judged by the reference: a regression is a difference that
the new one has and the old one has not."""

from __future__ import annotations

import ast
import re
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from generators.graphs import Case, seeded_case
from harness.backends import Target, probe
from harness.execute.pool import MISSING, Limits, Pool
from harness.findings.database.recorder import NOTHING, Recorder
from harness.findings.known.issues import KnownIssue
from harness.findings.store import Finding, Store
from harness.questions import QUESTIONS
from harness.questions.forward import FORWARD
from harness.search.blame import culprit
from harness.search.campaign import Campaign, Condition, operators_for
from harness.search.laboratory import Laboratory
from oracles.judge.discrepancy import Discrepancy
from oracles.judge.outcome import Outcome, Unsupported, Value
from oracles.judge.verdict import Verdict, normalized
from oracles.questions import levels

STATES = {
    "agree": "both agree with the reference",
    "regressed": "the old one agrees, the new one does not",
    "fixed": "the new one agrees, the old one does not",
    "same fault": "both are wrong, in the same way",
    "another fault": "both are wrong, and not in the same way",
    "undetermined": "both agree, and the reference determines no element",
    "missing": "one of them has not what the program names",
    "unsupported": "neither is asked: somebody wrote down why",
}


@dataclass(frozen=True)
class Pair:
    """The same target with two versions."""

    old: Target
    new: Target

    @property
    def named(self) -> str:
        """Which versions are compared."""
        return f"{self.new.framework} {_version(self.old)} -> {_version(self.new)}"

    @property
    def regression(self) -> str:
        """What a finding shows beside its discrepancy."""
        return f"regression: {self.new.framework} {_version(self.old)} is right, {_version(self.new)} is not"


def _version(target: Target) -> str:
    where = f" (environment {target.environment})" if target.environment else ""
    return f"{probe.probe(target).version}{where}"


@dataclass(frozen=True)
class Options:
    """What is compared, and on what. operators: what is drawn (none: what the question draws); record: the run in the
    store."""

    pairs: tuple[Pair, ...]
    cases: int
    seed: int
    max_nodes: int
    findings: Path
    issues: tuple[KnownIssue, ...] = ()
    limits: Limits = field(default_factory=Limits)
    operators: tuple[str, ...] = ()
    question: str = FORWARD.name
    record: Recorder = NOTHING


@dataclass
class Row:
    """What came of one target's cases. bits: agree in both, with other bits; known: regressions by id of the known
    issue that explains them; faults: of a state other than agreement, by "operator symptom"."""

    states: Counter[str] = field(default_factory=Counter)
    bits: int = 0
    known: Counter[str] = field(default_factory=Counter)
    faults: dict[str, Counter[str]] = field(default_factory=dict)
    findings: dict[str, Finding] = field(default_factory=dict)

    def blame(self, state: str, faults: set[Fault]) -> None:
        """Count what is wrong in a case of this state."""
        self.faults.setdefault(state, Counter()).update(sorted({f"{fault[0]} {fault[1]}" for fault in faults}))


Fault = tuple[str, str, str]
"""Operators, symptom and normalised message of a node that is wrong alone, or of the whole graph where none is."""

Rows = dict[str, Row]


def run(options: Options, progress: Callable[[Rows, int], None]) -> Rows:
    """All cases on all pairs; a row for each pair, by the name of the new target. `progress` is called after each case
    with the rows and how many cases there were, and what it was told stands where this is interrupted."""
    question = QUESTIONS[options.question]
    rows: Rows = {pair.new.name: Row() for pair in options.pairs}
    operators = [
        name
        for name in options.operators or question.drawn
        if question.concerns(name) and any(operators_for(pair.new, (name,)) for pair in options.pairs)
    ]
    with Pool(options.limits) as pool:
        lab = Laboratory(pool, question)
        store = Store(options.findings, options.limits.seconds, options.record)
        for index in range(options.cases):
            started, before = time.monotonic(), _states(rows)
            try:
                drawn = seeded_case(options.seed, index, options.max_nodes, operators, question.style)
                _compare(lab, store, options, question.prepare(drawn), rows)
            except Exception as error:  # a bug of ours: it has to be found again
                error.add_note(f"case {index} of seed {options.seed}")
                raise
            options.record.case(
                question.name, _states(rows) - before, time.monotonic() - started, number=index, subject="versions"
            )
            progress(rows, index + 1)
    return rows


def _states(rows: Rows) -> Counter[str]:
    return sum((row.states for row in rows.values()), Counter())


def _compare(lab: Laboratory, store: Store, options: Options, case: Case, rows: Rows) -> None:
    """One case on all pairs."""
    targets = [target for pair in options.pairs for target in (pair.old, pair.new)]
    outcomes = iter(lab.outcomes([(target, case) for target in targets]))
    for pair in options.pairs:
        old, new = next(outcomes), next(outcomes)
        row = rows[pair.new.name]
        judged = (_judge(lab, pair.old, case, old), _judge(lab, pair.new, case, new))
        state = state_of(*judged)
        lacks = {target: why for target, why in ((pair.old, lacking(old)), (pair.new, lacking(new))) if why}
        if lacks:
            row.blame("missing", {fault for target, why in lacks.items() for fault in _without(target, case, why)})
            row.states["missing"] += 1
            continue
        row.bits += state == "agree" and bits_differ(old, new)
        wrong = [judgement.discrepancy for judgement in judged]
        if any(wrong):
            before, after = (
                _faults(lab, target, case, found) if found else {}
                for target, found in zip((pair.old, pair.new), wrong, strict=True)
            )
            if state == "same fault" and set(before) != set(after):
                state = "another fault"
            row.blame(state, {*before, *after})
            condition = Condition(pair.regression, right(lab, pair.old))
            campaign = Campaign(lab, (pair.old, pair.new), store, options.issues, condition=condition)
            if state == "regressed" and wrong[1]:
                _pursue(campaign, pair.new, case, wrong[1], row)
            for fault in after if state == "another fault" else ():
                shown = after[fault]
                if fault not in before and condition.holds(shown[0]):
                    _pursue(campaign, pair.new, *shown, row)
        row.states[state] += 1


def state_of(old: Verdict, new: Verdict) -> str:
    """One of STATES; faults of both are taken for the same until they are looked at."""
    match old.discrepancy is None, new.discrepancy is None:
        case True, True:
            return new.status if new.status in ("undetermined", "unsupported") else "agree"
        case True, False:
            return "regressed"
        case False, True:
            return "fixed"
        case _:
            return "same fault"


def lacking(outcome: Outcome) -> str:
    """What a version has not, in its words; empty where it has all that the program names."""
    return (
        outcome.why.removeprefix(MISSING)
        if isinstance(outcome, Unsupported) and outcome.why.startswith(MISSING)
        else ""
    )


def _without(target: Target, case: Case, why: str) -> set[Fault]:
    """The operators whose programs name what is missing; all of the case where its name is not told."""
    named = re.search(r"(?:attribute|cannot import name|No module named) '([\w.]+)'", why)
    nothing = dict.fromkeys(case.graph.types, np.zeros(0))
    alone = {node.op: target.program(culprit.single(case, node, nothing).graph) for node in case.graph.nodes}
    guilty = [op for op, text in alone.items() if named and named[1] in _names(text)]
    return {(op, f"missing in {_version(target)}", why) for op in guilty or ["+".join(case.graph.operators)]}


def _names(program: str) -> set[str]:
    """What a program names, its comments apart: variables, attributes, modules."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(program)):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name):
                found.add(name)
            case ast.ImportFrom(module=str(name)):
                found.add(name)
    return found


def bits_differ(old: Outcome, new: Outcome) -> bool:
    """Are two results that are both right not the same bits?"""
    if not isinstance(old, Value) or not isinstance(new, Value):
        return False
    return not all(levels.identical(a, b) for a, b in zip(old.outputs, new.outputs, strict=True))


def right(lab: Laboratory, target: Target) -> Callable[[Case], bool]:
    """Does a target return what the reference says?"""

    def holds(case: Case) -> bool:
        (outcome,) = lab.outcomes([(target, case)], confirm=False)
        return isinstance(outcome, Value) and _judge(lab, target, case, outcome).discrepancy is None

    return holds


def _judge(lab: Laboratory, target: Target, case: Case, outcome: Outcome) -> Verdict:
    return lab.question.judge(target, lab.question.expected(target, case), outcome)


def _faults(
    lab: Laboratory, target: Target, case: Case, discrepancy: Discrepancy
) -> dict[Fault, tuple[Case, Discrepancy]]:
    """What is wrong in a case, each with a case that shows it."""
    blamed = [(guilt.case, guilt.discrepancy) for guilt in culprit.blame(lab, target, case)]
    return {
        ("+".join(shown.graph.operators), found.symptom, normalized(found)): (shown, found)
        for shown, found in blamed or [(case, discrepancy)]
    }


def _pursue(campaign: Campaign, new: Target, case: Case, discrepancy: Discrepancy, row: Row) -> None:
    """Make a finding of a regression that is not known."""
    before = Counter(campaign.excused)
    rest = campaign.unexplained(new, case, discrepancy)
    row.known += campaign.excused - before
    if rest is None:
        return
    assert campaign.condition is not None
    finding = campaign.investigate(new, *(rest if campaign.condition.holds(rest[0]) else (case, discrepancy)))
    if finding:
        row.findings[finding.fingerprint] = finding


def to_json(options: Options, rows: Rows, cases: int) -> dict:
    """What `versions --json` writes."""
    return {
        "question": options.question,
        "seed": options.seed,
        "cases": cases,
        "targets": [
            {
                "old": pair.old.name,
                "new": pair.new.name,
                "versions": {"old": probe.versions([pair.old]), "new": probe.versions([pair.new])},
                "states": {state: rows[pair.new.name].states[state] for state in STATES},
                "changed_bits": rows[pair.new.name].bits,
                "known_issues": dict(sorted(rows[pair.new.name].known.items())),
                "faults": {state: dict(counts) for state, counts in rows[pair.new.name].faults.items()},
                "findings": [finding.path for finding in rows[pair.new.name].findings.values()],
            }
            for pair in options.pairs
        ],
    }
