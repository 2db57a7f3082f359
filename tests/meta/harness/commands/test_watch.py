"""Watching a hunt: a line a minute where there is no terminal, nothing where it is to be quiet, and what to do next."""

from __future__ import annotations

import io
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from harness.commands.shared.bar import Bar
from harness.commands.shared.watch import hunt_line, next_steps, watched
from harness.findings.store import Finding
from harness.search.hunt import Options, Tally


def options(**given: Any) -> Options:
    plain = {"targets": (), "budget": 300.0, "seed": 1, "findings": Path("findings"), "max_nodes": 5, "operators": ()}
    return Options(**{**plain, **given})


def tally(*names: str) -> Tally:
    found = {
        name: Finding(name, "forward", "value", "m", "t", ("t",), ("neg",), 1, None, {}, {}, path=f"findings/{name}")
        for name in names
    }
    seconds = {"run:tvm-O3": 30.0, "run:ort-all": 10.0, "print": 99.0}
    return Tally(cases=120, findings=found, excused=Counter(a=3, b=4), seconds=seconds, taken=64)


@pytest.mark.parametrize(("terminal", "quiet", "lines"), [(False, False, 2), (False, True, 0), (True, True, 0)])
def test_a_line_a_minute(terminal: bool, quiet: bool, lines: int) -> None:
    now = [0.0]
    told = io.StringIO()
    with watched(Console(file=told, force_terminal=terminal), quiet, lambda: now[0]) as tell:
        for _ in range(13):  # up to 130 s
            now[0] += 10.0
            tell(lambda: pytest.fail("no table without a terminal"), lambda: f"after {now[0]:g}")
    assert told.getvalue().split("\n")[:-1] == [f"after {60 * (n + 1)}" for n in range(lines)]


def test_a_terminal_has_the_table_and_no_lines() -> None:
    told = io.StringIO()
    with watched(Console(file=told, force_terminal=True, width=80), False) as tell:
        tell(lambda: "the table", lambda: pytest.fail("no line on a terminal"))
    assert "the table" in told.getvalue()


def test_the_line_says_how_far_it_is() -> None:
    assert hunt_line(options(), tally("a"), 60.0) == (
        "1 of 5 min: 120 cases (2.0/s), 64 places of the plan, 1 findings, 0 inconsistencies, 7 excused as known, "
        "slowest tvm-O3 (75 % of the time in programs)"
    )
    assert hunt_line(options(cases=9), Tally(), 0.0).startswith("0 min: 0 cases (0.0/s)")


def test_what_to_do_next_names_commands_that_are_there() -> None:
    from harness.commands.app import app_of

    commands = {command.callback.__name__ for command in app_of().registered_commands if command.callback}
    for given in (tally("a", "b"), tally()):
        lines = next_steps(options(), given)
        named = [line.split("python -m harness ")[1].split()[0] for line in lines]
        assert set(named) <= commands
    assert "findings/a --upstream" in "\n".join(next_steps(options(), tally("a")))


def test_a_bar_prints_a_line_a_minute_where_there_is_no_terminal() -> None:
    now, written = [0.0], io.StringIO()
    with Bar(console=Console(file=written, force_terminal=False, width=80), clock=lambda: now[0]) as bar:
        task = bar.add_task("cases", total=8)
        for second in (30.0, 59.0, 61.0, 100.0, 125.0):
            now[0] = second
            bar.advance(task)
    assert written.getvalue().split("\n")[:3] == ["1 min: cases: 3 of 8", "2 min: cases: 5 of 8", ""]


def test_a_bar_of_a_terminal_prints_no_lines() -> None:
    now, written = [0.0], io.StringIO()
    with Bar(console=Console(file=written, force_terminal=True, width=80), clock=lambda: now[0]) as bar:
        task = bar.add_task("cases", total=8)
        now[0] = 100.0
        bar.advance(task)
    assert "min: cases" not in written.getvalue()
