"""The command line: the commands that the files of this folder name in a tuple `COMMANDS`, functions or groups of such.
To add one, write its file."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import typer
from typer.core import TyperGroup

from generators.discovery import modules_of
from harness.commands.shared.terminal import fail
from harness.execute.reading import FileError

_FIRST = (
    *("training", "versions", "conversions", "model", "quantise", "lists", "hunt", "reach.coverage", "findings.known"),
    *("study.group", "environments"),
)
"""In the order in which `--help` lists them; all others after them, in alphabetical order of the files."""


class OneLine(TyperGroup):
    """Commands that end with a line where a file cannot be used, wherever it is read."""

    def invoke(self, ctx: Any) -> object:
        try:
            return super().invoke(ctx)
        except FileError as error:
            raise fail(str(error)) from error


def app_of(name: str = "") -> typer.Typer:
    """The command line. name: of the command that is asked for; a file that is called like it and has commands is
    imported alone, which halves what a short command takes (empty, or no such file: all commands)."""
    app = typer.Typer(
        cls=OneLine,
        help="Dissent finds where deep-learning stacks disagree.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    app.callback()(lambda: None)  # so that a single command is called by its name, too
    found = name.isidentifier() and find_spec(f"{__package__}.{name}")
    alone = import_module(f"{__package__}.{name}") if found else None
    modules = [alone] if hasattr(alone, "COMMANDS") else modules_of("harness.commands", _FIRST)
    for module in modules:
        for command in getattr(module, "COMMANDS", ()):
            if isinstance(command, typer.Typer):
                app.add_typer(command)
            else:
                app.command()(command)
    return app
