"""The command `cells`: what every target runs of operator x dtype, and the records of what is refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from rich.table import Table

from generators.graph import EVERY
from generators.ops import OPS
from harness.backends import Target
from harness.backends.target import refusals
from harness.execute.pool import Pool
from harness.findings.known.issues import KnownIssue
from harness.findings.store import Store
from harness.search.campaign import Campaign
from harness.search.dtype_support import SupportCell, claim, involved, measure, refusals_of, representatives
from harness.search.laboratory import Laboratory


def rows(targets: Sequence[Target]) -> list[dict]:
    """operator, dtype and what is claimed of them, for the target that each record is measured on."""
    chosen = representatives(targets)
    listed = []
    for operator in OPS:
        for dtype in involved(operator):
            claims = {target.name: claim(target, operator, dtype) for target in chosen.values()}
            cells = {name: {"state": state, "why": why} for name, (state, why) in claims.items()}
            listed.append({"operator": operator, "dtype": dtype, "targets": cells})
    return listed


def summary(listed: Sequence[dict]) -> Table:
    """For each target and dtype: how many operators run / are refused / cannot be expressed."""
    names = list(dict.fromkeys(name for row in listed for name in row["targets"]))
    counts = Counter((name, row["dtype"], cell["state"]) for row in listed for name, cell in row["targets"].items())
    table = Table("dtype", *names, title="runs / refused / cannot express")
    for dtype in EVERY:
        cells = ("/".join(str(counts[n, dtype, s]) for s in ("runs", "refused", "cannot express")) for n in names)
        table.add_row(dtype, *cells)
    return table


def grouped(cells: Sequence[SupportCell], refused: refusals.Refusals) -> refusals.Refusals:
    """One entry, with the commonest message, for a dtype that no operator takes."""
    found = dict(refused)
    for dtype in EVERY:
        keys = [(cell.operator, dtype) for cell in cells if cell.dtype == dtype and cell.expressed]
        if keys and all(key in refused for key in keys):
            messages = Counter(found.pop(key) for key in keys)
            found["*", dtype] = messages.most_common(1)[0][0]
    return found


def update(
    target: Target, issues: Sequence[KnownIssue], operators: Sequence[str], dtypes: Sequence[str]
) -> list[SupportCell]:
    """Measure these operators and rare dtypes on a target and write its record; what the record says of others stays.
    Returns the cells."""
    with Pool() as pool:
        lab = Laboratory(pool)
        campaign = Campaign(lab, (target,), Store(Path("findings"), pool.limits.seconds), issues)
        cells = measure(lab, target, lambda *found: campaign.unexplained(*found) is None, operators, dtypes)
    whole = set(operators) == set(OPS)  # only then does "no operator" mean anything
    measured = {(operator, dtype) for operator in (*operators, *("*" * whole)) for dtype in dtypes}
    kept = {key: why for key, why in refusals.load(target.refusals_file).items() if key not in measured}
    refused = refusals_of(cells)
    if whole:
        refused = grouped(cells, refused)
    refused = {key: why for key, why in refused.items() if key[0] == "*" or ("*", key[1]) not in kept}
    refusals.save(target.refusals_file, {**kept, **refused})
    return cells
