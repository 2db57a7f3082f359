"""The cells of the table operator x dtype x target: small cases of each, what runs, and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from generators.graph import EVERY, MEASURED, TensorType
from generators.graphs import Case, Style, seeded_case
from generators.ops import OPS
from generators.ops.spec import OpSpec
from harness.backends import TARGETS, Target
from harness.backends.target import refusals
from harness.search.laboratory import Laboratory
from oracles.judge.discrepancy import Discrepancy
from oracles.judge.verdict import Verdict, judge
from oracles.questions import forward

_SHAPES = (
    *((), (2,), (1, 2), (2, 3), (2, 2), (3, 4), (2, 4, 3), (1, 2, 3), (2, 4, 3, 3), (2, 1, 3, 4)),
    *((2, 8), (2, 3, 4, 4, 2), (2, 3, 3, 3, 2), (257,)),
)

Known = Callable[[Target, Case, Discrepancy], bool]
"""Does a known issue explain a discrepancy?"""


def dtypes_of(spec: OpSpec) -> list[str]:
    """dtypes that the operator's first operand may have."""
    slot = spec.slot(0)
    return [dtype for dtype in EVERY if any(slot.accepts(TensorType(dtype, shape), ()) for shape in _SHAPES)]


@cache
def samples(operator: str, dtype: str, each: int = 3, drawn: int = 24) -> tuple[Case, ...]:
    """One-node cases of an operator: the first `each`, of `drawn` that favour the dtype, in which it occurs and no
    other rare one does. None where the operator has no place for it."""
    kept: list[Case] = []
    for index in range(drawn):
        case = seeded_case(0, index, 1, (operator,), Style((dtype,)))
        present = {type_.dtype for type_ in case.graph.types.values()}
        if dtype in present and present.isdisjoint(set(MEASURED) - {dtype}):
            kept.append(case)
        if len(kept) == each or (index >= 8 and not kept):
            break
    return tuple(kept)


@cache
def involved(operator: str) -> tuple[str, ...]:
    """dtypes that the operator has a place for, as an operand or as the result."""
    return tuple(dtype for dtype in EVERY if samples(operator, dtype))


def claim(target: Target, operator: str, dtype: str) -> tuple[str, str | None]:
    """What is written down of a cell, without running it: its state, and why it does not run."""
    graphs = [case.graph for case in samples(operator, dtype)]
    reasons = [target.unsupported(graph) for graph in graphs]
    if None in reasons:
        return "runs", None
    said = [target.dialect.unsupported(graph) is None for graph in graphs]
    return "refused" if any(said) else "cannot express", reasons[said.index(True) if any(said) else 0]


@dataclass(frozen=True)
class SupportCell:
    """What came of the samples of one operator and dtype on one target. refused: the message of the first refusal
    (None: none was refused); wrong: of the first other discrepancy; expressed: by the dialect, so many samples."""

    operator: str
    dtype: str
    expressed: int
    refused: str | None
    wrong: str | None

    @property
    def state(self) -> str:
        if not self.expressed:
            return "cannot express"
        return "refused" if self.refused else "wrong" if self.wrong else "runs"


def representatives(targets: Iterable[Target]) -> dict[str, Target]:
    """The target that each record of refusals is measured on: the first one that names it."""
    found: dict[str, Target] = {}
    for target in (*TARGETS.values(), *targets):
        if target.refusals_file:
            found.setdefault(target.refusals_file, target)
    return {record: target for record, target in found.items() if target in targets}


def measure(
    lab: Laboratory,
    target: Target,
    known: Known,
    operators: Sequence[str] = tuple(OPS),
    dtypes: Sequence[str] = MEASURED,
) -> list[SupportCell]:
    """Run the samples of these cells, those that the record calls refused too."""
    free = replace(target, refusals_file="")
    cells = []
    for operator in operators:
        listed = [(dtype, case) for dtype in dtypes for case in samples(operator, dtype)]
        outcomes = lab.outcomes([(free, case) for _, case in listed])
        judged: dict[str, list[Verdict]] = {}
        for (dtype, case), outcome in zip(listed, outcomes, strict=True):
            found = judge(forward.expect(case), outcome)
            if found.discrepancy and known(free, case, found.discrepancy):
                found = replace(found, discrepancy=None)
            judged.setdefault(dtype, []).append(found)
        cells += [_cell(operator, dtype, verdicts) for dtype, verdicts in judged.items()]
    return cells


def _cell(operator: str, dtype: str, verdicts: Sequence[Verdict]) -> SupportCell:
    found = [v.discrepancy for v in verdicts if v.discrepancy]
    refused = [refusals.short(d) for d in found if d.symptom == "rejected"]
    wrong = [f"{d.symptom}: {d.message}" for d in found if d.symptom != "rejected"]
    return SupportCell(
        operator,
        dtype,
        sum(v.status != "unsupported" for v in verdicts),
        refused[0] if refused else None,
        wrong[0] if wrong else None,
    )


def refusals_of(cells: Iterable[SupportCell]) -> Mapping[tuple[str, str], str]:
    """What a record holds of these cells."""
    return {(cell.operator, cell.dtype): cell.refused for cell in cells if cell.refused is not None}
