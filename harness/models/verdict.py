"""The verdict on a given model in one sentence, and the exit status that stands for it. Only what was compared with a
bound is judged: a model of which nothing was is neither right nor wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import shorten

from harness.models.rows import LAYER, NOT_JUDGED, Row

LONGEST = 200
"""Characters of the reason why there is no reference: all of it stands beside."""
RIGHT, WRONG, OPEN = 0, 1, 3
"""Exit statuses; 2 is for bad input."""
WORDS = {"crash": "crashed", "timeout": "took too long", "rejected": "refused", NOT_JUDGED: "without a reference"}


@dataclass(frozen=True)
class Doubted:
    """The reference is in doubt. owners: of the kernels that agree with each other and not with it; names: of their
    variants; where: the node at which they part from it, or why that is not known."""

    owners: tuple[str, ...]
    names: tuple[str, ...]
    where: str = ""


def exit_status(rows: Sequence[Row], doubted: Doubted | None, refused: str) -> int:
    """Of the command."""
    if doubted or refused or not any(row.judged for row in rows):
        return OPEN
    return WRONG if any(row.deviates and not row.known for row in rows) else RIGHT


def sentence(rows: Sequence[Row], doubted: Doubted | None, refused: str, without: str, empty: bool) -> str:
    """without: why there is no reference (empty: there is one); empty: have its outputs no elements?"""
    if refused:
        return refused
    if doubted:
        told = f"Reference in doubt: {_listed(doubted.owners)} agree with each other and not with the reference"
        told = f"{told}; {doubted.where}" if doubted.where else told
        silent = [row for row in rows if row.silent]
        return f"{told}." + (f" {_silent(silent, rows)}." if silent else "")
    judged = [row for row in rows if row.judged]
    if not judged:
        return _nothing(rows, without)
    wrong, silent = [row for row in rows if row.wrong], [row for row in rows if row.silent]
    others = [row for row in rows if not row.judged and not row.silent]
    share = f"{len(judged)} of {len(rows)} judged" + (f" ({_kinds(others, counted=True)})" if others else "")
    partial = len(judged) < len(rows)
    if wrong or silent:
        told = f"{len(wrong)} of {len(rows)} variants deviate" if wrong else _silent(silent, rows)
        if wrong and silent:
            told += f", {len(silent)} return{'s' * (len(silent) == 1)} nothing ({_kinds(silent)})"
        hidden = sum(row.status == LAYER for row in wrong)
        told += f", {hidden} of them in a layer whose error the outputs hide" if hidden else ""
        known = sum(bool(row.known) for row in (*wrong, *silent))
        told += f", {known} of them as known issues say" if known else ""
        return f"{told}. {share}." if partial else f"{told}."
    shapes = "; they have no elements: shapes were compared" if empty else ""
    right = f"what a correct evaluation may return{shapes}."
    if partial:
        return f"{share}: {'they return' if len(judged) > 1 else 'it returns'} {right}"
    return f"All {len(rows)} variants return {right}" if len(rows) > 1 else f"The variant returns {right}"


def _nothing(rows: Sequence[Row], without: str) -> str:
    """The verdict where nothing was compared with a bound, and why that is so."""
    told = f"Nothing judged: {shorten(without, LONGEST).rstrip('.')}."
    if {row.status for row in rows} == {"undetermined"}:
        return "Nothing judged: noise alone decides every element of what the model returns."
    if not without:
        return f"Nothing judged: no variant returned what could be compared ({_kinds(rows)})."
    shown = sum(row.status in (NOT_JUDGED, "mismatch") for row in rows)
    odd, silent = [row for row in rows if row.wrong], [row for row in rows if row.silent]
    if shown > 1:
        told += f" Only agreement of {shown} variants is shown."
    if odd:
        those = "variant returns" if len(odd) == 1 else "variants return"
        told += f" {len(odd)} {those} something else than the model declares."
    return told + (f" {_silent(silent, rows)}." if silent else "")


def _silent(silent: Sequence[Row], rows: Sequence[Row]) -> str:
    """Those that returned nothing."""
    return f"{len(silent)} of {len(rows)} variants return{'s' * (len(silent) == 1)} nothing ({_kinds(silent)})"


def _kinds(rows: Sequence[Row], counted: bool = False) -> str:
    """How many of each kind there are; of one alone what it is, unless it is to be counted."""
    found = Counter(WORDS.get(row.status, row.status) for row in rows)
    return ", ".join(f"{count} {word}" if counted or len(rows) > 1 else word for word, count in found.items())


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
