"""Outcomes of programs in a folder, by all that they depend on, so that a long command goes on where it was ended."""

from __future__ import annotations

import hashlib
import io
import json
import struct
import sysconfig
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import Struct

from generators.schema import converted
from harness.conversions.admit import files_of
from harness.execute import environments
from harness.execute.pool import Job, Pool
from harness.execute.processes.worker import read_message, write_message
from oracles.judge.outcome import Crash, Outcome, Rejected, Timeout, Value

KINDS = {kind.__name__: kind for kind in (Value, Rejected, Crash, Timeout)}
LARGEST_FILE = 8 << 30
"""Bytes of a file beyond which its size and time stand for them: no model that is opened is larger."""
LARGEST = 256 << 20
"""Bytes of arrays beyond which an outcome is not kept: the values of all layers are made again."""


class Kept(Struct, frozen=True, forbid_unknown_fields=True):
    """The header of a kept outcome: its kind, its fields without arrays, and digests of files by path."""

    kind: str
    told: dict[str, Any]
    written: dict[str, str]


@dataclass
class CachingPool(Pool):
    """A pool that runs no program twice. What makes a program another one: its text, its arrays, the bytes of the files
    that it reads, the threads that it is given, and all that is installed where it runs. A file that it writes has to
    be there still, as it was; what took too long is tried again where it is given more time. folder: where outcomes
    are; hits, misses: how many were taken from there, and added; refresh: do not look, only add."""

    folder: Path = Path("kept")
    refresh: bool = False
    hits: int = 0
    misses: int = 0
    _digests: dict[tuple[Path, int, int], str] = field(default_factory=dict)

    def run(self, jobs: Iterable[Job], confirm: bool = True) -> list[Outcome]:
        """As the pool does, one after the other. Raises OSError where an outcome cannot be written, too."""
        outcomes = []
        for job in jobs:
            place = self.folder / self._key(job)
            outcome = None if self.refresh else self._read(place)
            if outcome is None:
                (outcome,) = super().run([job], confirm)
                self._write(place, job, outcome)
                self.misses += 1
            else:
                self.hits += 1
            outcomes.append(outcome)
        return outcomes

    def _key(self, job: Job) -> str:
        told = [
            job.framework,
            job.environment,
            job.modules,
            job.program,
            self.limits.threads,
            installed(job.environment),
        ]
        digest = hashlib.sha256(json.dumps([*told, [self._digest(path) for path in job.reads]]).encode())
        for name, array in job.arrays.items():
            digest.update(f"{name} {array.dtype} {array.shape}".encode())
            digest.update(array.tobytes())
        return digest.hexdigest()[:32]

    def _digest(self, path: Path) -> str:
        """Of a file with what its format keeps beside it, or of all files of a folder; empty where it is not there."""
        if path.is_dir():
            files = sorted(one for one in path.rglob("*") if one.is_file())
        else:
            files = [one for one in files_of(path) if one.is_file()]
        return hashlib.sha256("".join(map(self._bytes, files)).encode()).hexdigest() if files else ""

    def _bytes(self, path: Path) -> str:
        about = path.stat()
        key = path, about.st_mtime_ns, about.st_size
        if about.st_size > LARGEST_FILE:
            return f"{path.name} {about.st_size} {about.st_mtime_ns}\n"
        if key not in self._digests:
            with path.open("rb") as file:
                self._digests[key] = hashlib.file_digest(file, "sha256").hexdigest()
        return f"{path.name} {self._digests[key]}\n"

    def _read(self, place: Path) -> Outcome | None:
        """What is kept of a program; None where that is nothing, or nothing any more."""
        if not place.is_file() or place.stat().st_size > 2 * LARGEST:
            return None
        try:
            header, arrays = read_message(io.BytesIO(place.read_bytes()))  # which gives no more than there is
            kept = converted(header, Kept)
            kind = KINDS[kept.kind]
            outcome = converted({**kept.told, "outputs": ()} if kind is Value else kept.told, kind)
        except (EOFError, LookupError, TypeError, ValueError, ArithmeticError, RecursionError, struct.error):
            return None  # cut short, or another thing
        if any(self._digest(Path(path)) != digest for path, digest in kept.written.items()):
            return None
        if isinstance(outcome, Value):
            outcome = replace(outcome, outputs=tuple(arrays.values()))
        return None if isinstance(outcome, Timeout) and outcome.seconds < self.limits.seconds else outcome

    def _write(self, place: Path, job: Job, outcome: Outcome) -> None:
        arrays = {str(i): array for i, array in enumerate(outcome.outputs)} if isinstance(outcome, Value) else {}
        if type(outcome).__name__ not in KINDS or sum(array.nbytes for array in arrays.values()) > LARGEST:
            return
        told = {"cpu": outcome.cpu} if isinstance(outcome, Value) else asdict(outcome)
        written = {str(path): self._digest(path) for path in job.writes if path.exists()}
        self.folder.mkdir(parents=True, exist_ok=True)
        scratch = place.with_name(f"{place.name}.tmp")
        with scratch.open("wb") as file:
            write_message(file, {"kind": type(outcome).__name__, "told": told, "written": written}, arrays)
        scratch.replace(place)


@cache
def installed(environment: str = "") -> str:
    """A digest of the names and versions of all distributions where programs of an environment run."""
    if environment:
        folders = list(environments.named(environment).folder.glob("lib/python*/site-packages"))
    else:
        folders = [Path(sysconfig.get_paths()[kind]) for kind in ("purelib", "platlib")]
    names = sorted({one.name for folder in folders for one in folder.glob("*.dist-info")})
    return hashlib.sha256("\n".join(names).encode()).hexdigest()
