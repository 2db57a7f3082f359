"""What commands on drawn cases share: which targets, which question, which dtypes; a stored case."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from generators import caseio
from generators.graph import COMPLEX
from generators.graphs import FAVOURED, Case
from harness.backends import Target, probe, select
from harness.commands.shared.terminal import fail, say_off
from harness.execute.reading import FileError, read_by
from harness.questions import QUESTIONS
from harness.questions.forward import FORWARD
from harness.questions.question import Question

KINDS = (*FAVOURED, *COMPLEX)
"""dtypes that `--dtypes` may name."""

Targets = Annotated[str, typer.Option("--targets", metavar="GLOB", help="Comma-separated globs of target names.")]
Asked = Annotated[str, typer.Option("--question", metavar="NAME", help=f"What is asked: {', '.join(QUESTIONS)}.")]


def usable(patterns: str, question: Question = FORWARD) -> list[Target]:
    """Targets of a question that match and are available; those that are off are named with the reason."""
    try:
        chosen = select(patterns, question.targets)
    except ValueError as error:
        raise fail(str(error)) from error
    if not chosen:
        example = next(iter(question.targets))
        raise fail(f"targets of the question {question.name!r} have to be named: {example}, say, or globs of such")
    on = []
    for target in chosen:
        status = probe.probe(target)
        if status.available:
            on.append(target)
        else:
            say_off(target.name, status.reason)
    if not on:
        raise fail(f"no target that matches {patterns!r} is available here")
    return on


def asked(name: str) -> Question:
    """The question of this name; one clear line where there is none."""
    if name not in QUESTIONS:
        raise fail(f"no question is called {name!r}; there are {', '.join(QUESTIONS)}")
    return QUESTIONS[name]


def load_case(file: Path) -> Case:
    """A case from a `graph.json` or the folder that holds one; one clear line where that cannot be."""
    path = file / "graph.json" if file.is_dir() else file
    try:
        return read_by(path, caseio.loads)
    except FileError as error:
        raise fail(str(error)) from error
