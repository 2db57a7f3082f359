"""What back ends refuse of the rare dtypes: measured by `python -m harness cells --update`, kept in refusals/*.json."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from harness.execute.reading import read_json
from oracles.judge.discrepancy import Discrepancy
from oracles.judge.verdict import normalized

FOLDER = Path(__file__).parent / "refusals"

Refusals = Mapping[tuple[str, str], str]
"""(operator, dtype) -> the message that the framework refuses with, in short. The operator * stands for all."""


@cache
def load(record: str) -> Refusals:
    """What the record of this name holds; nothing for the empty name, or where none was made yet. Raises FileError."""
    path = FOLDER / f"{record}.json"
    if not record or not path.exists():
        return {}
    data = read_json(path, dict[str, dict[str, str]])
    return {
        (operator, dtype): why
        for operator, reasons in data.items()
        for why, dtypes in reasons.items()
        for dtype in dtypes.split()
    }


def why(record: str, operator: str, dtype: str) -> str | None:
    """The reason that the record gives, if any."""
    refused = load(record)
    return refused.get((operator, dtype)) or refused.get(("*", dtype))


def short(refusal: Discrepancy) -> str:
    """The beginning of the normalised message, without dtypes and lists of them: alike for all dtypes."""
    text = re.sub(r"\b(u?int\d+|b?float\d+|complex\d+|half)\b|\w*__\w+", "#", normalized(refusal))
    text = re.sub(r"\s*:[\s:]*", ": ", text.split("#, ")[0])
    return re.sub(r"[\s:#]+$", "", text[:88])


def recorded(record: str, message: str) -> str | None:
    """What the record has of a "class: message", of whatever operator; None: nothing that says a class and why."""
    said = short(Discrepancy("rejected", message))
    return said if re.search(r": \w", said) and said in load(record).values() else None


def save(record: str, refused: Refusals) -> None:
    """Write operator -> message -> dtypes: one line for each message, in alphabetical order."""
    grouped: dict[str, dict[str, list[str]]] = {}
    for (operator, dtype), why in sorted(refused.items()):
        grouped.setdefault(operator, {}).setdefault(why, []).append(dtype)
    data = {operator: {why: " ".join(dtypes) for why, dtypes in sorted(g.items())} for operator, g in grouped.items()}
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{record}.json").write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    load.cache_clear()
