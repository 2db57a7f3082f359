"""Drawn graphs by way of each edge: what came of each, whose doing it was, counted by edge."""

from __future__ import annotations

import csv
import io
import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from rich import box
from rich.table import Table

from generators.graphs import Case, seeded_case
from harness.backends import Target, probe
from harness.conversions.edges import EDGES, Edge
from harness.conversions.model_file import why_not
from harness.conversions.route import Route, draw_route, route_of, shortest, target_of
from harness.dialects.keras import KERAS
from harness.execute.pool import Limits, OutOfTime, Pool
from harness.findings.database.recorder import Recorder
from harness.findings.known.issues import KnownIssue
from harness.findings.store import Store
from harness.questions.conversion import CONVERSION, step_of
from harness.search.campaign import Campaign, operators_for
from harness.search.laboratory import Examination, Laboratory
from harness.search.reduce import within
from oracles.judge.discrepancy import SILENT, Discrepancy
from oracles.judge.outcome import Rejected, Timeout, Unsupported

OUTCOMES = ("agree", "undetermined", "refused", "source", "known", "unconfirmed", "runner", "error", "wrong")
"""The result agrees; or nothing of it is determined. The converter, or who runs its file, refuses what it documents not
to do. The graph is wrong, or refused, before the last edge. A known issue explains it. It may be the machine's doing.
Another runner of the same file is right. The converter fails with an exception, a crash or a hang, or writes what no
runner opens. The result is wrong.
"""


@dataclass(frozen=True)
class ConversionResult:
    """One graph by one route, as its line in a file has it. edge: that is looked at, the last one; number: of the drawn
    case; why: what was said, in one line; cpu: processor seconds; finding: its fingerprint, where it was stored;
    culprit: the route up to the edge at fault, where that is an earlier one; known: ids of issues that explain some of
    it; unconfirmed: what was not seen again."""

    edge: str
    route: str
    number: int
    outcome: str
    why: str = ""
    operators: str = ""
    cpu: float = 0.0
    finding: str = ""
    culprit: str = ""
    known: str = ""
    unconfirmed: str = ""


@dataclass
class Row:
    """What has come of all graphs that took an edge. reasons: of all that did not agree, by outcome."""

    outcomes: Counter[str] = field(default_factory=Counter)
    reasons: dict[str, Counter[str]] = field(default_factory=dict)
    cpu: float = 0.0

    def add(self, result: ConversionResult) -> None:
        """Count one."""
        self.outcomes[result.outcome] += 1
        self.cpu += result.cpu
        if result.why:
            self.reasons.setdefault(result.outcome, Counter())[result.why] += 1


Rows = dict[str, Row]


def case_of(route: Route, seed: int, number: int, max_nodes: int) -> Case:
    """The case of this number for routes that begin in the same dialect."""
    operators = operators_for(target_of(route.name), CONVERSION.drawn)
    case = seeded_case(seed, number, max_nodes, operators, CONVERSION.style)
    if route.writer != KERAS.name:
        return case
    # a functional model has no constants to speak of: what depends on them alone is no part of it
    leaves = tuple(replace(leaf, role="input") for leaf in case.graph.leaves)
    return Case(replace(case.graph, leaves=leaves), case.arrays)


def shortest_routes(edges: Sequence[Edge], numbers: Sequence[int]) -> Iterator[tuple[Edge, Route, int]]:
    """These cases through each edge, by the shortest route; edge by edge, so that each tool is imported once."""
    for edge in edges:
        route = shortest(edge)
        for number in numbers if route else ():
            assert route
            yield edge, route, number


def drawn_routes(edges: Sequence[Edge], numbers: Sequence[int], seed: int) -> list[tuple[Edge, Route, int]]:
    """These cases, each by a drawn route of one to three of the edges; those with one last edge together."""
    found = [(number, _runnable(draw_route(random.Random(f"{seed}/{number}/route"), edges))) for number in numbers]
    order = {edge.name: i for i, edge in enumerate(edges)}
    return sorted(
        ((route.edges[-1], route, number) for number, route in found), key=lambda one: (order[one[0].name], one[2])
    )


def _runnable(route: Route) -> Route:
    """As much of a route as one environment has the tools for."""
    while len(route.edges) > 1 and not probe.probe(target_of(route.name)).available:
        route = route.source
    return route


Task = tuple[str, int]
"""A route's name and the number of a case."""


