"""The main job: draw cases until the budget is spent, examine each on many targets, keep every finding."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from generators.graphs import Case, seeded_case
from harness.backends import Target, probe
from harness.execute.isolation.jobs import JobError, Jobs
from harness.execute.pool import Limits, OutOfTime, Pool, Unavailable
from harness.findings.known.issues import KnownIssue
from harness.findings.store import Finding, Store
from harness.questions import QUESTIONS
from harness.questions.forward import FORWARD
from harness.search import coverage
from harness.search.campaign import Campaign, operators_for
from harness.search.laboratory import Laboratory
from harness.search.reduce import within
from oracles.judge.discrepancy import Discrepancy
from oracles.judge.verdict import STATUSES


@dataclass(frozen=True)
class Options:
    """What a hunt is told. budget: seconds; cases: stop after so many (None: no limit); reduction: seconds that
    one finding may take to minimise, less where the budget ends before; voters: who else is asked about a finding;
    operators: what is drawn; favoured: dtypes that graphs favour, if not the question's; question: by name, what is
    asked of each case; passes: run each case also without drawn passes of each compiler."""

    targets: tuple[Target, ...]
    budget: float
    seed: int
    max_nodes: int
    findings: Path
    operators: tuple[str, ...]
    issues: tuple[KnownIssue, ...] = ()
    limits: Limits = field(default_factory=Limits)
    cases: int | None = None
    jobs: int = 1
    reduction: float = 60.0
    voters: tuple[Target, ...] = ()
    question: str = FORWARD.name
    favoured: tuple[str, ...] = ()
    passes: bool = False

    @property
    def labels(self) -> tuple[str, ...]:
        """What the targets are counted as."""
        without = tuple(f"{target.name}~*" for target in self.targets if target.switches) if self.passes else ()
        return (*dict.fromkeys(target.label for target in self.targets), *without)


def left_out(seed: int, index: int, target: Target) -> Target:
    """The target without passes that the case's number draws: one in half of the cases, else each with even chances."""
    assert target.switches
    draw, passes = random.Random(f"{seed}/{index}/{target.name}"), target.switches.passes
    some = [name for name in passes if draw.random() < 0.5] if draw.random() < 0.5 else []
    return target.without(some or [draw.choice(passes)])


@dataclass
class Tally:
    """Running figures of a hunt; those of several jobs add up. off: why frameworks were switched off;
    died: a line for each job that ended before its time."""

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

    def merged(self, other: Tally) -> Tally:
        names = dict.fromkeys((*self.statuses, *other.statuses))
        statuses = {n: self.statuses.get(n, Counter()) + other.statuses.get(n, Counter()) for n in names}
        return Tally(
            self.cases + other.cases,
            statuses,
            {**self.findings, **other.findings},
            self.counts + other.counts,
            self.excused + other.excused,
            self.elements + other.elements,
            self.undetermined + other.undetermined,
            {k: self.seconds.get(k, 0.0) + other.seconds.get(k, 0.0) for k in (*self.seconds, *other.seconds)},
            self.restarts + other.restarts,
            self.unconfirmed + other.unconfirmed,
            tuple(dict.fromkeys((*self.off, *other.off))),
        )


Progress = Callable[[Tally], None]


def run(options: Options, progress: Progress) -> Tally:
    """Hunt with `options.jobs` processes. `progress` is called often with the figures so far. A KeyboardInterrupt ends
    all jobs, with nothing lost but the cases under way, and is raised again; a job that dies is told of, and the others
    go on. Raises JobError where one meets a fault of ours."""
    if options.jobs == 1:
        return _job(options, 0, progress)
    jobs = Jobs(partial(_job, options), options.jobs)
    jobs.run(lambda latest: progress(_sum(latest)))
    if len(jobs.failures) == options.jobs:
        raise JobError("; ".join(jobs.failures))
    return replace(_sum(jobs.latest), died=tuple(jobs.failures))


def _sum(tallies: Mapping[int, Tally]) -> Tally:
    total = Tally()
    for tally in tallies.values():
        total = total.merged(tally)
    return total


