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
    *("training", "versions", "conversions", "model", "quantise", "lists", "hunt", "coverage", "known"),
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
    """The command line. name: of the command that is asked for; a file that is called like it is imported alone, which
    halves what a short command takes (empty, or no file: all commands)."""
    app = typer.Typer(
        cls=OneLine,
        help="Dissent finds where deep-learning stacks disagree.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    app.callback()(lambda: None)  # so that a single command is called by its name, too
    alone = name if name.isidentifier() and find_spec(f"harness.commands.{name}") else ""
    modules = [import_module(f"harness.commands.{alone}")] if alone else modules_of("harness.commands", _FIRST)
    for module in modules:
        for command in getattr(module, "COMMANDS", ()):
            if isinstance(command, typer.Typer):
                app.add_typer(command)
            else:
                app.command()(command)
    return app
