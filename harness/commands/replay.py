"""The command `replay`: a stored case again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harness.commands.shared.cases import Asked, Targets, asked, load_case, usable
from harness.commands.shared.terminal import Json, console, fail, write_json
from harness.commands.shared.view import replay_lines
from harness.execute.pool import HarnessError, Pool
from harness.questions.forward import FORWARD
from harness.search.laboratory import Laboratory


def replay(
    file: Annotated[Path, typer.Argument(help="graph.json of a finding, or its folder.")],
    target_globs: Targets = "*",
    question: Asked = FORWARD.name,
    json_file: Json = None,
) -> None:
    """Run a stored case again on all targets and judge it."""
    asking = asked(question)
    chosen = usable(target_globs, asking)
    case = load_case(file)
    try:
        with Pool() as pool:
            examination = Laboratory(pool, asking).examine(case, chosen)
    except HarnessError as error:
        raise fail(str(error)) from error
    for line in replay_lines(examination):
        console.print(line, highlight=False, soft_wrap=True)
    results = {
        name: {"status": v.status, "message": v.discrepancy.message if v.discrepancy else None}
        for name, v in examination.verdicts.items()
    }
    write_json(json_file, {"graph": case.graph.to_json(), "oracle": question, "targets": results})
    if any(verdict.discrepancy for verdict in examination.verdicts.values()):
        raise typer.Exit(1)


COMMANDS = (replay,)
