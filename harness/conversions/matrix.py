"""A model file in every format that conversions lead to."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.conversions import Edge
from harness.conversions.route import availability, onwards
from harness.formats import FORMATS
from harness.formats.opening import recognise, why_not
from harness.pool import Job, Pool
from oracles.outcome import Value


@dataclass(frozen=True)
class Converted:
    """A file of a format, and the edges that led to it from the one that was given (none: it is that one)."""

    path: Path
    edges: tuple[str, ...]


@dataclass(frozen=True)
class Refused:
    """A format that no way led to. reasons: what was said of each edge that was tried or is off, by its name, in the
    order in which they were."""

    reasons: Mapping[str, str]

    def __str__(self) -> str:
        return "; ".join(f"{edge}: {why}" for edge, why in self.reasons.items())


def program(edge: Edge, source: Path, target: Path, trust: bool = False) -> str:
    """The text of a standalone program whose `load({})` converts one file to the other."""
    return f"""import numpy as np

SOURCE, TARGET = {str(source.resolve())!r}, {str(target.resolve())!r}
TRUST = {trust!r}  # may code that the file carries be executed?
INPUTS, PARAMETERS = [], []

{edge.convert}

def load(parameters):
    convert(SOURCE, TARGET)
    return lambda: []
"""


def convert_all(pool: Pool, path: Path, folder: Path, trust: bool = False) -> dict[str, Converted | Refused]:
    """The file in every format that edges lead to, by the shortest way that works: where a converter refuses, the next
    one is tried. Files are written into `folder`, which has to be there. Raises FormatError where what is given is not
    a model."""
    begin = recognise(path, trust).name
    found: dict[str, Converted | Refused] = {begin: Converted(path, ())}
    queue = deque([begin])
    while queue:
        here = queue.popleft()
        before = found[here]
        assert isinstance(before, Converted)
        for edge in onwards(here):
            known = found.get(edge.target)
            if isinstance(known, Converted):
                continue
            target = folder / f"{path.stem}-{edge.target}{FORMATS[edge.target].suffix}"
            why = convert(pool, edge, before.path, target, trust)
            if why:
                found[edge.target] = Refused({**(known.reasons if known else {}), edge.name: why})
            else:
                found[edge.target] = Converted(target, (*before.edges, edge.name))
                queue.append(edge.target)
    return found


def convert(pool: Pool, edge: Edge, source: Path, target: Path, trust: bool = False) -> str | None:
    """Convert one file by one edge, in a worker of that edge; why it did not work, in one line, or None."""
    _, reason = availability(edge)
    if reason:
        return reason
    text = program(edge, source, target, trust)
    outcome = pool.run([Job(edge.name, edge.modules, text, {}, edge.environment)])[0]
    pool.fresh(edge.name, edge.environment)  # each has frameworks in memory that no other needs
    if isinstance(outcome, Value):
        return None if target.exists() else "it wrote nothing"
    return why_not(outcome)
