"""What several tests see of commands and of the processes that they start."""

from __future__ import annotations

from pathlib import Path

import psutil
from typer.testing import CliRunner

from harness.commands import app


def model(*arguments: str | Path) -> tuple[int, str]:
    """Exit status and output of `model`."""
    result = CliRunner().invoke(app.app_of(), ["model", *map(str, arguments)], catch_exceptions=False)
    return result.exit_code, result.output + (result.stderr if result.exit_code == 2 else "")


def workers() -> set[int]:
    """Worker processes of this one."""
    return {process.pid for process in started("worker")}


def started(*names: str) -> list[psutil.Process]:
    """What this process has started, and what that has, by name."""
    return [process for process in psutil.Process().children(recursive=True) if process.name() in names]
