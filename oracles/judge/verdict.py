"""What is made of an outcome: agreement, a documented refusal, or a discrepancy. The same for all questions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from oracles.judge.compare import Expected, compare_all
from oracles.judge.discrepancy import Discrepancy
from oracles.judge.outcome import Crash, Outcome, Rejected, Timeout, Unsupported, Value

Status = Literal[
    "agree", "within_bound_only", "undetermined", "unsupported", "rejected", "crash", "timeout", "mismatch"
]
STATUSES: tuple[Status, ...] = Status.__args__


@dataclass(frozen=True)
class Verdict:
    """The judgement of one run. elements: compared or excused; undetermined: those excused."""

    status: Status
    discrepancy: Discrepancy | None = None
    elements: int = 0
    undetermined: int = 0


@dataclass(frozen=True)
class Observation:
    """The judgement of a run that shows what it computed on the way, and what its outputs should have been."""

    verdict: Verdict
    expected: Expected


def judge(expected: Expected, outcome: Outcome) -> Verdict:
    """One outcome. Whatever is not a value that agrees, or an unsupported that was written down, is a
    discrepancy: a missing result is a failure."""
    match outcome:
        case Unsupported():
            return Verdict("unsupported")
        case Rejected(kind, message):
            return Verdict("rejected", Discrepancy("rejected", f"{kind}: {message}"))
        case Crash(how, detail):
            return Verdict("crash", Discrepancy("crash", how + (f": {detail}" if detail else "")))
        case Timeout(seconds, missing=missing):
            whose = f" from {missing}" if missing else ""
            return Verdict("timeout", Discrepancy("timeout", f"no result{whose} after {seconds:g} s"))
        case Value(outputs):
            result = compare_all(outputs, expected)
            status: Status = "mismatch" if result.discrepancy else "undetermined" if result.wasted else "agree"
            return Verdict(status, result.discrepancy, result.elements, result.undetermined)


def normalized(discrepancy: Discrepancy) -> str:
    """The message without what varies from case to case: for grouping findings. Values and places of a
    numerical mismatch always vary, so nothing of them is left."""
    if discrepancy.symptom in ("value", "special", "level", "type", "timeout", "slow"):
        return ""
    text = discrepancy.message.splitlines()[0] if discrepancy.message else ""
    text = re.sub(r"0x[0-9a-f]+|\b[a-z]?\d[\w.]*|/[\w./-]+|[\[(][^\])]*[\])]|'[^']*'|\"[^\"]*\"", "#", text)
    text = re.sub(r"(?<=_)\d+(?![A-Za-z\d])", "#", text)  # frameworks number what they trace: __inference_step_35806
    return re.sub(r"[\s#]+", " ", text).strip()[:120]
