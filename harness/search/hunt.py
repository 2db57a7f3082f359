"""The main job: draw cases until the budget is spent, examine each on many targets, keep every finding."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from generators.baits.cases import with_bait
from generators.graphs import Case, Style, seeded_case
from harness.backends import Target, probe
from harness.execute.isolation.cluster import Cluster, jobs
from harness.execute.isolation.jobs import JobError, Share
from harness.execute.pool import HarnessError, Limits, OutOfTime, Pool, Unavailable
from harness.execute.reading import FileError
from harness.findings.database.recorder import Recorder
from harness.findings.known.issues import KnownIssue
from harness.findings.store import Finding, Store
from harness.questions import QUESTIONS
from harness.questions.forward import FORWARD
from harness.questions.question import Question
from harness.search import coverage
from harness.search.campaign import Campaign, operators_for
from harness.search.hunting import faults
from harness.search.hunting.carry_out import NOTHING, Carrier
from harness.search.hunting.cut import runnable
from harness.search.hunting.later import Later, Waiting
from harness.search.hunting.plan import Done, Plan, Step, picked
from harness.search.hunting.tally import Tally, total
from harness.search.hunting.turns import left_out, turn_of
from harness.search.laboratory import Laboratory
from harness.search.reduce import within
from oracles.judge.discrepancy import SILENT, Discrepancy
from oracles.judge.verdict import STATUSES, Verdict, normalized

SAVE_EVERY = 60.0
"""Seconds after which what was done of the plan is written down again."""


@dataclass(frozen=True)
class Options:
    """What a hunt is told. budget: seconds; cases: stop after so many drawn ones (None: no limit); reduction: seconds
    that one finding may take to minimise, less where the budget ends before; voters: who else is asked about a finding;
    operators: what is drawn; favoured: dtypes that graphs favour, if not the question's; question: by name, what is
    asked of each case; passes: run each case also without drawn passes of each compiler; plan: what is gone through
    beside, if anything; share: of the time that it has; steps: stop after so many of it (None: no limit); record:
    the run in the store; cluster: where the jobs run, if not as processes of this machine."""

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
    plan: Plan | None = None
    share: float = 0.5
    steps: int | None = None
    record: Recorder = field(default_factory=Recorder)
    cluster: Cluster | None = None

    @property
    def labels(self) -> tuple[str, ...]:
        """What the targets are counted as."""
        without = tuple(f"{target.name}~*" for target in self.targets if target.switches) if self.passes else ()
        return (*dict.fromkeys(target.label for target in self.targets), *without)


Progress = Callable[[Tally], None]


def run(options: Options, progress: Progress) -> Tally:
    """Hunt by `options.jobs` processes, or tasks of a cluster. `progress` is called often with the figures so far. A
    KeyboardInterrupt ends all jobs, with nothing lost but the cases under way, and is raised again; a job that dies is
    told of, and the others go on; so does one that meets a fault of ours. Raises JobError where there are too many."""
    if options.jobs == 1 and not options.cluster:
        return _job(options, Share(0, progress))
    together = jobs(partial(_job, options), options.jobs, options.cluster)
    together.run(lambda latest: progress(total(latest)))
    if len(together.failures) == options.jobs:
        raise JobError("; ".join(together.failures))
    return replace(total(together.latest), died=tuple(together.failures), repeated=tuple(together.repeated))


def _job(options: Options, share: Share[Tally]) -> Tally:
    """The cases and steps of the plan that it is given, until the budget is spent. What a job of this number that was
    lost had done is gone on with."""
    tally = Tally(statuses={label: Counter() for label in options.labels})
    earlier, started = share.before or Tally(), time.monotonic()
    deadline = started + options.budget - earlier.elapsed

    def done() -> Tally:
        tally.elapsed = time.monotonic() - started
        return earlier.merged(tally) if share.before else tally

    with Pool(options.limits, tolerant=True, until=deadline) as pool:
        hunter = _Hunter(options, share, pool, tally, deadline)
        try:
            while hunter.go_on():
                share.tell(done())
        finally:
            hunter.save()
    return done()


class _Hunter:
    """One job. Its time is divided between the plan and drawn cases; findings get a share of their own, and what is
    more waits until the end."""

    def __init__(self, options: Options, share: Share[Tally], pool: Pool, tally: Tally, deadline: float) -> None:
        self.options, self.pool, self.tally, self.deadline = options, pool, tally, deadline
        self.later = Later(time.monotonic(), deadline)
        self.campaigns: dict[str, Campaign] = {}
        self.coverage: dict[str, coverage.Coverage] = {}
        self.record = replace(options.record)
        self.store = Store(options.findings, options.limits.seconds, self.record)
        self.question = QUESTIONS[options.question]
        drawn = self.question.style
        self.style: Style = replace(drawn, favoured=options.favoured) if options.favoured else drawn
        self.operators = [
            name
            for name in options.operators
            if self.question.concerns(name) and any(operators_for(target, (name,)) for target in options.targets)
        ]
        earlier = share.before or Tally()
        self.cases = share.numbers("case", options.cases, earlier.cases)
        self.drawing = bool(self.operators)
        numbers = share.numbers("step", options.steps, earlier.steps)
        self.steps = picked(options.plan.steps(), numbers) if options.plan else iter(())
        self.planning = options.plan is not None
        self.carrier = Carrier(self.pursue)
        self.done, self.saved = Done(), time.monotonic()
        self.told: Counter[str] = Counter()
        self.spent = {"plan": 0.0, "drawn": 0.0}
        self.workers = {target.worker for target in options.targets}
        self.only_voting = {voter.worker for voter in options.voters} - self.workers
        self.voted = False

    def campaign(self, question: Question) -> Campaign:
        """The search that asks this; all go on with one pool and store."""
        if question.name not in self.campaigns:
            first = next(iter(self.campaigns.values()), None)
            lab = replace(first.lab, question=question) if first else Laboratory(self.pool, question)
            voters = self.options.voters if question is self.question else ()
            targets = self.options.targets if question is self.question else ()
            new = Campaign(
                lab,
                (*targets, *(voter for voter in voters if voter not in targets)),
                self.store,
                self.options.issues,
                reduction=lambda: within(self.deadline, self.options.reduction),
            )
            shared = (first.excused, first.unconfirmed) if first else (new.excused, new.unconfirmed)
            new.excused, new.unconfirmed = shared
            self.campaigns[question.name] = new
        return self.campaigns[question.name]

    def _end_voters(self) -> None:
        """Let workers go that have started, or grown, for votes alone: a hunt over few targets takes no more memory
        after a finding than before it."""
        for worker in self.only_voting if self.voted else ():
            self.pool.restart_worker(*worker)
        self.voted = False

    def go_on(self) -> bool:
        """The next step or case; then findings that wait. False where all is done, or the time is over."""
        asked = self.campaign(self.question)
        over = time.monotonic() >= self.deadline - self.later.reserve
        share, total = self.options.share, sum(self.spent.values())
        step = index = None
        if not over and self.planning and (not self.drawing or self.spent["plan"] <= share * total):
            step = next(self.steps, None)
            self.planning = step is not None
        if not over and step is None and self.drawing:
            index = next(self.cases, None)
            self.drawing = index is not None
        started, spent = time.monotonic(), self.later.spent
        what = "plan" if step else "drawn"
        try:
            if step or index is not None:
                self._end_voters()
            if step:
                self._carry_out(step)
            elif index is not None:
                self._draw(asked, index)
            elif over or not self.planning:
                return self._see_to_one()
        except OutOfTime:  # what is under way is not counted, but for what it has found already
            return False
        except (HarnessError, OSError, FileError):
            raise
        except Exception as error:
            self.tally.faults += (faults.keep(self.options.findings, error),)
            if len(self.tally.faults) >= faults.MOST:
                raise
        finally:
            self.spent[what] += time.monotonic() - started - (self.later.spent - spent)
            self._count(asked)
        if self.workers <= set(self.pool.off):
            raise Unavailable("; ".join(self.tally.off))
        return True

    def _count(self, campaign: Campaign) -> None:
        tally = self.tally
        tally.seconds, tally.excused = dict(campaign.lab.seconds), Counter(campaign.excused)
        tally.restarts, tally.unconfirmed = self.pool.restarts, self.pool.unconfirmed + campaign.unconfirmed
        tally.off, tally.waiting = tuple(self.pool.off.values()), len(self.later.waiting)

    def _draw(self, campaign: Campaign, index: int) -> None:
        options = self.options
        chosen = turn_of(options.targets, index)
        if options.passes:
            chosen += [left_out(options.seed, index, target) for target in chosen if target.switches]
        try:
            drawn = seeded_case(options.seed, index, options.max_nodes, self.operators, self.style)
            drawn = with_bait(options.seed, index, drawn, self.operators, self.style.favoured)
            self._examine(campaign, index, self.question.prepare(drawn), chosen)
        except OutOfTime:
            raise
        except Exception as error:  # a fault of ours: it has to be found again
            error.add_note(f"case {index} of seed {options.seed}")
            raise

    def _carry_out(self, step: Step) -> None:
        question, started = QUESTIONS[step.lane.question], time.monotonic()
        counts, own = self.tally.planned.setdefault(question.name, Counter()), Counter[str]()
        try:
            for verdict in self.carrier.carry_out(self.campaign(question), step):
                counts[verdict.status] += 1
                own[verdict.status] += 1
                self.tally.elements += verdict.elements
                self.tally.undetermined += verdict.undetermined
        except OutOfTime:
            raise
        except Exception as error:
            error.add_note(
                f"{question.name} on {step.lane.target.name}: {', '.join(f'{o} {i}' for o, i in step.takes)}"
            )
            raise
        self.record.case(question.name, own, time.monotonic() - started, subject=step.lane.target.name)
        self.tally.taken += len(step.takes)
        self.tally.steps += 1
        self.done.add(step)
        if time.monotonic() - self.saved > SAVE_EVERY:
            self.save()

    def save(self) -> None:
        """Add what was done and covered to the findings folder."""
        for campaign in self.campaigns.values():
            coverage.save(self.record, campaign.lab.coverage)
            campaign.lab.coverage.clear()
            self.record.known(campaign.excused - self.told)
            self.told = Counter(campaign.excused)
            break  # all labs count in one place
        self.tally.unrecorded = self.record.failure
        if self.done.bits:
            self.done.save(self.options.findings)
            self.done = Done()
        self.saved = time.monotonic()

    def _examine(self, campaign: Campaign, index: int, case: Case, targets: Sequence[Target]) -> None:
        """One drawn case and its number, without what each target refuses: count what came of it, and see to every
        discrepancy."""
        question, tally, started = campaign.lab.question, self.tally, time.monotonic()
        verdicts: dict[str, tuple[Case, Verdict]] = {}
        groups: dict[tuple[str, ...], tuple[Case, list[Target]]] = {}
        covered = campaign.lab.coverage[question.name]
        for target in targets:
            found = runnable(question, target, case)
            if found is None:
                verdicts[target.name] = case, Verdict("unsupported")
                covered.add(case.graph, NOTHING, {target.label: Verdict("unsupported")})
                continue
            rest, refused = found
            tally.cut[target.label] += len(refused)
            covered.refuse(case.graph, refused, target.label)
            groups.setdefault(tuple(node.name for node in refused), (rest, []))[1].append(target)
        for rest, members in groups.values():
            examined = campaign.lab.examine(rest, members)
            verdicts |= {name: (rest, verdict) for name, verdict in examined.verdicts.items()}
        tally.cases += 1
        counts = Counter(verdict.status for _, verdict in verdicts.values())
        self.record.case(question.name, counts, time.monotonic() - started, number=index)
        for target in targets:
            rest, verdict = verdicts[target.name]
            tally.statuses[target.label][verdict.status] += 1
            tally.elements += verdict.elements
            tally.undetermined += verdict.undetermined
            if verdict.discrepancy:
                self.pursue(campaign, target, rest, verdict.discrepancy)

    def pursue(self, campaign: Campaign, target: Target, case: Case, discrepancy: Discrepancy) -> None:
        """Nothing more where it is known or was met before; else it is investigated, or kept and put off."""
        alone = len(case.graph.nodes) == 1  # what was stored of one node has been held against what is known
        if alone and not target.off and (finding := campaign.met(target, case, discrepancy)):
            self._found(finding)
            return
        rest = campaign.unexplained(target, case, discrepancy)
        if rest is None:
            return
        target = campaign.fewest_left_out(target, *rest) if target.off else target
        finding = campaign.met(target, *rest) or self._met(target, *rest)
        if finding is None and self.later.affordable:
            with self.later.clock():
                finding = campaign.investigate(target, *rest)
            self.voted = True
        elif finding is None:
            finding = campaign.keep(target, *rest)
            self.later.waiting.append(Waiting(campaign, target, *rest, finding))
        if finding:
            self._found(finding)

    def _met(self, target: Target, case: Case, discrepancy: Discrepancy) -> Finding | None:
        """A finding of this hunt by some of the operators, which return nothing on the target, and say the same."""
        if discrepancy.symptom not in SILENT or not normalized(discrepancy):
            return None
        for finding in self.tally.findings.values():
            same = (finding.symptom, normalized(Discrepancy(finding.symptom, finding.message)), target.name)
            if (
                same == (discrepancy.symptom, normalized(discrepancy), finding.target)
                and finding.oracle == self.question.name
                and set(finding.operators) <= set(case.graph.operators)
            ):
                return self.store.count_again(finding.fingerprint, target.name)
        return None

    def _found(self, finding: Finding, times: int = 1) -> None:
        self.tally.findings[finding.fingerprint] = finding
        self.tally.counts[finding.fingerprint] += times

    def _see_to_one(self) -> bool:
        """Investigate what waits. False where there is nothing to do any more."""
        one = next(self.later.due(), None)
        if one is None:
            return False
        with self.later.clock():
            finding = one.campaign.investigate(one.target, one.case, one.discrepancy, one.kept)
        times = self.tally.counts[one.kept.fingerprint]
        if finding is None or finding.fingerprint != one.kept.fingerprint:
            self.tally.findings.pop(one.kept.fingerprint, None)
            del self.tally.counts[one.kept.fingerprint]
        if finding:
            self._found(finding, 0 if finding.fingerprint == one.kept.fingerprint else times)
        return True


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
        "cut": {name: count for name, count in sorted(tally.cut.items()) if count},
        "plan": {
            "places": tally.taken,
            "questions": {name: {s: counts[s] for s in STATUSES} for name, counts in sorted(tally.planned.items())},
        },
        "waiting": tally.waiting,
        "known_issues": dict(sorted(tally.excused.items())),
        "workers": {"started": tally.restarts, "off": list(tally.off)}
        | {"died": list(tally.died), "repeated": list(tally.repeated), "faults": list(tally.faults)},
        "unconfirmed": dict(sorted(tally.unconfirmed.items())),
        "cpu_seconds": {name: round(value, 3) for name, value in sorted(tally.seconds.items())},
        "inconsistencies": list(tally.inconsistencies),
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
