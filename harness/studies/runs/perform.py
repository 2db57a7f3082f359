"""Does a run, epoch by epoch, and goes on where an earlier process has stopped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from harness.execute.pool import Limits, Pool
from harness.studies.datasets.dataset import DataSet, Pictures, Samples
from harness.studies.loops import draws
from harness.studies.loops.loop import Loop
from harness.studies.loops.train import Part, train
from harness.studies.runs.history import Arrays, History, begun, digest, read, write
from harness.studies.runs.plan import Plan, Run, augmented

AT_ONCE = 4096
"""So many pictures, read from files, are in memory at once."""


def limits_of(plan: Plan, run: Run) -> Limits:
    """Of the process that a run has for itself."""
    return Limits(seconds=plan.timeout, threads=run.threads, memory=0, recycle=0)


def perform(plan: Plan, run: Run, data: DataSet, path: Path, told: Callable[[int], None]) -> History:
    """All epochs of a run, in a process of its own; what is done is kept in the file after each. told: of each epoch.
    Raises LoopError, HistoryError, OSError and what a pool raises."""
    kept = read(path) if path.exists() else None
    if kept and kept.epochs >= plan.epochs:
        return kept
    with Pool(limits_of(plan, run), shared=False) as pool:
        loop = plan.loop(data, run)
        history = kept or start(pool, loop, run, data)
        while history.epochs < plan.epochs:
            history = epoch_of(pool, plan, loop, run, data, history)
            write(path, history)
            told(history.epochs)
    return history


def start(pool: Pool, loop: Loop, run: Run, data: DataSet) -> History:
    """The framework's own initial parameters by the run's seed. Raises LoopError, and what a pool raises."""
    state = loop.begin(draws.initial(pool, loop, run.init))
    return begun(state, loop.steps(len(data.train)), digest_of(data))


def digest_of(data: DataSet) -> int:
    """Of the training data; of pictures, of which files and labels there are."""
    if isinstance(data.train, Pictures):
        return digest(np.array([path.name for path in data.train.paths])) ^ digest(data.train_labels)
    return digest(data.train) ^ digest(data.train_labels)


def epoch_of(pool: Pool, plan: Plan, loop: Loop, run: Run, data: DataSet, history: History) -> History:
    """One more epoch. Raises LoopError, and what a pool raises."""
    epoch = history.epochs
    state, losses, accuracies, batches, cpu = history.state, [], [], [], 0.0
    for part in parts_of(pool, plan, loop, run, data, epoch):
        done = train(pool, loop, state, part)
        state, cpu = done.state, cpu + done.cpu
        losses.append(done.found["loss"])
        accuracies.append(done.found["accuracy"])
        batches.append(done.found["batches"])
    predictions, test_loss, more = tested(pool, loop, state, data)
    marks = np.array([digest(array) for array in state.values()], np.uint32)
    accuracy = np.mean(predictions == data.test_labels)
    return replace(
        history,
        state=state,
        losses=np.concatenate([history.losses, [np.concatenate(losses)]]),
        accuracies=np.concatenate([history.accuracies, [np.concatenate(accuracies)]]),
        batches=np.concatenate([history.batches, [np.concatenate(batches)]]),
        test_accuracy=np.append(history.test_accuracy, accuracy),
        test_loss=np.append(history.test_loss, test_loss),
        digests=np.concatenate([history.digests, [marks]]),
        predictions=predictions,
        cpu=history.cpu + cpu + more,
    )


def parts_of(pool: Pool, plan: Plan, loop: Loop, run: Run, data: DataSet, epoch: int) -> Iterator[Part]:
    """The samples of an epoch in their order: at once, or, of pictures, some whole batches at a time."""
    order = draws.order(pool, loop, run.order, epoch, len(data.train))
    rates = plan.rates(epoch, loop.steps(len(order)))
    size = max(1, AT_ONCE // plan.batch) * plan.batch if isinstance(data.train, Pictures) else len(order)
    for first in range(0, len(order), size):
        rows = order[first : first + size]
        x = augmented(data.train[rows], run.order, epoch * STARTS + first, plan.augment)
        steps = rates[first // plan.batch :][: loop.steps(len(rows))]
        yield Part(x, data.train_labels[rows], steps, *none_of(data.test, data.test_labels))


STARTS = 1 << 32
"""More than there are samples: each part of each epoch has an augmentation of its own."""


def none_of(samples: Samples, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """No samples, of the right shape."""
    return np.zeros((0, *samples.shape[1:]), np.float32), labels[:0]


def tested(pool: Pool, loop: Loop, state: Arrays, data: DataSet) -> tuple[np.ndarray, float, float]:
    """Classes of all test samples, their mean loss, and processor seconds. Raises LoopError, and what a pool raises."""
    count = len(data.test)
    size = AT_ONCE if isinstance(data.test, Pictures) else count
    guesses, total, cpu = [], 0.0, 0.0
    for first in range(0, count, size):
        rows = slice(first, first + size)
        x, labels = data.test[rows], data.test_labels[rows]
        done = train(pool, loop, state, Part(*none_of(data.train, data.train_labels), np.zeros(0), x, labels))
        guesses.append(done.found["predictions"])
        total, cpu = total + float(done.found["test_loss"]) * len(x), cpu + done.cpu
    return np.concatenate(guesses), total / count, cpu
