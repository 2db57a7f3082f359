"""Where a run first differs from another one: by what is kept of both, and, to the element, by doing both again side by
side."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from harness.execute.pool import Pool
from harness.studies.datasets.dataset import DataSet
from harness.studies.loops.train import Part, train
from harness.studies.runs.history import Arrays, History
from harness.studies.runs.perform import epoch_of, limits_of, none_of, parts_of, start
from harness.studies.runs.plan import Plan, Run
from oracles.determinism import Difference, Moment, first_difference

ALL = ("data", "initial", "batch", "loss", "state")


def kept_difference(number: int, base: History, other: History, kinds: tuple[str, ...] = ALL) -> Difference | None:
    """The first one that is kept: of the data, of the initial parameters, of a batch, of a batch's loss, of an array of
    the state after an epoch. It has no element. number: of the run that is compared with run 0; kinds: which of these
    are looked at."""
    names = list(base.state)

    def found(what: str, array: str, *place: int) -> Difference:
        return Difference(number, Moment(what, *place), array, why="other bits")

    if "data" in kinds and base.data != other.data:
        return found("data", "x")
    if "initial" in kinds and (base.digests[0] != other.digests[0]).any():
        return found("initial", names[int(np.argmax(base.digests[0] != other.digests[0]))])
    for epoch in range(min(base.epochs, other.epochs)):
        batch = base.batches[epoch] != other.batches[epoch]
        loss = base.losses[epoch].view(np.uint64) != other.losses[epoch].view(np.uint64)
        looked = (("batch", batch), ("loss", loss))
        steps = [int(np.argmax(one)) if one.any() and kind in kinds else len(one) for kind, one in looked]
        if min(steps) < len(batch):
            return found(
                "batch" if steps[0] <= steps[1] else "loss", "x" if steps[0] <= steps[1] else "loss", epoch, min(steps)
            )
        marks = base.digests[epoch + 1] != other.digests[epoch + 1]
        if "state" in kinds and marks.any():
            return found("state", names[int(np.argmax(marks))], epoch)
    return None


def named_difference(plan: Plan, data: DataSet, base: Run, other: Run, kept: Difference) -> Difference:
    """The same to the element: both runs are done again as far as the epoch of the difference that is kept, and go on
    step by step. What does not come again is the kept difference, which says so. Raises LoopError, and what a pool
    raises."""
    epoch = max(0, kept.moment.epoch)
    with Pool(limits_of(plan, base), shared=False) as one, Pool(limits_of(plan, other), shared=False) as two:
        traces = zip(_trace(one, plan, base, data, epoch), _trace(two, plan, other, data, epoch), strict=True)
        for first, second in traces:
            difference = first_difference(kept.run, [first], [second])
            if difference:
                return difference
    return replace(kept, why=f"{kept.why}; not when both were run again")


def _trace(pool: Pool, plan: Plan, run: Run, data: DataSet, epoch: int) -> Iterator[tuple[Moment, Arrays]]:
    """What a run has before its first step, and at every step of one epoch."""
    loop = plan.loop(data, run)
    history = start(pool, loop, run, data)
    yield Moment("initial"), history.state
    while history.epochs < epoch:
        history = epoch_of(pool, plan, loop, run, data, history)
        yield Moment("state", history.epochs - 1), history.state
    state, step, nothing = history.state, 0, none_of(data.test, data.test_labels)
    for part in parts_of(pool, plan, loop, run, data, epoch):
        for number, rate in enumerate(part.rates):
            rows = slice(number * plan.batch, (number + 1) * plan.batch)
            x, y = part.x[rows], part.y[rows]
            yield Moment("batch", epoch, step), {"x": x, "y": y}
            done = train(pool, loop, state, Part(x, y, np.array([rate]), *nothing))
            state = done.state
            yield Moment("state", epoch, step), {"loss": done.found["loss"], **state}
            step += 1