def _job(options: Options, number: int, progress: Progress) -> Tally:
    """Cases number, number + jobs, … until the budget is spent."""
    targets = options.targets
    least = min(target.sample_every for target in targets)
    question = QUESTIONS[options.question]
    style = replace(question.style, favoured=options.favoured) if options.favoured else question.style
    operators = [
        name
        for name in options.operators
        if question.concerns(name) and any(operators_for(target, (name,)) for target in targets)
    ]
    tally = Tally(statuses={label: Counter() for label in options.labels})
    deadline = time.monotonic() + options.budget
    quota = None if options.cases is None else len(range(number, options.cases, options.jobs))
    with Pool(options.limits, tolerant=True, until=deadline) as pool:
        lab = Laboratory(pool, question)
        campaign = Campaign(
            lab,
            (*targets, *(voter for voter in options.voters if voter not in targets)),
            Store(options.findings, options.limits.seconds),
            options.issues,
            reduction=lambda: within(deadline, options.reduction),
        )

        def done() -> bool:
            return time.monotonic() >= deadline or (quota is not None and tally.cases >= quota)

        index = number
        try:
            while not done():
                chosen = [t for t in targets if index % max(1, t.sample_every // least) == 0]
                if options.passes:
                    chosen += [left_out(options.seed, index, target) for target in chosen if target.switches]
                try:
                    drawn = seeded_case(options.seed, index, options.max_nodes, operators, style)
                    _examine(campaign, question.prepare(drawn), chosen, tally)
                except OutOfTime:  # the case under way is not counted, but for what it has found already
                    break
                except Exception as error:  # a bug of ours: it has to be found again
                    error.add_note(f"case {index} of seed {options.seed}")
                    raise
                finally:
                    tally.seconds, tally.excused = dict(lab.seconds), Counter(campaign.excused)
                    tally.restarts, tally.unconfirmed = pool.restarts, pool.unconfirmed + campaign.unconfirmed
                    tally.off = tuple(pool.off.values())
                if len(pool.off) == len({(target.framework, target.environment) for target in targets}):
                    raise Unavailable("; ".join(tally.off))
                progress(tally)
                index += options.jobs
        finally:
            coverage.save(options.findings, lab.coverage)
    return tally


def _examine(campaign: Campaign, case: Case, targets: Sequence[Target], tally: Tally) -> None:
    """One case: count what came of it, and see to every discrepancy."""
    examination = campaign.lab.examine(case, targets)
    tally.cases += 1
    for target in targets:
        verdict = examination.verdicts[target.name]
        tally.statuses[target.label][verdict.status] += 1
        tally.elements += verdict.elements
        tally.undetermined += verdict.undetermined
        if verdict.discrepancy:
            _pursue(campaign, target, case, verdict.discrepancy, tally)


def _pursue(campaign: Campaign, target: Target, case: Case, discrepancy: Discrepancy, tally: Tally) -> None:
    rest = campaign.unexplained(target, case, discrepancy)
    if rest is None:
        return
    finding = campaign.investigate(campaign.fewest_left_out(target, *rest) if target.off else target, *rest)
    if finding:
        tally.findings[finding.fingerprint] = finding
        tally.counts[finding.fingerprint] += 1


def to_json(options: Options, tally: Tally, seconds: float) -> dict:
    """The report of a hunt: what `hunt --json` writes."""
    # interrupted early, a hunt has no figures of some targets yet
    statuses = {label: tally.statuses.get(label, Counter()) for label in options.labels}
    return {
        "question": options.question,
        "seed": options.seed,
        "versions": probe.versions(options.targets),
        "seconds": round(seconds, 3),
        "cases": tally.cases,
        "elements": {"compared": tally.elements - tally.undetermined, "undetermined": tally.undetermined},
        "targets": {name: {s: counts[s] for s in STATUSES} for name, counts in statuses.items()},
        "known_issues": dict(sorted(tally.excused.items())),
        "workers": {"started": tally.restarts, "off": list(tally.off), "died": list(tally.died)},
        "unconfirmed": dict(sorted(tally.unconfirmed.items())),
        "cpu_seconds": {name: round(value, 3) for name, value in sorted(tally.seconds.items())},
        "findings": [
            {
                "fingerprint": finding.fingerprint,
                "symptom": finding.symptom,
                "targets": list(finding.targets),
                "operators": list(finding.operators),
                "nodes": finding.nodes,
                "path": finding.path,
                "count": tally.counts[name],
            }
            for name, finding in sorted(tally.findings.items())
        ],
    }
