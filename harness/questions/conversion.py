"""A graph written as a model file, converted and run: does it still compute what the graph says? Its targets are routes
(`harness/conversions/route.py`), each by itself; what a converter documents not to do is a refusal."""

from __future__ import annotations

import re

from generators.graphs import WIDE
from harness.backends import TARGETS, Target
from harness.backends.target import refusals
from harness.conversions.route import Routes, route_of, writer_of
from harness.dialects.dialect import Dialect
from harness.questions.forward import FORWARD
from harness.questions.question import Question
from oracles.judge.outcome import Rejected
from oracles.questions import forward

_STEP = "in step "


def step_of(message: str) -> str:
    """The step in which an exception was raised: write, the name of an edge, open or run. Empty where none is told."""
    last = message.splitlines()[-1] if message else ""
    return last.removeprefix(_STEP) if last.startswith(_STEP) else ""


def _record_of(dialect: Dialect) -> str:
    """Of what the framework refuses that traces a graph of this dialect while it is written; empty: there is none."""
    return next((one.refusals_file for one in TARGETS.values() if one.dialect is dialect and one.refusals_file), "")


def refusal(target: Target, outcome: Rejected) -> str | None:
    """Why an exception is a refusal that its tool documents, or None."""
    if "/" not in target.name:
        return None
    route, step = route_of(target), step_of(outcome.message)
    # what it leaves as it is shows when its file is opened
    last = route.edges[-1].refuses if route.edges else writer_of(route).refuses
    by_step = {
        "write": route.formats[0].refuses,
        **{edge.name: edge.refuses for edge in route.edges},
        **dict.fromkeys(("open", "run"), (*route.runner.refuses, *last)),
    }
    said = f"{outcome.kind}: {outcome.message}"
    for pattern, why in by_step.get(step, ()):
        match = re.search(pattern, said)
        if match:
            return f"{step}: {why.format(*match.groups())}"
    why = refusals.recorded(_record_of(writer_of(route).dialect), said) if step == "write" else None
    return why and f"{step}: {why}"


CONVERSION = Question(
    "conversion",
    forward.expect,
    refusal=refusal,
    inherits=(FORWARD.name,),
    traceable=True,
    style=WIDE,
    targets=Routes(),
)

QUESTIONS = (CONVERSION,)
