"""What sweeps call, and what registries list: measured in workers, and kept in the findings folder for as long as
versions, records and this code are the same."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TypeVar

from msgspec import Struct, to_builtins

from generators.ops import OPS
from generators.schema import converted, parsed
from generators.sweep import graphs
from harness.backends import TARGETS, Target
from harness.execute.files import replace_text
from harness.execute.pool import HarnessError, Job, Pool
from harness.execute.processes.worker import versions_of
from harness.execute.reading import FileError, read_json
from harness.studies.surface.cell import Listed, Observation
from harness.studies.surface.registry import Registry, Tracer, helper
from oracles.judge.outcome import Outcome, Unsupported, Value

T = TypeVar("T")
ROOT = Path(__file__).parents[3]
DRAWN = ("generators", "harness/dialects", "harness/backends")
"""Folders that decide what the programs of a sweep are."""
FOLDER = "surface"
"""Of the findings folder."""
CHUNK = 20
"""Operators that are traced before what was met is kept."""

Progress = Callable[[str, int, int], None]
"""Name of a tracer, operators done, operators in all."""


class Missing(HarnessError):
    """A framework that is not here; the message says so in one line."""


class Traced(Struct, frozen=True):
    """Of one of our operators: a digest of its programs, how many these are, what they call (an operator and its
    features), and how many could not be traced, by reason."""

    programs: str
    count: int
    observed: list[list[str]]
    failed: dict[str, int]


class Told(Struct, frozen=True):
    """What a worker answers."""

    observed: list[list[str]]
    accepted: dict[str, list[str]]
    failed: dict[str, int]


class Kept(Struct):
    """A file. key: it holds as it is where this is the same; tracer: each operator holds where its programs and this
    are the same; operators: by ours; accepted: by the framework's, what its own rules take."""

    key: str = ""
    tracer: str = ""
    operators: dict[str, Traced] = {}
    accepted: dict[str, list[str]] = {}


class KeptList(Struct):
    """A file: what it is of, and the registry's list."""

    key: str
    listed: dict[str, list[str]]


@dataclass(frozen=True)
class Calls:
    """Of a whole tracer. accepted: what the framework's own rules take of operators that were met; failed: programs
    that could not be traced, by reason."""

    observations: list[Observation] = field(default_factory=list)
    accepted: Listed = field(default_factory=dict)
    programs: int = 0
    failed: Mapping[str, int] = field(default_factory=dict)


def digest(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:24]


@cache
def sources() -> str:
    """A digest of all files that decide what is drawn and printed."""
    files = sorted(path for folder in DRAWN for path in (ROOT / folder).rglob("*") if path.suffix in (".py", ".json"))
    return digest(*[hashlib.sha256(path.read_bytes()).digest() for path in files])


def program_text(names: Sequence[str], programs: Sequence[str] | None, tried: Iterable[str] = ()) -> str:
    """A program for a worker: parts of helpers/, the programs that they trace, and the framework's operators of which
    it is known what they accept."""
    traced = None if programs is None else list(programs)
    head = f"INPUTS, PARAMETERS = [], []\nPROGRAMS = {traced!r}\nTRIED = {{*{sorted(tried)!r}}}\n"
    return head + helper(("tracing", *names))


def listed(pool: Pool, registry: Registry, findings: Path) -> Listed:
    """What a registry lists. Raises Missing and HarnessError."""
    text = program_text(registry.listing, None)
    key, path = digest(text, versions_of(list(registry.packages))), findings / FOLDER / f"list-{registry.name}.json"
    if (kept := _read(path, KeptList)) and kept.key == key:
        return kept.listed
    (outcome,) = pool.run([Job(f"surface-list-{registry.name}", registry.modules, text, {})], confirm=False)
    pool.restart_worker(f"surface-list-{registry.name}")
    found = converted(_answer(outcome, registry.name), dict[str, list[str]])
    _write(path, {"key": key, "listed": found})
    return found


