"""Many runs, several at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from harness.execute.isolation.cluster import Cluster, jobs
from harness.execute.isolation.jobs import JobError, Share
from harness.studies.runs.history import History, read
from harness.studies.runs.perform import perform
from harness.studies.runs.plan import Plan, Run


def path_of(folder: Path, run: Run) -> Path:
    """The file of a run."""
    return folder / "runs" / f"{run.name}.npz"


def do(
    plan: Plan, runs: Sequence[Run], folder: Path, most: int, progress: Callable[[int], None],
    cluster: Cluster | None = None,
) -> tuple[str, ...]:  # fmt: skip
    """Every run that is not done, by so many processes or tasks of Ray at most: a line for each task that was lost and
    gone on with. progress: is told how many epochs are done. Raises JobError, OSError; a KeyboardInterrupt loses at
    most the epochs under way."""
    (folder / "runs").mkdir(parents=True, exist_ok=True)

    def tell(latest: Mapping[int, int]) -> None:
        progress(sum(latest.values()))

    count = max(1, min(most, len(runs)))
    together = jobs(partial(_share, plan, tuple(runs), folder.absolute()), count, cluster)
    together.run(tell)
    if together.failures:
        raise JobError(together.failures[0])
    return tuple(together.repeated)


def _share(plan: Plan, runs: tuple[Run, ...], folder: Path, share: Share[int]) -> int:
    """The runs that this job is given, gone on with where the file of each stands, whoever wrote that: the epochs that
    are done."""
    data, done = plan.data(), 0
    for number in share.numbers("run", len(runs)):
        run = runs[number]
        perform(plan, run, data, path_of(folder, run), lambda epochs, before=done: share.tell(before + epochs))
        done += plan.epochs
        share.tell(done)
    return done


def finished(plan: Plan, runs: Sequence[Run], folder: Path) -> dict[Run, History]:
    """The runs that are done. Raises HistoryError."""
    found = {run: read(path_of(folder, run)) for run in runs if path_of(folder, run).exists()}
    return {run: history for run, history in found.items() if history.epochs >= plan.epochs}
