"""What the studies of training runs share: doing the runs with a bar, and an interruption that loses nothing."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from harness.commands.shared.bar import Bar
from harness.commands.shared.recorded import recorded
from harness.commands.shared.terminal import console, say
from harness.execute.isolation.cluster import Cluster
from harness.execute.isolation.signals import status_of
from harness.studies.runs.plan import Plan, Run
from harness.studies.runs.together import do, finished


def train_all(
    plan: Plan, runs: Sequence[Run], folder: Path, jobs: int, seed: int, cluster: Cluster | None = None
) -> int:
    """All that is not done; the exit status of an interruption, or 0. Raises JobError, FileError, OSError."""
    log = recorded(folder, seed)
    total, started = plan.epochs * len(runs), time.monotonic()
    done = finished(plan, runs, folder)
    say(f"{len(runs)} models, {len(done)} of them there already")
    if len(done) == len(runs):
        return 0
    code, repeated = 0, ()
    try:
        with Bar(console=console) as progress:
            task = progress.add_task("epochs", total=total)
            repeated = do(plan, runs, folder, jobs, lambda epochs: progress.update(task, completed=epochs), cluster)
    except KeyboardInterrupt as stop:
        code = status_of(stop)
    else:
        say(f"trained in {time.monotonic() - started:.0f} s", style="dim")
    for line in repeated:
        say(line, style="yellow")
    for run, history in finished(plan, runs, folder).items():
        if run not in done:
            log.case("training run", {"done": 1}, float(history.cpu), number=run.number, subject=run.name)
    return code