@dataclass(frozen=True)
class Options:
    """How graphs are drawn and looked at. keep: are findings made of what is wrong? findings: where they go; until: no
    case is begun later (`time.monotonic`); timeout: seconds of one program; reduction: seconds that one finding may
    take to minimise; confirmations: runs of each in fresh processes; culprits: is an edge at fault that is not the last
    one judged for itself? record: the run in the store."""

    seed: int
    max_nodes: int
    keep: bool
    findings: Path
    issues: tuple[KnownIssue, ...]
    until: float
    timeout: float
    reduction: float
    confirmations: int
    culprits: bool
    record: Recorder


def examine_all(options: Options, tasks: Iterable[Task], keep: Callable[[Sequence[ConversionResult]], None]) -> None:
    """Cases by routes, one after the other, until it is too late. keep: is told what came of each at once. Raises
    HarnessError and OSError."""
    with Pool(Limits(seconds=options.timeout), until=options.until) as pool:
        campaign = Campaign(
            Laboratory(pool, CONVERSION),
            (),
            Store(options.findings, options.timeout, options.record),
            options.issues,
            reduction=lambda: within(options.until, options.reduction),
            confirmations=options.confirmations,
        )
        last = None
        try:
            for name, number in tasks:
                route = route_of(target_of(name))
                if time.monotonic() >= options.until:
                    break
                if last and route.edges[-1] is not last:
                    pool.stop_workers()  # a worker of each edge would be too much memory
                last = route.edges[-1]
                keep(_lines(campaign, pool, options, route, number))
        except OutOfTime:  # what is under way is drawn again when this is gone on with
            pass
        finally:
            options.record.known(campaign.excused)
            options.record.timings(campaign.lab.seconds)


def not_done(task: Task, lines: Sequence[ConversionResult]) -> Task | None:
    """The task, if none of these lines is of it."""
    return None if task in {(one.route, one.number) for one in lines} else task


def _lines(campaign: Campaign, pool: Pool, options: Options, route: Route, number: int) -> list[ConversionResult]:
    """What came of a case by a route, and by the part of it that is at fault, if that is judged for itself."""
    try:
        case = case_of(route, options.seed, number, options.max_nodes)
        found = [_counted(campaign, pool, route, number, case, options.keep)]
        culprit = route_of(target_of(found[0].culprit)) if options.culprits and found[0].culprit else None
        if culprit and culprit.edges:
            found.append(_counted(campaign, pool, culprit, number, case, options.keep))
        return found
    except OutOfTime:
        raise
    except Exception as error:  # a bug of ours: it has to be found again
        error.add_note(f"case {number} of seed {options.seed} by {route.name}")
        raise


def _counted(campaign: Campaign, pool: Pool, route: Route, number: int, case: Case, keep: bool) -> ConversionResult:
    """As `examine`, with what of it is known, and what was not seen again."""
    excused, doubts = campaign.excused.copy(), pool.unconfirmed + campaign.unconfirmed
    one = examine(campaign, route, number, case, keep)
    known, new = campaign.excused - excused, pool.unconfirmed + campaign.unconfirmed - doubts
    return replace(one, known=" ".join(known.elements()), unconfirmed="; ".join(new.elements()))


def examine(campaign: Campaign, route: Route, number: int, case: Case, keep: bool) -> ConversionResult:
    """One case by a route: judged, and if it does not agree, whose doing it is. keep: is it made a finding of?"""
    target = target_of(route.name)
    examination = campaign.lab.examine(case, [target])
    verdict, outcome = examination.verdicts[target.name], examination.outcomes[target.name]
    result = ConversionResult(
        route.edges[-1].name,
        route.name,
        number,
        verdict.status,
        operators=" ".join(case.graph.operators),
        cpu=outcome.cpu,
    )
    if isinstance(outcome, Unsupported):
        return replace(result, outcome="refused", why=outcome.why)
    if verdict.discrepancy is None:
        return result
    guilty, why = route, ""
    while guilty.edges and (told := _disagreement(campaign, guilty.source, case)):
        guilty, why = guilty.source, told
    if guilty is not route:
        return replace(result, outcome="source", why=why, culprit=guilty.name)
    return _blamed(campaign, route, result, examination, verdict.discrepancy, keep)


def _disagreement(campaign: Campaign, route: Route, case: Case) -> str:
    """Why a case is nothing to go on with: it does not agree where this route ends. Empty where it does."""
    target = target_of(route.name)
    examination = campaign.lab.judge(case, [target])
    verdict = examination.verdicts[target.name]
    if verdict.status in ("agree", "undetermined"):
        return ""
    return f"{target.name}: {_message(examination, target, verdict.discrepancy)}"


