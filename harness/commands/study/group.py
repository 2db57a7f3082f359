"""The command `study`: the studies that the files of this folder name in a tuple `STUDIES`. To add one, write its
file."""

from __future__ import annotations

import typer

from generators.discovery import modules_of

study = typer.Typer(name="study", help="Protocols of published work, run again.", no_args_is_help=True)


@study.callback()
def _group() -> None:
    """Protocols of published work, run again and judged beside our own oracles."""


for module in modules_of("harness.commands.study"):
    for command in getattr(module, "STUDIES", ()):
        study.command()(command)

COMMANDS = (study,)
