"""Nondeterminism that is planted into a small training program is found and named at the right place, every time; the
program without it is never reported."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import time
from functools import cache

import numpy as np
import pytest

from oracles.determinism import SAME, Moment, Trace, judge

RUNS = 10
FAULTS = {
    "shuffle": (Moment("batch", 0, 0), "x"),
    "initialiser": (Moment("initial"), "parameter.l1.weight"),
    "race": (Moment("results", 1, 2), "result.l1.sum"),
    "dropout": (Moment("results", 0, 0), "result.l0.mask"),
    "hash order": (Moment("batch", 0, 0), "names"),
}
"""Where each shows first: moment and array."""
_NAMES = "print(','.join(sorted_or_not({f'sample{i}' for i in range(64)})))"


def accumulated(parts: np.ndarray, racing: bool) -> np.ndarray:
    """The sum after each addition; where it races, two threads add as they come."""
    total, lock = [np.float32(0)], threading.Lock()

    def add(mine: np.ndarray) -> None:
        for value in mine:
            if racing:
                time.sleep(random.SystemRandom().random() * 1e-6)
            with lock:
                total.append(total[-1] + value)

    if racing:
        workers = [threading.Thread(target=add, args=(mine,)) for mine in (parts[::2], parts[1::2])]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    else:
        add(parts)
    return np.array(total)


def hash_order(planted: bool) -> np.ndarray:
    """The order in which another process goes through a set of 64 names."""
    text = _NAMES.replace("sorted_or_not", "list" if planted else "sorted")
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONHASHSEED"}
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True, env=variables)
    return np.array([int(name.removeprefix("sample")) for name in done.stdout.strip().split(",")])


@cache
def usual_order() -> np.ndarray:
    """What the program without the fault goes through; one process is enough."""
    return hash_order(planted=False)


def training(fault: str) -> Trace:
    """Two dense layers with dropout between them, two epochs of four steps, on 64 samples."""
    rng = np.random.default_rng(0)
    data = rng.normal(size=(64, 8)).astype(np.float32)
    first = rng.normal(size=(8, 16)).astype(np.float32)
    second = (np.random.default_rng() if fault == "initialiser" else rng).normal(size=(16, 1)).astype(np.float32)
    terms = rng.normal(size=500).astype(np.float32)
    names = hash_order(planted=True) if fault == "hash order" else usual_order()
    found: list[tuple[Moment, dict[str, np.ndarray]]] = [
        (Moment("initial"), {"parameter.l0.weight": first.copy(), "parameter.l1.weight": second.copy()})
    ]
    for epoch in range(2):
        order = (np.random.default_rng() if fault == "shuffle" else rng).permutation(64)
        for step in range(4):
            rows = order[step * 16 : step * 16 + 16]
            x = data[rows]
            found.append((Moment("batch", epoch, step), {"x": x, "names": names[rows]}))
            seed = time.time_ns() if fault == "dropout" else 100 * epoch + step
            mask = (np.random.default_rng(seed).random((16, 16)) < 0.8).astype(np.float32)
            hidden = np.maximum(x @ first, 0) * mask
            racing = fault == "race" and (epoch, step) >= (1, 2)
            total = accumulated(terms, racing)
            out = hidden @ second + total[-1]
            results = {"result.l0.mask": mask, "result.l0.value": hidden, "result.l1.sum": total}
            found.append((Moment("results", epoch, step), {**results, "result.l1.value": out}))
            second = second - np.float32(1e-3) * (hidden.T @ out)
            found.append((Moment("state", epoch, step), {"parameter.l1.weight": second.copy()}))
    return found


@pytest.mark.parametrize("fault", FAULTS)
def test_it_is_found_in_every_run(fault: str) -> None:
    judged = judge([training(fault) for _ in range(RUNS + 1)], promised=True)
    places = [(one.moment, one.array) for one in judged.differences]
    assert places == [FAULTS[fault]] * RUNS
    assert [one.run for one in judged.differences] == list(range(1, RUNS + 1))
    assert all(one.ulps > 0 and one.element for one in judged.differences)


def test_a_deterministic_run_is_never_reported() -> None:
    judged = judge([training("") for _ in range(RUNS + 1)], promised=True)
    assert judged.verdict == SAME
    assert judged.differences == ()
