"""The command line: the commands that the files of this folder name in a tuple `COMMANDS`, functions or groups of such.
To add one, write its file."""

from __future__ import annotations

import typer

from generators.discovery import modules_of

_FIRST = (
    *("training", "versions", "conversions", "model", "quantise", "lists", "hunt", "coverage", "known"),
    *("study.group", "environments"),
)
"""In the order in which `--help` lists them; all others after them, in alphabetical order of the files."""

app = typer.Typer(
    help="Dissent finds where deep-learning stacks disagree.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for module in modules_of("harness.commands", _FIRST):
    for command in getattr(module, "COMMANDS", ()):
        if isinstance(command, typer.Typer):
            app.add_typer(command)
        else:
            app.command()(command)
