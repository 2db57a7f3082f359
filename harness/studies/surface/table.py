"""Cells joined with what reaches them, what has run, and what is out of scope."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from harness.search.coverage import Coverage
from harness.studies.surface.cell import ASPECTS, Cell, Listed, Reached, cells_of, with_accepted
from harness.studies.surface.registry import Registry
from harness.studies.surface.scope import Rule, excluded, features_of, tags_of
from harness.studies.surface.trace import Calls


@dataclass(frozen=True)
class Row:
    """A cell. reached: by the sweeps of these operators of ours; ran: nodes of these that hunts and tests have judged
    on the registry's targets; out: why it is out of scope (empty: it is in)."""

    cell: Cell
    reached: tuple[str, ...]
    ran: int
    out: str = ""


@dataclass
class Share:
    """Of the cells of one aspect that are in scope."""

    cells: int = 0
    reached: int = 0
    out: int = 0

    @property
    def share(self) -> float:
        return self.reached / self.cells if self.cells else 0.0


@dataclass(frozen=True)
class Surface:
    """Of one registry. calls: what was traced; off: why it is not here, where it is not."""

    registry: Registry
    rows: list[Row] = field(default_factory=list)
    calls: Calls = field(default_factory=Calls)
    off: str = ""

    def shares(self) -> dict[str, Share]:
        """By aspect, and `all` of them."""
        found = {aspect: Share() for aspect in (*ASPECTS, "all")}
        for row in self.rows:
            for share in (found[row.cell.aspect], found["all"]):
                if row.out:
                    share.out += 1
                else:
                    share.cells += 1
                    share.reached += bool(row.reached)
        return found


def joined(
    registry: Registry,
    listed: Listed,
    calls: Calls,
    rules: Sequence[Rule],
    counted: Mapping[str, Coverage] | None = None,
) -> Surface:
    """Every cell of a registry, with all that is known of it."""
    tags = tags_of(listed)
    reached = Reached(calls.observations)
    ran = _ran(registry, counted or {})
    rows = []
    for cell in cells_of(registry.name, with_accepted(features_of(listed), calls.accepted)):
        names = reached.by(cell)
        rule = excluded(cell, tags, rules)
        rows.append(Row(cell, tuple(sorted(names)), sum(ran[name] for name in names), rule.why if rule else ""))
    return Surface(registry, rows, calls)


def missing(surfaces: Iterable[Surface]) -> list[Row]:
    """Cells in scope that nothing reaches, the most useful first: operators, those that most registries have before
    others; then features of operators that are reached, aspect by aspect. Of an operator that nothing reaches, only the
    operator itself is listed."""
    rows = [row for surface in surfaces for row in surface.rows if not row.out]
    unreached = [row for row in rows if not row.reached]
    gone = {(row.cell.registry, row.cell.operator) for row in unreached if row.cell.aspect == "operator"}
    homes = Counter(plain(row.cell.operator) for row in rows if row.cell.aspect == "operator")
    listed = [
        row for row in unreached if row.cell.aspect == "operator" or (row.cell.registry, row.cell.operator) not in gone
    ]
    return sorted(
        listed,
        key=lambda row: (ASPECTS.index(row.cell.aspect), -homes[plain(row.cell.operator)], plain(row.cell.operator)),
    )


def plain(operator: str) -> str:
    """A name as other frameworks may have it, too: `aten.roi_align` and `RoiAlign` are roialign."""
    name = re.sub(r"^(aten|prims|nn|image|vision|ai\.onnx\.\w+)[.:]", "", operator)
    return re.sub(r"[^a-z0-9]", "", name.split(".")[0].lower())


def _ran(registry: Registry, counted: Mapping[str, Coverage]) -> Counter[str]:
    """Nodes that were judged on the registry's targets, by our operators, over all questions."""
    globs, found = registry.targets.split(","), Counter[str]()
    for coverage in counted.values():
        for (operator, _, target, status), count in coverage.cells.items():
            if status != "unsupported" and any(fnmatchcase(target, glob) for glob in globs):
                found[operator] += count
    return found