def calls(pool: Pool, tracer: Tracer, findings: Path, most: int, progress: Progress) -> Calls:
    """What the sweeps of all our operators call, at most about so many cases of each. Raises Missing and
    HarnessError."""
    path = findings / FOLDER / f"calls-{tracer.name}.json"
    kept = _read(path, Kept) or Kept()
    measured = digest(program_text((*tracer.helpers, tracer.name), None), versions_of(list(tracer.packages)))
    key = digest(measured, sources(), most)
    if kept.key != key:
        if kept.tracer != measured:
            kept = Kept(tracer=measured)
        kept.key = ""
        kept.operators = {name: one for name, one in kept.operators.items() if name in OPS}
        names = list(OPS)
        for start in range(0, len(names), CHUNK):
            _trace(pool, tracer, names[start : start + CHUNK], most, kept)
            if start + CHUNK >= len(names):
                kept.key = key
            _write(path, to_builtins(kept))
            progress(tracer.name, min(start + CHUNK, len(names)), len(names))
    return _joined(kept)


def programs_of(target: Target, operator: str, most: int, needs: str = "") -> list[str]:
    """Of the first so many distinct graphs of an operator's sweep the programs that the target runs."""
    return [
        target.text(graph, f"# with {needs}", {}, [graph.types[name] for name in graph.outputs])
        for graph in graphs(operator, most)
        if target.unsupported(graph) is None
    ]


def _trace(pool: Pool, tracer: Tracer, names: Sequence[str], most: int, kept: Kept) -> None:
    """Bring what was kept of these operators of ours up to date."""
    target, count = TARGETS[tracer.target], max(2, most // tracer.every)
    texts = {name: programs_of(target, name, count, tracer.needs) for name in names}
    stale = {}
    for name, programs in texts.items():
        known = kept.operators.get(name)
        if known is None or known.programs != digest(*programs):
            stale[name] = digest(*programs)
            kept.operators[name] = Traced(stale[name], len(programs), [], {})
    asked = [name for name in stale if texts[name]]
    worker, parts = f"surface-{tracer.name}", (*tracer.helpers, tracer.name)
    jobs = [Job(worker, tracer.modules, program_text(parts, texts[name], kept.accepted), {}) for name in asked]
    for name, outcome in zip(asked, pool.run(jobs, confirm=False), strict=True):
        programs = len(texts[name])
        if isinstance(outcome, Value | Unsupported):
            told = converted(_answer(outcome, tracer.name), Told)
            kept.operators[name] = Traced(stale[name], programs, told.observed, told.failed)
            for operator, features in told.accepted.items():
                kept.accepted[operator] = sorted({*features, *kept.accepted.get(operator, ())})
        else:  # a crash ends a whole sweep: it is shown, and tried again the next time
            kept.operators[name] = Traced("", programs, [], {f"{name}: {type(outcome).__name__}"[:200]: programs})


def _joined(kept: Kept) -> Calls:
    sources_of: dict[tuple[str, ...], set[str]] = {}
    failed: dict[str, int] = {}
    for name, one in kept.operators.items():
        for line in one.observed:
            sources_of.setdefault(tuple(line), set()).add(name)
        for why, count in one.failed.items():
            failed[why] = failed.get(why, 0) + count
    found = [
        Observation(operator, frozenset(features), frozenset(names))
        for (operator, *features), names in sources_of.items()
    ]
    return Calls(found, kept.accepted, sum(one.count for one in kept.operators.values()), failed)


def _answer(outcome: Outcome, name: str) -> dict:
    if isinstance(outcome, Unsupported):
        raise Missing(f"{name}: {outcome.why}")
    if not isinstance(outcome, Value):
        raise HarnessError(f"{name}: {outcome}")
    return converted(parsed(outcome.outputs[0].tobytes().decode()), dict)


def _read(path: Path, kind: type[T]) -> T | None:
    """What was kept, or None where there is nothing of use."""
    try:
        return read_json(path, kind) if path.exists() else None
    except FileError:
        return None  # written by another version: measured anew


def _write(path: Path, data: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_text(path, json.dumps(data))
