"""Words that the page on a given model and the terminal share."""

from __future__ import annotations

import math

from harness.models.layer_errors import LayerErrors
from harness.models.results import REFERENCE, Results
from harness.models.rows import Row
from oracles.models.agreement import Failure

SMALL = 1e-6
"""An error, by the greatest value, that shows in no float32 output."""


def short(value: float | None, digits: int = 3) -> str:
    """A number for a table."""
    if value is None:
        return "-"
    if not math.isfinite(value):
        return "∞" if value > 0 else str(value)
    if value == 0 or 1e-2 <= abs(value) < 1e5:
        return f"{value:.{digits}g}"
    return f"{value:.1e}"


def status_of(row: Row) -> str:
    """The word for it."""
    if row.known:
        return f"known: {row.known}"
    return {"agree": "agrees", "mismatch": "deviates"}.get(row.status, row.status)


def cells(results: Results, row: Row) -> list[str]:
    """A line of the table that the terminal shows."""
    base = REFERENCE if (REFERENCE, row.variant.name) in results.pairs else results.rows[0].variant.name
    pair = results.pairs[base, row.variant.name]
    top1, rbo = (None, None) if isinstance(pair, Failure) else (pair.top1, pair.rbo)
    spread = {None: "-", 0.0: "same bits"}.get(row.spread, f"differ by {short(row.spread)}")
    return [
        row.variant.name, status_of(row), short(row.ratio), short(top1), short(rbo),
        short(None if row.seconds is None else row.seconds * 1000), slowdown(row), spread,
        *(accuracy(row) if results.truth is not None else ()),
    ]  # fmt: skip


def accuracy(row: Row) -> tuple[str, str]:
    """Shares of samples whose true class comes first, and is among the first five."""
    top1, top5 = row.accuracy or (None, None)
    return short(top1), short(top5)


def slowdown(row: Row) -> str:
    """The ratio of its time to the first variant's, with the interval."""
    r = row.slowdown
    return "-" if r is None else f"{r.ratio:.2f} ({r.low:.2f} to {r.high:.2f})"


def blamed(layers: LayerErrors, results: Results) -> str:
    """What the layers of a variant tell, in one sentence."""
    if layers.why:
        return f"its layers could not be compared: {layers.why}"
    culprit = layers.culprit
    if culprit is None:
        return _at_none(layers, next((row for row in results.rows if row.variant.name == layers.variant), None))
    begins = "it parts from the reference" if results.doubted else "the error begins"
    if math.isinf(culprit.excess):
        return f"{begins} at {layers.where}: no value there resembles the right one"
    seen = f", which it calls {culprit.seen}" if culprit.seen else ""
    return f"{begins} at {layers.where}{seen}: {short(culprit.excess)} times what it may add, given its inputs"


def _at_none(layers: LayerErrors, row: Row | None) -> str:
    """What it means that no layer adds too much: of a variant that is right nothing, of one that is wrong that the
    error is somewhere else."""
    count, whole = layers.judged, len(layers.errors)
    right = f"none of {count} layers adds more error than a correct one may, given its inputs"
    if row is None or row.status == "agree":
        return right
    if count < whole:
        return f"where the error begins is not known: it is at none of the {count} of {whole} layers that were matched"
    if layers.errors[-1].shown <= SMALL:
        return "the error does not show where all values are outputs: it comes with what makes one layer of several"
    return "the error is at no layer of the ONNX model: what was made of it is another function, or ends differently"