def _blamed(
    campaign: Campaign, route: Route, result: ConversionResult, examination: Examination, found: Discrepancy, keep: bool
) -> ConversionResult:
    """Whose doing a discrepancy of the last edge, or of what runs its file, is."""
    target, case = target_of(route.name), examination.case
    why = _message(examination, target, found)
    rest = campaign.unexplained(target, case, found)
    if rest is None:
        return replace(result, outcome="known", why=why)
    outcome = examination.outcomes[target.name]
    converting = isinstance(outcome, Rejected) and step_of(outcome.message) == result.edge
    right = None if converting or isinstance(outcome, Timeout) else _right_runner(campaign, route, case)
    kind = "runner" if right else "wrong" if found.symptom not in SILENT else "error"
    voters = [target_of(one.name) for one in (route.source, *_other_runners(route))]
    before = campaign.unconfirmed.copy()
    finding = replace(campaign, targets=(target, *voters)).investigate(target, *rest) if keep else None
    if doubts := campaign.unconfirmed - before:
        return replace(result, outcome="unconfirmed", why="; ".join(doubts))
    if keep and finding is None:
        return replace(result, outcome="known", why=why)
    why += f" ({right} is right)" if right else ""
    return replace(result, outcome=kind, why=why, finding=finding.fingerprint if finding else "")


def _right_runner(campaign: Campaign, route: Route, case: Case) -> str | None:
    """Another runner that gets the same file right, or None."""
    right = (one for one in _other_runners(route) if campaign.verdict(target_of(one.name), case).status == "agree")
    return next((one.runner.name for one in right), None)


def _other_runners(route: Route) -> list[Route]:
    """The same file with two other runners: the plain one, and the one that optimises least."""
    others = [one for one in route.others if probe.probe(target_of(one.name)).available]
    others.sort(key=lambda one: not one.runner.reference)
    return others[:1] + others[1:][-1:]


def _message(examination: Examination, target: Target, found: Discrepancy | None) -> str:
    outcome = examination.outcomes[target.name]
    if isinstance(outcome, Unsupported):
        return outcome.why
    if found and found.symptom not in SILENT:
        return f"{found.symptom}: {found.message.splitlines()[0]}"
    step = step_of(outcome.message) if isinstance(outcome, Rejected) else ""
    return f"{step}: {why_not(outcome)}" if step else why_not(outcome)


def rows_of(results: Iterable[ConversionResult], edges: Iterable[Edge] = EDGES.values()) -> Rows:
    """What came of them by edge, in the order of the edges; those that none took are left out."""
    rows = {edge.name: Row() for edge in edges}
    for result in results:
        rows.setdefault(result.edge, Row()).add(result)
    return {name: row for name, row in rows.items() if row.outcomes}


def table_of(rows: Rows) -> Table:
    """One line an edge."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1))
    table.add_column("edge", no_wrap=True)
    table.add_column("from > to", no_wrap=True)
    for heading in ("graphs", *OUTCOMES, "CPU s"):
        table.add_column(heading, justify="right", no_wrap=True)
    for name, row in rows.items():
        total = row.outcomes.total()
        counts = [str(row.outcomes[outcome] or "·") for outcome in OUTCOMES]
        ends = f"{EDGES[name].source} > {EDGES[name].target}"
        style = "red" if row.outcomes["wrong"] else None
        table.add_row(name, ends, str(total), *counts, f"{row.cpu / total:.2f}", style=style)
    return table


def as_json(rows: Rows) -> list[dict]:
    """The same as data, with all reasons."""
    return [
        {
            "edge": name,
            "source": EDGES[name].source,
            "target": EDGES[name].target,
            "graphs": row.outcomes.total(),
            **{outcome: row.outcomes[outcome] for outcome in OUTCOMES},
            "cpu_seconds": row.cpu,
            "reasons": {outcome: dict(found.most_common()) for outcome, found in row.reasons.items()},
        }
        for name, row in rows.items()
    ]


def csv_of(results: Iterable[ConversionResult]) -> str:
    """One line a graph and edge."""
    out = io.StringIO()
    writer = csv.DictWriter(out, list(ConversionResult.__dataclass_fields__), lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(result) for result in results)
    return out.getvalue()
