"""Whole transformers in other company: does a row's result depend on its batch, on padding behind it, on chunks of the
sequence, on a cache of keys and values?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from harness.backends import Target
from harness.execute.pool import Job, Pool
from harness.studies.invariance.examine import EQUAL, NONE, SEQUENCES, VARIATIONS, VARIES, Cell, state_of, told, worst
from harness.studies.invariance.network import LAYERS, NETWORK, WORDS, Made, parameters, past, transformer
from oracles.determinism import Moment, compare, same
from oracles.judge.outcome import Value

TIMES, BATCH, CHUNK = 16, 8, 8
SIZES = (1, 2, 3, 4)
TURNED = 3
Results = dict[str, np.ndarray]
"""By name: `logits`, and keys and values as the graph calls those of earlier tokens; where all are asked for, those on
the way in front."""


class RunError(RuntimeError):
    """A target that does not run a network; the message says why in a line."""


@dataclass(frozen=True)
class Runs:
    """A network on a target. every: with all results on the way as outputs."""

    pool: Pool
    target: Target
    style: str
    seed: int
    every: bool = False

    @cached_property
    def given(self) -> dict[str, np.ndarray]:
        """Its parameters."""
        return parameters(self.style, self.seed)

    def made(self, batch: int, times: int, before: int = 0) -> Made:
        """Its graph."""
        return transformer(self.style, self.given, batch, times, before)

    def next(self, tokens: np.ndarray, before: Mapping[str, np.ndarray] | None = None) -> Results:
        """What comes of tokens (batch, times), with keys and values of earlier ones. Raises RunError."""
        count = next(iter(before.values())).shape[2] if before else 0
        made = self.made(len(tokens), tokens.shape[1], count)
        graph = made.whole if self.every else made.graph
        if why := self.target.unsupported(graph):
            raise RunError(why)
        arrays = {**made.arrays, "tokens": tokens, **(before or {})}
        text = self.target.program(graph)
        job = Job(self.target.framework, self.target.modules, text, arrays, self.target.environment)
        (outcome,) = self.pool.run([job])
        if not isinstance(outcome, Value):
            raise RunError(told(outcome))
        names = (*(made.shown if self.every else ()), "logits", *kept())
        return dict(zip(names, outcome.outputs, strict=True))

    def in_parts(self, tokens: np.ndarray, sizes: tuple[int, ...]) -> Results:
        """So many tokens at a time, each with keys and values of those before: all results, one after another."""
        parts: list[Results] = []
        start = 0
        for size in sizes:
            before = {name: parts[-1][name] for name in kept()} if parts else None
            parts.append(self.next(tokens[:, start : start + size], before))
            start += size
        last = parts[-1]
        return {k: last[k] if k in kept() else np.concatenate([part[k] for part in parts], 1) for k in last}


def kept() -> tuple[str, ...]:
    """Names of keys and values of all layers, in order."""
    return tuple(name for layer in range(LAYERS) for name in past(layer))


def examine(one: Pool, two: Pool, target: Target, style: str, seed: int) -> list[Cell]:
    """All variations. A result is judged as it is returned without those on the way, which would keep compilers from
    fusing; where it varies, the network runs again with them, and the first that does is named. one, two: pools whose
    processes have one thread and two."""
    name, runs = f"{NETWORK}{style}", Runs(one, target, style, seed)
    tokens = _tokens(seed)[0]
    try:
        base = runs.next(tokens)
    except RunError as error:
        return [Cell(name, target.name, kind, NONE, why=str(error)) for kind in (*VARIATIONS, *SEQUENCES)]
    sizes, cells = {}, []
    for size in SIZES:
        try:
            sizes[size] = _state(base["logits"][:size], runs.next(tokens[:size])["logits"])
        except RunError as error:
            cells.append(Cell(name, target.name, "size", NONE, sizes=(size,), why=str(error)))
    if sizes:
        cell = worst(name, target.name, sizes)
        cells.append(cell if cell.state == EQUAL else _where(cell, runs, f"size {cell.sizes[0]}"))
    for kind in (*list(VARIATIONS)[1:], *SEQUENCES):
        own = Runs(two, target, style, seed) if kind == "threads" else runs
        try:
            got, rows = varied(own, kind)
        except RunError as error:
            cells.append(Cell(name, target.name, kind, NONE, why=str(error)))
            continue
        cell = Cell(name, target.name, kind, *_state(base["logits"][rows], got["logits"]))
        cells.append(cell if cell.state == EQUAL else _where(cell, own, kind))
    return cells


def varied(runs: Runs, kind: str) -> tuple[Results, np.ndarray]:
    """The results of a variation that are compared, and which rows of the whole batch they are of. Raises RunError."""
    tokens, others = _tokens(runs.seed)
    every, half = np.arange(BATCH), np.arange(BATCH // 2)
    if kind.startswith("size "):
        size = int(kind.split()[1])
        return runs.next(tokens[:size]), every[:size]
    match kind:
        case "position":
            return runs.next(np.roll(tokens, TURNED, 0)), np.roll(every, TURNED)
        case "neighbours":
            found = runs.next(np.concatenate([tokens[: len(half)], others[len(half) :]]))
            return {name: value[half] for name, value in found.items()}, half
        case "padding":
            found = runs.next(np.concatenate([tokens, others[:, :CHUNK]], 1))
            return {n: value[:, :, :TIMES] if n in kept() else value[:, :TIMES] for n, value in found.items()}, every
        case "chunks":
            return runs.in_parts(tokens, (CHUNK,) * (TIMES // CHUNK)), every
        case "cache":
            return runs.in_parts(tokens, (CHUNK, *(1,) * (TIMES - CHUNK))), every
        case _:
            return runs.next(tokens), every


def _state(base: np.ndarray, other: np.ndarray) -> tuple[str, float]:
    """Whether they are the same, and the greatest distance in ulps."""
    state, far = state_of(base, other, np.zeros(()))
    return (EQUAL if state == EQUAL else VARIES), far


def _tokens(seed: int) -> np.ndarray:
    """Those of the whole batch, and others: (2, batch, times), int64."""
    return np.random.default_rng(seed + 1).integers(0, WORDS, (2, BATCH, TIMES))


def _where(cell: Cell, runs: Runs, kind: str) -> Cell:
    """The cell with the first result that varies."""
    every = Runs(runs.pool, runs.target, runs.style, runs.seed, every=True)
    alone = Runs(runs.pool, runs.target, runs.style, runs.seed)
    tokens = _tokens(runs.seed)[0]
    try:
        whole, (got, rows) = every.next(tokens), varied(every, kind)
        logits, (other, _) = alone.next(tokens)["logits"][rows], varied(alone, kind)
    except RunError as error:
        return _with(cell, f"not found where: {error}")
    moved = 100 * np.mean(logits.argmax(-1) != other["logits"].argmax(-1))
    for place, value in got.items():
        if place not in kept() and not same(value, whole[place][rows]):
            first = compare(1, Moment(kind), place, whole[place][rows], value)
            assert first is not None
            return _with(cell, f"first at {place}, {first.largest:g} ulps; next tokens that differ: {moved:.3g} %")
    return _with(cell, f"not where results on the way are returned, too; next tokens that differ: {moved:.3g} %")


def _with(cell: Cell, why: str) -> Cell:
    return Cell(cell.operator, cell.target, cell.variation, cell.state, cell.largest, cell.sizes, why)
