"""The commands on environments: `env list`, `env create`."""

from __future__ import annotations

import typer
from rich.table import Table

from harness.commands.shared.terminal import Json, fail, print_wide, say, write_json
from harness.execute import environments
from harness.execute.environments import EnvironmentsError

env = typer.Typer(name="env", help="Python environments beside this one.", no_args_is_help=True)


@env.callback()
def _group() -> None:
    """Python environments beside this one, for other versions and for what cannot be installed into it."""


@env.command("list")
def listed(json_file: Json = None) -> None:
    """List all environments: their versions, or the reason why one is off."""
    try:
        known = environments.load()
    except EnvironmentsError as error:
        raise fail(str(error)) from error
    table, rows = Table("environment", "python", "status"), []
    for name, environment in known.items():
        state = environments.state(environment)
        named = [*environment.packages, *environment.no_deps]
        pins = " ".join(requirement.replace("==", " ") + "," for requirement in named).rstrip(",")
        said = f"[green]on:[/] {pins}" if state.reason is None else f"[yellow]off: {state.reason}[/]"
        table.add_row(name, state.versions.get("python") or environment.python or "-", said)
        rows.append(
            {
                "name": name,
                "packages": list(environment.packages),
                "no_deps": list(environment.no_deps),
                "available": state.reason is None,
                "reason": state.reason,
                "versions": dict(state.versions),
                "interpreter": str(environment.interpreter),
            }
        )
    print_wide(table)
    write_json(json_file, rows)


@env.command()
def create(name: str = typer.Argument(help="Of an environment in environments.toml.")) -> None:
    """Build an environment; at once where it is there already, anew where its pins have changed."""
    try:
        environment = environments.create(name)
    except EnvironmentsError as error:
        raise fail(str(error)) from error
    except OSError as error:
        raise fail(f"{error.filename or name}: {error.strerror}") from error
    say(f"{name}: {environment.interpreter}")


COMMANDS = (env,)
