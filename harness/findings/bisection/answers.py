"""What releases answered, kept from run to run: a file beside their environments, one line an answer."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from msgspec import Struct

from generators.schema import converted, parsed
from harness.execute import environments
from harness.execute.reading import FileError, read_text
from harness.findings.bisection.search import RIGHT, UNKNOWN, WRONG, Answer
from harness.findings.written import ARRAYS

NAME = "answers.jsonl"


class Line(Struct, frozen=True, forbid_unknown_fields=True):
    """program: a digest of it and its data; asked: the release and what stands beside it, as the name of the first
    environment that it is asked in says."""

    program: str
    asked: str
    state: str
    told: str


class Answers:
    """Of programs by (program, asked). Only those that last are written."""

    def __init__(self, path: Path) -> None:
        """Raises FileError where the file is no such file."""
        self.path = path
        self._known = {(line.program, line.asked): Answer(line.state, line.told) for line in _read(path)}

    def get(self, program: str, asked: str) -> Answer | None:
        """What is known already."""
        return self._known.get((program, asked))

    def add(self, program: str, asked: str, answer: Answer) -> None:
        """Written at once, so that what ends the command loses nothing. Raises OSError."""
        if not answer.lasting:
            return
        self._known[program, asked] = answer
        self.path.parent.mkdir(parents=True, exist_ok=True)
        line = {"program": program, "asked": asked, "state": answer.state, "told": answer.told}
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def file() -> Path:
    """Where they are kept."""
    return environments.home() / "releases" / NAME


def digest(path: Path) -> str:
    """Of a program, and of the arrays beside it. Raises FileError."""
    found = hashlib.sha256(read_text(path).encode())
    data = path.with_name(ARRAYS)
    if data.is_file():
        found.update(data.read_bytes())
    return found.hexdigest()[:16]


def _read(path: Path) -> list[Line]:
    found: list[Line] = []
    lines = read_text(path).splitlines() if path.exists() else []
    for number, text in enumerate(lines, 1):
        try:
            found.append(converted(parsed(text), Line))
            if found[-1].state not in (WRONG, RIGHT, UNKNOWN):
                raise ValueError(f"unknown state {found[-1].state!r}")
        except ValueError as error:
            raise FileError(f"{path}: line {number}: {error}; remove the line, or the file") from error
    return found
