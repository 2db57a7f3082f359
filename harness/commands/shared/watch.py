"""Watching a run: a table that is drawn anew where there is a terminal, and else a line a minute."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console, RenderableType
from rich.live import Live

from harness.commands.shared.bar import MINUTE, EveryMinute
from harness.search.hunt import Options, Tally


@contextmanager
def watched(
    console: Console, quiet: bool, clock: Callable[[], float] = time.monotonic
) -> Iterator[Callable[[Callable[[], RenderableType], Callable[[], str]], None]]:
    """What is called often with how the table, and how the line, is made of the figures so far; neither is made where
    it is not shown. quiet: nothing is shown."""
    if quiet:
        yield lambda table, line: None
        return
    if console.is_terminal:
        with Live(console=console, refresh_per_second=4, transient=True) as live:
            yield lambda table, line: live.update(table())
        return
    minute = EveryMinute(clock)

    def tell(table: Callable[[], RenderableType], line: Callable[[], str]) -> None:
        if minute.over():
            console.print(line(), markup=False, highlight=False, soft_wrap=True)

    yield tell


def hunt_line(options: Options, tally: Tally, seconds: float) -> str:
    """How far a hunt is: time, cases, what is new and known, and the target whose programs take most."""
    run = {name.removeprefix("run:"): s for name, s in tally.seconds.items() if name.startswith("run:") and s > 0}
    slowest = ""
    if run:
        name = max(run, key=lambda target: run[target])
        slowest = f", slowest {name} ({100 * run[name] / sum(run.values()):.0f} % of the time in programs)"
    if tally.faults:
        slowest = f", {len(tally.faults)} faults of ours{slowest}"
    whole = "" if options.cases is not None else f" of {options.budget / MINUTE:g}"
    return (
        f"{seconds / MINUTE:.0f}{whole} min: {tally.cases} cases ({tally.cases / max(seconds, 1e-9):.1f}/s), "
        f"{tally.taken} places of the plan, {len(tally.findings) - len(tally.inconsistencies)} findings, "
        f"{len(tally.inconsistencies)} inconsistencies, "
        f"{tally.excused.total()} excused as known{slowest}"
    )


def next_steps(options: Options, tally: Tally) -> list[str]:
    """What to do after a hunt: a command a line."""
    folder = options.findings
    if not tally.findings:
        return [f"next: a longer --budget, or what was not reached: python -m harness coverage --findings {folder}"]
    path = next(iter(tally.findings.values())).path
    return [
        f"next: python -m harness report {path}                # severity, reach, cause",
        f"      python -m harness report {path} --upstream     # the text of an issue",
        f"      python -m harness site --out site --findings {folder}   # all of it as pages",
    ]
