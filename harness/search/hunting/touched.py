"""Which operators a change of a framework's source touches, by the names of files, functions and identifiers in it."""

from __future__ import annotations

import builtins
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import islice
from pathlib import Path

from generators.ops import OPS, call_of
from generators.sweep import sweep

DIALECTS = ("torch", "tensorflow", "jax", "relax", "onnx")
LEAST = 3
"""Letters of a name that is looked for in names of files and functions."""
LONG = 5
"""Letters of one that is looked for in all that changed: shorter ones (`add`, `max`) are in every program."""
MOST = 8
"""Operators that a word of spellings may stand for: what more of them call (`constant`, `reshape`) names none."""
_MAKERS = frozenset({"constant", "const", "array", "asarray", "tensor"})
"""Functions that make a tensor of numbers."""
_FILE = re.compile(r"^(?:\+\+\+|---) [ab]/(.*)$")
_FUNCTION = re.compile(r"^@@[^@]*@@(.*)$")
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_TOKEN = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+d?")


class SourceError(ValueError):
    """A source whose changes cannot be had; the message says why."""


def diff_of(source: Path, since: str) -> str:
    """What changed since a revision, committed or not. Raises SourceError."""
    command = ["git", "-C", str(source), "diff", "--no-color", "--no-ext-diff", "--unified=0", since, "--"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    except OSError as error:
        raise SourceError(f"git cannot be run: {error.strerror}") from error
    if done.returncode:
        first = (done.stderr.strip().splitlines() or ["git diff failed"])[0]
        raise SourceError(f"{source}: the changes since {since} cannot be had: {first}")
    return done.stdout


def touched(diff: str) -> tuple[str, ...]:
    """Operators that a diff in git's format is about, in our order: named by a file or by the function that a change
    stands in, or, where the name is long enough, by anything that changed."""
    named, changed = set[str](), set[str]()
    for line in diff.splitlines():
        if found := _FILE.match(line):
            named |= set(_runs(Path(found[1]).stem))
        elif found := _FUNCTION.match(line):
            named |= {run for word in _WORD.findall(found[1]) for run in _runs(word)}
        elif line[:1] in "+-":
            changed |= {run for word in _WORD.findall(line) for run in _runs(word) if len(run) >= LONG}
    return tuple(name for name in OPS if any(word in named or word in changed for word in words()[name]))


@cache
def words() -> dict[str, frozenset[str]]:
    """The words by which dialects know each operator, its own name among them, in lower case without underlines."""
    called = {name: {_plain(word) for word in _spelled(name)} for name in OPS}
    counts = Counter(word for found in called.values() for word in found)
    return {
        name: frozenset(
            {_plain(name)} | {word for word in found if counts[word] <= MOST and len(word) >= LEAST} - _MAKERS
        )
        for name, found in called.items()
    }


def _spelled(operator: str) -> set[str]:
    """What the spellings of its first case call."""
    spec, found = OPS[operator], set[str]()
    case = next(iter(islice(sweep(operator, 1), 1)), None)
    places = [i for i, node in enumerate(case.graph.nodes) if node.op == operator] if case else []
    for dialect in DIALECTS:
        spelling = getattr(spec, dialect)
        text = spelling(call_of(case.graph, places[0])) if callable(spelling) and case and places else spelling
        found |= set(_called(text)) if isinstance(text, str) else set()
    return found


def _called(text: str) -> Iterator[str]:
    """Functions that a spelling calls, by their last name, and operators of ONNX, which are strings."""
    for name in re.findall(r"([A-Za-z_][\w.]*)\(", text):
        if not hasattr(builtins, name):
            yield name.rpartition(".")[2]
    yield from re.findall(r"[\"']([A-Z]\w+)[\"']", text)


def _runs(word: str) -> Iterator[str]:
    """All runs of the parts of a word: of UpSampleNearest up, upsample, upsamplenearest, sample, ..."""
    parts = [part.lower() for part in _TOKEN.findall(word)]
    for first in range(len(parts)):
        for last in range(first + 1, min(len(parts), first + 5) + 1):
            run = "".join(parts[first:last])
            if len(run) >= LEAST:
                yield run


def _plain(name: str) -> str:
    return name.replace("_", "").lower()
