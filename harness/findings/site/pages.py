"""The pages: all causes, one page a cause, operator x framework, the last hunt."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from generators.ops import OPS
from harness.execute.files import whole
from harness.execute.globs import any_of
from harness.execute.templates import render
from harness.findings import written
from harness.findings.database.history import Past
from harness.findings.known.entry import FOLDER
from harness.findings.site.heat import heat_of
from harness.findings.site.highlight import highlighted
from harness.findings.site.hunted import Hunted, counted
from harness.findings.site.past import copied, groups_of, trend
from harness.findings.site.values import Values, values_of
from harness.findings.triage.causes import Cause
from harness.findings.triage.instance import STATES, Instance
from harness.findings.triage.reach import LEVELS, Reach
from harness.findings.triage.severity import SEVERITIES
from harness.findings.triage.words import STATE, SYMPTOM, headline
from harness.findings.written import Written
from harness.questions.forward import FORWARD

_TEMPLATES = "findings/site/templates"
MANY = 12
"""Operators that a row names."""


@dataclass(frozen=True)
class Shown:
    """An instance as its cause's page has it. code: (heading, HTML, is it open?); commands: (what for, command)."""

    instance: Instance
    reach: Reach
    headline: str
    place: str
    written: Written | None
    code: tuple[tuple[str, str, bool], ...]
    values: tuple[Values, ...]
    commands: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Row:
    """A cause as the list has it. operators: all that its globs name (none: any); searched: what a search looks in."""

    cause: Cause
    page: str
    headline: str
    operators: tuple[str, ...]
    searched: str

    @property
    def slug(self) -> str:
        """Of its severity, as classes of the style sheet have it."""
        return slug(self.cause.severity)


def write(
    out: Path, causes: Sequence[Cause], versions: Mapping[str, str], hunts: Hunted | None, past: Sequence[Past] = ()
) -> int:
    """Write the site; returns the number of its pages. versions: of the frameworks, as they are installed. hunts: what
    the findings folder has of the last one; past: the runs of its store. Raises OSError and FileError."""
    rows = [row_of(cause) for cause in causes]
    pages = {row.cause.id: row.page for row in rows}
    owner = {one.id: cause.id for cause in causes for one in cause.instances}
    frameworks = _by_count(row.cause.first.framework for row in rows)
    common = {
        "versions": versions,
        "hunts": hunts,
        "past": past,
        "slug": slug,
        "symptom": SYMPTOM,
        "state": STATE,
        "age": age,
    }
    with whole(out) as folder:
        (folder / "cause").mkdir()
        for name in ("style.css", "site.js"):
            (folder / name).write_text(render(f"{_TEMPLATES}/{name}"), encoding="utf-8")
        index = render(
            f"{_TEMPLATES}/index.html.j2", up="", page="index", rows=rows, frameworks=frameworks,
            severities=SEVERITIES, levels=LEVELS, states=[s for s in STATES if any(r.cause.state == s for r in rows)],
            entries=sum(len(row.cause.instances) for row in rows), most=max(frameworks.values(), default=1),
            tally=Counter((row.cause.first.framework, row.cause.severity) for row in rows), many=MANY, **common,
        )  # fmt: skip
        (folder / "index.html").write_text(index, encoding="utf-8")
        heat = heat_of([(row.cause.first.framework, row.operators) for row in rows], list(frameworks))
        heated = render(f"{_TEMPLATES}/heat.html.j2", up="", page="heat", heat=heat, frameworks=frameworks, **common)
        (folder / "operators.html").write_text(heated, encoding="utf-8")
        if hunts:
            hunted = render(f"{_TEMPLATES}/hunt.html.j2", up="", page="hunt", rows=rows, **common)
            (folder / "hunt.html").write_text(hunted, encoding="utf-8")
        if past:
            reports = copied(past, folder / "runs")
            listed = render(
                f"{_TEMPLATES}/runs.html.j2", up="", page="runs", groups=groups_of(past), chart=trend(past),
                reports=reports, told=counted, duration=duration, **common,
            )  # fmt: skip
            (folder / "runs.html").write_text(listed, encoding="utf-8")
        for row in rows:
            shown = [shown_of(one, reach) for one, reach in zip(row.cause.instances, row.cause.reaches, strict=True)]
            related = [(name, pages[owner[name]]) for name in row.cause.related]
            text = render(
                f"{_TEMPLATES}/cause.html.j2", up="../", page="cause", row=row, cause=row.cause, instances=shown,
                related=related, **common,
            )  # fmt: skip
            (folder / "cause" / row.page).write_text(text, encoding="utf-8")
    return len(rows) + 2 + bool(hunts) + bool(past)


def row_of(cause: Cause) -> Row:
    """What the list says of a cause."""
    named = any_of(tuple(glob for glob in cause.operators if glob != "*"))
    operators = tuple(name for name in OPS if named.match(name))
    parts = [
        text for one in cause.instances
        for text in (one.id, one.framework, one.reason, one.message, *one.subjects, *one.dtypes, *one.symptoms)
    ]  # fmt: skip
    page = re.sub(r"[^\w.-]", "_", cause.id) + ".html"
    return Row(cause, page, headline(cause.first), operators, " ".join([*parts, *operators]).lower())


def shown_of(instance: Instance, reach: Reach) -> Shown:
    """What a page says of an instance. Raises FileError."""
    program = written.read(instance.folder)
    code: list[tuple[str, str, bool]] = []
    if program and program.program:
        code = [
            ("what it needs", highlighted(program.head), False),
            ("the program", highlighted(program.program), True),
            ("inputs, and what is expected", highlighted(program.data), len(program.data) < 3000),
            ("the check", highlighted(program.check), False),
        ]
    elif program:
        code = [("the program", highlighted(program.text), True)]
    place = place_of(instance.folder)
    return Shown(
        instance, reach, headline(instance), place, program, tuple(code),
        tuple(values_of(program)) if program and program.program else (), tuple(commands_of(instance, place, program)),
    )  # fmt: skip


def commands_of(instance: Instance, place: str, program: Written | None) -> list[tuple[str, str]]:
    """What runs it again: (what for, command)."""
    found = []
    if program:
        found.append(("the program alone", f"python {shlex.quote(f'{place}/{written.FILE}')}"))
    if instance.case is not None:
        stored = place if instance.kind == "finding" else f"{place}/case.json"
        question = "" if instance.question == FORWARD.name else f" --question {instance.question}"
        targets = shlex.quote(",".join(instance.subjects))
        replay = f".venv/bin/python -m harness replay {shlex.quote(stored)} --targets {targets}{question}"
        found.append(("judged by Dissent", replay))
    return found


def duration(seconds: float | None) -> str:
    """In the largest unit of which there is one."""
    if seconds is None:
        return ""
    minutes = seconds / 60
    return f"{minutes / 60:.1f} h" if minutes >= 60 else f"{minutes:.0f} min" if minutes >= 1 else f"{seconds:.0f} s"


def age(seen: str) -> str:
    """Of what was first seen then, as pages have it."""
    days = (datetime.now(UTC) - datetime.fromisoformat(seen)).days
    return f"{seen[:10]}, {days} day{'' if days == 1 else 's'} before this page"


def place_of(folder: Path) -> str:
    """A folder as commands name it: from the repository's root where it lies in it."""
    root = FOLDER.parent.resolve()
    inside = folder.resolve().is_relative_to(root)
    return str(folder.resolve().relative_to(root)) if inside else str(folder)


def slug(text: str) -> str:
    """As classes of the style sheet have it."""
    return text.replace(" ", "-")


def _by_count(names: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(names).items(), key=lambda item: (-item[1], item[0])))
