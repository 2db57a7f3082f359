"""What has come of training runs, by strategy, number of ranks and dtype: kept line by line in a file while it goes on,
shown as a table, written as JSON and CSV."""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass, field
from itertools import product

from rich import box
from rich.table import Table

from generators.training.settings import DTYPES
from harness.strategies import Strategy
from harness.training.judge import Judgement

OUTCOMES = ("agree", "known", "new", "undetermined", "left_out")
"""A run agrees; deviates as is known (`known/`) or as is not; has no element that is determined; or is
not compared, for a reason that somebody wrote down."""


@dataclass(frozen=True)
class Cell:
    """One strategy on so many ranks in one dtype."""

    strategy: str
    world_size: int
    dtype: str


@dataclass(frozen=True)
class Run:
    """One run in a cell, as its line in a file has it. number: of the drawn run; ratio: the greatest part of what was
    allowed that it was off by; difference, allowed: the greatest difference of what agrees, and what was allowed there;
    cpu: processor seconds of all ranks; finding: what was made of it, where it deviates; unconfirmed: failures on the
    way that did not come again."""

    strategy: str
    world_size: int
    dtype: str
    number: int
    outcome: str
    reason: str = ""
    elements: int = 0
    undetermined: int = 0
    ratio: float = 0.0
    difference: float = 0.0
    allowed: float = 0.0
    cpu: float = 0.0
    compared: bool = True
    finding: str = ""
    unconfirmed: tuple[str, ...] = ()

    @property
    def cell(self) -> Cell:
        """Where it belongs."""
        return Cell(self.strategy, self.world_size, self.dtype)


def run_of(cell: Cell, number: int, judgement: Judgement) -> Run:
    """The line of a judged run. What deviates says which part of what it returned does, and how."""
    if judgement.discrepancy:
        outcome, reason = "new", f"{judgement.part or 'the run'}: {judgement.discrepancy.message.splitlines()[0]}"
    elif judgement.excused:
        outcome, reason = "known", ", ".join(judgement.excused)
    elif judgement.status == "unsupported":
        outcome, reason = "left_out", judgement.reason
    else:
        outcome, reason = judgement.status, ""
    compared = not math.isnan(judgement.largest)
    return Run(
        **asdict(cell), number=number, outcome=outcome, reason=reason, elements=judgement.elements,
        undetermined=judgement.undetermined, ratio=judgement.largest if compared else 0.0,
        difference=judgement.difference, allowed=judgement.allowed, cpu=judgement.cpu, compared=compared,
    )  # fmt: skip


@dataclass
class Row:
    """What has come of all runs of a cell. reasons: of what is left out, deviates or is known."""

    outcomes: Counter[str] = field(default_factory=Counter)
    reasons: dict[str, Counter[str]] = field(default_factory=dict)
    elements: int = 0
    undetermined: int = 0
    ratio: float = 0.0
    difference: float = 0.0
    allowed: float = 0.0
    cpu: float = 0.0

    def add(self, run: Run) -> None:
        """Count one run."""
        self.outcomes[run.outcome] += 1
        if run.reason:
            self.reasons.setdefault(run.outcome, Counter())[run.reason] += 1
        self.elements += run.elements
        self.undetermined += run.undetermined
        self.cpu += run.cpu
        self.ratio = max(self.ratio, run.ratio)
        if run.difference > self.difference:
            self.difference, self.allowed = run.difference, run.allowed

    @property
    def ran(self) -> int:
        """Runs that were not left out."""
        return self.outcomes.total() - self.outcomes["left_out"]

    @property
    def share(self) -> float | None:
        """The part of all elements that is undetermined."""
        return self.undetermined / self.elements if self.elements else None

    @property
    def seconds(self) -> float | None:
        """Of processor time, a run."""
        return self.cpu / self.ran if self.ran else None


def cells_of(strategies: dict[Strategy, tuple[int, ...]], dtypes: Collection[str] = DTYPES) -> list[Cell]:
    """Every strategy on each of its numbers of ranks in each of these dtypes that it takes."""
    every = ((one, *where) for one, worlds in strategies.items() for where in product(worlds, one.dtypes))
    return [Cell(one.name, world, dtype) for one, world, dtype in every if dtype in dtypes]


def rows_of(runs: Iterable[Run], cells: Iterable[Cell] = ()) -> dict[Cell, Row]:
    """Runs by cell; cells without a run have an empty row."""
    rows: dict[Cell, Row] = {cell: Row() for cell in cells}
    for run in runs:
        rows.setdefault(run.cell, Row()).add(run)
    return dict(sorted(rows.items(), key=lambda item: (item[0].strategy, item[0].world_size, item[0].dtype)))


# ---- shown and written ------------------------------------------------------------------------------------


def table_of(rows: dict[Cell, Row]) -> Table:
    """One line a cell: how its runs ended, the share of undetermined elements, the greatest difference with what was
    allowed there, the greatest part of what was allowed, processor seconds a run."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=0)
    table.add_column("strategy", no_wrap=True)
    headings = ("agree", "known", "new", "undet.", "out", "undet. %", "largest", "allowed", "ratio", "CPU s")
    for heading in ("ranks", "dtype", *headings):
        table.add_column(heading, justify="right", no_wrap=True)
    for cell, row in rows.items():
        counts = [str(row.outcomes[outcome] or "·") for outcome in OUTCOMES]
        share = "-" if row.share is None else f"{100 * row.share:.2g}"
        cpu = "-" if row.seconds is None else f"{row.seconds:.2f}"
        figures = [share, *(f"{figure:.1e}" if figure else "-" for figure in (row.difference, row.allowed))]
        figures += [f"{row.ratio:.2g}", cpu]
        style = "red" if row.outcomes["new"] else None
        table.add_row(cell.strategy, str(cell.world_size), cell.dtype, *counts, *figures, style=style)
    return table


def as_json(rows: dict[Cell, Row]) -> list[dict]:
    """The same as data, with all reasons."""
    return [
        {
            **asdict(cell),
            **{outcome: row.outcomes[outcome] for outcome in OUTCOMES},
            "elements": row.elements,
            "undetermined_share": row.share,
            "largest_difference": row.difference,
            "allowed_there": row.allowed,
            "largest_of_allowed": row.ratio,
            "cpu_seconds_a_run": row.seconds,
            "reasons": {outcome: dict(found.most_common()) for outcome, found in row.reasons.items()},
        }
        for cell, row in rows.items()
    ]


def csv_of(rows: dict[Cell, Row]) -> str:
    """The same as comma-separated values; reasons are counted in one column."""
    records = as_json(rows)
    if not records:
        return ""
    out = io.StringIO()
    writer = csv.DictWriter(out, list(records[0]), lineterminator="\n")
    writer.writeheader()
    for record in records:
        told = [f"{o}: {why} ({n})" for o, found in record["reasons"].items() for why, n in found.items()]
        writer.writerow({**record, "reasons": "; ".join(told)})
    return out.getvalue()
