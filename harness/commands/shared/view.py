"""What a person sees on the terminal."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from rich import box
from rich.console import Group
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from generators.ops import OPS
from harness.backends import Target
from harness.search.campaign import operators_for
from harness.search.coverage import Coverage
from harness.search.dtype_support import dtypes_of
from harness.search.hunt import Options, Tally
from harness.search.laboratory import Examination
from oracles.judge.verdict import STATUSES

_STYLES = {"agree": "green", "within_bound_only": "green", "unsupported": "dim", "undetermined": "dim"}
_OUTCOMES = {
    "agree": "right",
    "within_bound_only": "right",
    "undetermined": "right",
    "unsupported": "unsupported",
}
_HEADINGS = {
    "within_bound_only": "bound",
    "undetermined": "undet.",
    "unsupported": "unsup.",
    "rejected": "reject.",
    "timeout": "hang",
    "mismatch": "mismatch",
}


def hunt_table(options: Options, tally: Tally, seconds: float) -> Group:
    """Outcomes by target, then findings and the rest of the counts."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("target", no_wrap=True)
    for status in STATUSES:
        heading = _HEADINGS.get(status, status)
        table.add_column(heading, justify="right", style=_STYLES.get(status, "red"), no_wrap=True)
    for label in options.labels:
        counts = tally.statuses.get(label, {})
        table.add_row(label, *(str(counts.get(status, 0) or "·") for status in STATUSES))
    planned = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    planned.add_column("plan", no_wrap=True)
    for status in STATUSES:
        heading = _HEADINGS.get(status, status)
        planned.add_column(heading, justify="right", style=_STYLES.get(status, "red"), no_wrap=True)
    for question, counts in sorted(tally.planned.items()):
        planned.add_row(question, *(str(counts[status] or "·") for status in STATUSES))
    rate = tally.cases / seconds if seconds else 0.0
    total = max(1, tally.elements)
    weak = tally.inconsistencies
    times = sum(tally.counts[name] for name in weak)
    lines = [
        f"{tally.cases} cases in {seconds:.0f} s ({rate:.1f}/s), "
        f"{tally.elements - tally.undetermined} elements compared, "
        f"{100 * tally.undetermined / total:.2g} % undetermined",
        f"{len(tally.findings) - len(weak)} findings ({sum(tally.counts.values()) - times} times), "
        f"{len(weak)} inconsistencies ({times} times), "
        f"{sum(tally.excused.values())} excused by {len(tally.excused)} known issues, "
        f"{tally.restarts} workers started, {tally.unconfirmed.total()} unconfirmed",
        *(f"  unconfirmed: {count}: {why}" for why, count in tally.unconfirmed.most_common()),
        *tally.off,
    ]
    if tally.cut.total():
        lines.insert(1, f"{tally.cut.total()} nodes that targets refuse were cut out of drawn cases")
    if tally.waiting:
        lines.append(f"{tally.waiting} findings are stored as they were met and wait to be minimised")
    if options.plan:
        done = sum(bits.bit_count() for bits in options.plan.done.values())
        lines.append(
            f"plan: {tally.taken} places of sweeps now, {done} before; {len(options.plan.lanes)} pairs of a question "
            f"and a target, {len(options.plan.operators)} operators"
        )
    found = [
        f"  {name}: {finding.nodes} node{'s' * (finding.nodes != 1)}, {tally.counts[name]} times"
        for name, finding in sorted(tally.findings.items())
    ]
    tables = (table, planned) if tally.planned else (table,)
    return Group(*tables, *(Text(line) for line in [*lines, *found]))


def coverage_table(covered: Coverage, operators: Sequence[str], targets: Sequence[Target]) -> Group:
    """One line an operator: what of its claims has been run, how it ended, and how much of it was undetermined. A cell
    is an operator with a dtype of its first operand on a target whose dialect can express the operator."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("operator", no_wrap=True)
    for heading in ("cells", "of", "right", "unsup.", "wrong", "undet. %", "before", "after"):
        table.add_column(heading, justify="right", no_wrap=True)
    reached: dict[str, set[tuple[str, ...]]] = defaultdict(set)
    outcomes: dict[str, Counter[str]] = defaultdict(Counter)
    for (operator, dtype, target, status), count in covered.cells.items():
        reached[operator].add((dtype, target))
        outcomes[operator][_OUTCOMES.get(status, "wrong")] += count
    before, after = Counter(first for first, _ in covered.pairs), Counter(second for _, second in covered.pairs)
    claims = 0
    for operator in operators:
        claimed = len(dtypes_of(OPS[operator])) * sum(bool(operators_for(target, (operator,))) for target in targets)
        claims += claimed
        counts, elements = outcomes[operator], covered.elements[operator]
        table.add_row(
            operator,
            *(str(n or "·") for n in (len(reached[operator]), claimed)),
            *(str(counts[outcome] or "·") for outcome in ("right", "unsupported", "wrong")),
            f"{100 * covered.undetermined[operator] / elements:.2g}" if elements else "·",
            *(str(n[operator] or "·") for n in (before, after)),
        )
    cells, pairs = sum(len(reached[name]) for name in operators), sum(name in operators for name, _ in covered.pairs)
    total = max(1, covered.elements.total())
    share = 100 * covered.undetermined.total() / total
    lines = [
        f"{cells} of {claims} cells of {len(operators)} operators on {len(targets)} targets",
        f"{pairs} of {len(operators) * len(OPS)} ordered pairs of operators (not all fit) reached",
        f"{total} elements of outputs, {share:.2g} % undetermined",
    ]
    return Group(table, *(Text(line) for line in lines))


def replay_lines(examination: Examination) -> Iterator[str]:
    """The graph, then one line a target."""
    yield escape(str(examination.case.graph))
    yield ""
    width = max(16, *map(len, examination.verdicts)) + 2
    for name, verdict in examination.verdicts.items():
        style = _STYLES.get(verdict.status, "red")
        detail = f"  {escape(verdict.discrepancy.message)}" if verdict.discrepancy else ""
        yield f"{name:{width}}[{style}]{verdict.status}[/]{detail}"
