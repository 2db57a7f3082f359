"""Drawn graphs through quantisers, all of them or the share of one of several jobs: what came of them, by path."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from statistics import median

from generators.graphs import Case, seeded_case
from harness.execute.isolation.jobs import Share
from harness.execute.pool import Limits, OutOfTime, Pool
from harness.findings.database.recorder import Recorder
from harness.findings.known.issues import KnownIssue
from harness.findings.store import Finding, Store
from harness.quantisers import Quantiser
from harness.questions.quantisers import QUANTISATION, judged
from harness.search.blame.culprit import without
from harness.search.campaign import Campaign, operators_for
from harness.search.laboratory import Laboratory
from harness.search.reduce import within
from oracles.judge import verdict
from oracles.judge.compare import Expected
from oracles.judge.outcome import Unsupported, Value
from oracles.quantised import model as quantised_model
from oracles.quantised.model import Judgement

NOTHING = Expected((), (), ())
"""What is expected of a run that returned nothing."""


@dataclass
class Row:
    """Figures of one path. cases: drawn; agreed: of those that ran; wrong: cases with a discrepancy that nothing known
    explains; excused: with a known one; refused: cases by the documented reason; tensors: judged, exact, near, real
    and checked (`Judgement`); skipped: tensors by the operator that is not recomputed; losses: of cases whose
    inputs do not saturate"""

    cases: int = 0
    agreed: int = 0
    undetermined: int = 0
    wrong: int = 0
    excused: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    tensors: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    losses: list[Mapping[str, float | None]] = field(default_factory=list)

    def add(self, judgement: Judgement) -> None:
        """Count what an oracle made of one run."""
        for key in ("judged", "exact", "near", "real", "checked", "elements", "undetermined"):
            self.tensors[key] += getattr(judgement, key)
        self.skipped += judgement.skipped
        if judgement.loss:
            self.losses.append(judgement.loss)

    def merged(self, other: Row) -> Row:
        """Both together."""
        return Row(**{one.name: getattr(self, one.name) + getattr(other, one.name) for one in fields(Row)})

    def typical(self, key: str) -> float | None:
        """The median of a figure of accuracy over the cases that have it."""
        found = [loss[key] for loss in self.losses if loss.get(key) is not None]
        return median(found) if found else None  # type: ignore[type-var]

    def to_json(self) -> dict:
        return {
            **{key: getattr(self, key) for key in ("cases", "agreed", "undetermined", "wrong", "excused")},
            "tensors": dict(self.tensors),
            "refused": dict(self.refused.most_common()),
            "not_judged": dict(self.skipped.most_common()),
            "loss": {key: self.typical(key) for key in ("max_error", "mean_error", "sqnr_db", "top1")},
        }


@dataclass
class Tally:
    """All rows by path, and findings by fingerprint. excused: cases by the known issue; unconfirmed: what was not seen
    again; seconds: by what took them; elapsed: of one job"""

    rows: dict[str, Row] = field(default_factory=dict)
    findings: dict[str, Finding] = field(default_factory=dict)
    excused: Counter[str] = field(default_factory=Counter)
    unconfirmed: Counter[str] = field(default_factory=Counter)
    seconds: Counter[str] = field(default_factory=Counter)
    elapsed: float = 0.0

    @property
    def cases(self) -> int:
        return sum(row.cases for row in self.rows.values())

    def merged(self, other: Tally) -> Tally:
        """Both together."""
        rows = {name: self.rows.get(name, Row()).merged(other.rows.get(name, Row())) for name in self.rows | other.rows}
        return Tally(
            rows,
            self.findings | other.findings,
            self.excused + other.excused,
            self.unconfirmed + other.unconfirmed,
            self.seconds + other.seconds,
            self.elapsed + other.elapsed,
        )


def total(tallies: Mapping[int, Tally]) -> Tally:
    """Of all jobs, in the order of their numbers."""
    whole = Tally()
    for _, tally in sorted(tallies.items()):
        whole = whole.merged(tally)
    return whole


@dataclass(frozen=True)
class Options:
    """What is to be done. cases: of all jobs (None: no limit); budget: seconds after which no case is begun; timeout:
    that one case may take; reduction: that one finding may take to minimise; record: the run in the store."""

    paths: tuple[Quantiser, ...]
    seed: int
    max_nodes: int
    findings: Path
    issues: tuple[KnownIssue, ...] = ()
    cases: int | None = None
    budget: float = float("inf")
    timeout: float = 60.0
    reduction: float = 30.0
    record: Recorder = field(default_factory=Recorder)


def do_share(options: Options, share: Share[Tally]) -> Tally:
    """The cases that this job is given, until the budget is spent. What a job of this number that was lost had done is
    gone on with; what is told is all so far. Raises HarnessError and OSError."""
    started, earlier = time.monotonic(), share.before or Tally()
    deadline = started + options.budget - earlier.elapsed
    numbers = share.numbers("case", options.cases, earlier.cases)
    whole = earlier
    with Pool(Limits(seconds=options.timeout), until=deadline) as pool:
        campaign = Campaign(
            Laboratory(pool, QUANTISATION),
            options.paths,
            Store(options.findings, options.timeout, options.record),
            options.issues,
            reduction=lambda: within(deadline, options.reduction),
        )
        for tally in examine(campaign, options.paths, options.seed, numbers, options.max_nodes):
            tally.excused, tally.unconfirmed = campaign.excused, pool.unconfirmed + campaign.unconfirmed
            tally.seconds, tally.elapsed = Counter(campaign.lab.seconds), time.monotonic() - started
            whole = earlier.merged(tally)
            share.tell(whole)
            if time.monotonic() >= deadline:
                break
    return whole


def draw_case(seed: int, index: int, path: Quantiser, max_nodes: int) -> Case:
    """Case number `index`: of operators that the path can express, in the roles of a trained model. Where the path
    quantises few operators, a graph without them is drawn again, up to ten times."""
    operators = [name for name in QUANTISATION.drawn if operators_for(path, (name,))]
    plain = (
        seeded_case(seed + further, index, max_nodes, operators, QUANTISATION.style)
        for further in range(10 if path.takes else 1)
    )
    tries = (QUANTISATION.prepare(expressible(path, case)) for case in plain)
    first = next(tries)
    fits = (case for case in itertools.chain([first], tries) if QUANTISATION.why_not(path, case.graph) is None)
    return next(fits, first)


def expressible(path: Quantiser, case: Case) -> Case:
    """The case with leaves in place of the nodes that the path does not keep; as it is where it keeps none."""
    graph = case.graph
    kept = [node for node in graph.nodes if path.keeps is None or path.keeps(graph, node)]
    if len(kept) in (0, len(graph.nodes)):
        return case
    taken = {name for node in kept for name in node.operands}
    outputs = tuple(node.name for node in kept if node.name not in taken or node.name in graph.outputs)
    rest = without(replace(case, graph=replace(graph, outputs=outputs)), [n for n in graph.nodes if n not in kept])
    return expressible(path, rest) if rest else case  # what is kept may depend on what was


def schedule(paths: Sequence[Quantiser]) -> list[Quantiser]:
    """Who is asked, case by case, over and over: each path, or slow ones once in `sample_every` rounds."""
    rounds = max(path.sample_every for path in paths)
    return [path for number in range(rounds) for path in paths if number % path.sample_every == 0]


def examine(
    campaign: Campaign, paths: Sequence[Quantiser], seed: int, numbers: Iterable[int], max_nodes: int
) -> Iterator[Tally]:
    """The cases of these numbers, each on one of the paths; the figures before the first, and after each."""
    tally = Tally(rows={path.name: Row() for path in paths})
    yield tally
    listed = schedule(paths)
    for index in numbers:
        try:
            path, started = listed[index % len(listed)], time.monotonic()
            came = _one(campaign, path, draw_case(seed, index, path, max_nodes), tally)
            spent = time.monotonic() - started
            campaign.store.record.case(QUANTISATION.name, {came: 1}, spent, number=index, subject=path.name)
        except OutOfTime:
            return
        except Exception as error:  # a bug of ours: it has to be found again
            error.add_note(f"case {index} of seed {seed}")
            raise
        yield tally


def _one(campaign: Campaign, path: Quantiser, case: Case, tally: Tally) -> str:
    """One case on one path: count what came of it, and see to a discrepancy. Returns what came of it, in a word."""
    row = tally.rows[path.name]
    (outcome,) = campaign.lab.outcomes([(path, case)])
    row.cases += 1
    if isinstance(outcome, Unsupported):
        row.refused[outcome.why] += 1
        return "unsupported"
    if isinstance(outcome, Value):
        judgement = judged(path, outcome)
        row.add(judgement)
        found = quantised_model.verdict(judgement)
    else:
        found = verdict.judge(NOTHING, outcome)
    if found.discrepancy is None:
        row.agreed += found.status == "agree"
        row.undetermined += found.status == "undetermined"
        return found.status
    rest = campaign.unexplained(path, case, found.discrepancy)
    before = campaign.unconfirmed.total()
    finding = campaign.investigate(path, *rest) if rest else None
    if finding:
        row.wrong += 1
        tally.findings[finding.fingerprint] = finding
        return found.status
    known = campaign.unconfirmed.total() == before
    row.excused += known
    return "known" if known else "unconfirmed"
