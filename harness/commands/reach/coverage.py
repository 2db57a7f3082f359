"""The command `coverage`: what hunts and tests have covered."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from generators.ops import OPS
from harness.commands.shared.cases import usable
from harness.commands.shared.terminal import Json, console, fail, named, write_json
from harness.commands.shared.view import coverage_table
from harness.questions.forward import FORWARD
from harness.search import coverage as covered


def coverage(
    findings: Annotated[Path, typer.Option(help="The findings folder of hunts and tests.")] = Path("findings"),
    question: Annotated[str, typer.Option(help="What was asked: the name of an oracle.")] = FORWARD.name,
    operator_globs: Annotated[str, typer.Option("--operators", help="Globs of operators.")] = "*",
    json_file: Json = None,
) -> None:
    """What hunts and tests have covered: operators, dtypes, targets, outcomes, pairs."""
    counted = covered.load(findings)
    operators = named(operator_globs, OPS, "operator")
    if question not in counted:
        raise fail(f"{findings}: nothing on {question!r}; there is {', '.join(counted) or 'nothing'}")
    console.print(coverage_table(counted[question], operators, usable("*")))
    write_json(json_file, counted[question].to_json())


COMMANDS = (coverage,)
