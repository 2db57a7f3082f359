"""Which release broke it, and which mended it: a reproducer is run with released versions of a package."""

from __future__ import annotations

import ast
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from msgspec import Struct
from packaging.version import Version

from harness.execute import releases
from harness.execute.environments import Environment, EnvironmentsError, build
from harness.execute.isolation.signals import ends_with_parent
from harness.execute.pool import environment
from harness.execute.reading import FileError, read_json, read_text
from harness.findings.known.entry import told

FILE = "bisection.json"
"""Beside a finding."""
WRONG, RIGHT, UNKNOWN = "wrong", "right", "cannot say"
STEPS_WITHOUT_ANSWER = 3
"""Releases in a row that cannot say, after which those beyond are not asked: they lack what the program uses."""


@dataclass(frozen=True)
class Answer:
    """Of one release: WRONG, RIGHT or UNKNOWN, and what the program said, or why it could not be run."""

    state: str
    told: str = ""


Ask = Callable[[Version], Answer]


@dataclass
class Bisection:
    """answers: of those releases that were asked. since: the first that is wrong, where one before it is right, that is
    `before`; until: the first that is right again."""

    package: str
    here: Version
    answers: dict[Version, Answer] = field(default_factory=dict)
    since: Version | None = None
    before: Version | None = None
    until: Version | None = None

    @property
    def oldest(self) -> Version:
        """The oldest release that is wrong."""
        return min(version for version, answer in self.answers.items() if answer.state == WRONG)

    @property
    def newest(self) -> Version:
        """The newest release that says anything."""
        return max(version for version, answer in self.answers.items() if answer.state != UNKNOWN)

    @property
    def line(self) -> str:
        """For people."""
        keys = self.to_json()
        right = f"right in {self.before}, " if self.before else ""
        return f"{self.package}: {right}{told(keys['since'], keys['until'], keys['newest'])}"

    def to_json(self) -> dict[str, Any]:
        """For a file."""
        return {
            "package": self.package,
            "here": str(self.here),
            "since": str(self.since) if self.since else f"<={self.oldest}",
            "until": str(self.until) if self.until else "",
            "newest": str(self.newest),
            "answers": {str(v): {"state": a.state, "told": a.told} for v, a in sorted(self.answers.items())},
        }


def bisect(package: str, here: Version, known: Sequence[Version], ask: Ask, every: bool = False) -> Bisection:
    """Ask the releases that it takes to say since when and until when, one change in each direction being assumed, or
    all of them, and then the changes next to `here`. The oldest is asked first, since most faults are as old as that.
    here: the version that is installed, which has to be wrong; known: releases in order. Raises ValueError where the
    version that is here is right, or cannot say."""
    found = Bisection(package, here)

    def state(version: Version) -> str:
        if version not in found.answers:
            found.answers[version] = ask(version)
        return found.answers[version].state

    if state(here) != WRONG:
        raise ValueError(f"{package} {here}, which is installed, does not show it: {found.answers[here].told}")
    others = [v for v in known if v.public != here.public]  # not another build of the same release
    older, newer = [v for v in reversed(others) if v < here], [v for v in others if v > here]
    for version in (*older, *newer) if every else ():
        state(version)
    if newer:
        answering = next((v for v in list(reversed(newer))[:STEPS_WITHOUT_ANSWER] if state(v) != UNKNOWN), None)
        if answering and state(answering) == RIGHT:
            _, found.until = _between(here, answering, newer, state)
        elif every:
            _, found.until = _first(here, newer, state)
    right = _first(here, older, state)[1] if every else _right(here, older, state)
    if right:
        found.since, found.before = _between(here, right, older, state)
    return found


def _first(wrong: Version, versions: Sequence[Version], state: Callable[[Version], str]):
    """The last wrong one before the first right one, and that."""
    for version in versions:
        if state(version) == RIGHT:
            return wrong, version
        wrong = version if state(version) == WRONG else wrong
    return wrong, None


def _right(wrong: Version, versions: Sequence[Version], state: Callable[[Version], str]) -> Version | None:
    """One that is right, if the oldest is not wrong."""
    oldest = versions[-1] if versions else wrong
    found = state(oldest)
    if found == UNKNOWN:
        return _gallop(wrong, versions, state)
    return oldest if found == RIGHT else None


def _gallop(wrong: Version, versions: Sequence[Version], state: Callable[[Version], str]) -> Version | None:
    """One that is right, looked for in growing steps; where those come to releases that cannot say, before these."""
    at, step = 0, 1
    while at < len(versions):
        found = state(versions[at])
        if found == RIGHT:
            return versions[at]
        if found == UNKNOWN and all(state(v) == UNKNOWN for v in versions[at + 1 : at + STEPS_WITHOUT_ANSWER]):
            return _oldest(wrong, versions[:at], state)
        wrong = versions[at] if found == WRONG else wrong
        at = at + step if at + step < len(versions) or at == len(versions) - 1 else len(versions) - 1
        step *= 2
    return None


def _oldest(wrong: Version, versions: Sequence[Version], state: Callable[[Version], str]) -> Version | None:
    """One that is right among releases beyond which none can say; on the way the oldest that is wrong is met."""
    left = [version for version in versions if version < wrong]
    while left:
        middle = left[len(left) // 2]
        found = state(middle)
        if found == RIGHT:
            return middle
        left = [v for v in left if (v < middle if found == WRONG else v > middle)]
    return None


def _between(
    wrong: Version, right: Version, versions: Sequence[Version], state: Callable[[Version], str]
) -> tuple[Version, Version]:
    """The neighbours of the change, wrong and right, those that cannot say apart."""
    while True:
        low, high = sorted((wrong, right))
        left = sorted(v for v in versions if low < v < high)
        middle = sorted(left, key=lambda version: abs(left.index(version) - len(left) // 2))
        for version in middle:
            if state(version) != UNKNOWN:
                break
        else:
            return wrong, right
        if state(version) == WRONG:
            wrong = version
        else:
            right = version


def of(folder: Path) -> str:
    """Which releases are wrong, for people, as it was kept beside a finding; empty where it was not. Raises
    FileError."""
    path = folder / FILE
    if not path.exists():
        return ""
    kept = read_json(path, Kept)
    return f"{kept.package}: {told(kept.since, kept.until, kept.newest)}"


class Kept(Struct, frozen=True):
    """What is read of it."""

    package: str
    since: str
    until: str
    newest: str


def modules_of(path: Path) -> set[str]:
    """What a reproducer imports, or looks for, at the top of its names. Raises FileError."""
    try:
        tree = ast.parse(read_text(path))
    except (SyntaxError, ValueError, RecursionError) as error:
        raise FileError(f"{path}: {error}") from error
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                found |= {alias.name.partition(".")[0] for alias in names}
            case ast.ImportFrom(module=str(name), level=0):
                found.add(name.partition(".")[0])
            case ast.For(target=ast.Name(id="module"), iter=ast.List(elts=items)):
                found |= {str(item.value).partition(".")[0] for item in items if isinstance(item, ast.Constant)}
    return found


def run(path: Path, python: str, seconds: float, threads: int = 1) -> Answer:
    """What a reproducer says with an interpreter."""
    with TemporaryDirectory() as folder:
        try:
            done = subprocess.run(
                [python, str(path)], capture_output=True, text=True, timeout=seconds, cwd=folder, check=False,
                env=environment(Path(folder), threads), errors="replace", preexec_fn=ends_with_parent(signal.SIGKILL),
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return Answer(UNKNOWN, f"nothing within {seconds:g} s")
    lines = [line for line in done.stdout.splitlines() if line.strip()]
    told = [line for line in lines if line.startswith(("reproduced", "the process ended"))]
    if done.returncode == 0:
        return Answer(RIGHT, (lines or [""])[-1])
    if done.returncode == 1 and told:
        return Answer(WRONG, told[-1])
    last = (lines if done.returncode == 77 else done.stderr.strip().splitlines()) or [""]
    return Answer(UNKNOWN, last[-1].strip() or f"exit status {done.returncode}")


def alike(answer: Answer, first: Answer) -> Answer:
    """An answer beside that of the version that is here: a rejection in other words, or an end of another kind, is
    another fault, or something that the release does not know yet."""
    if answer.state != WRONG or _kind(answer.told) == _kind(first.told):
        return answer
    return Answer(UNKNOWN, f"fails otherwise: {answer.told}")


def _kind(told: str) -> str:
    """What is wrong, without places and numbers; signals are all alike."""
    if told.startswith("the process ended"):
        return "signal" if "-" in told else told
    named = re.sub(r"'[^']*'|\"[^\"]*\"|\d[\w.]*", " ", told)
    return " ".join(re.findall(r"\w+", named))


def asking(
    path: Path, package: str, here: Version, beside: Mapping[str, str], seconds: float, threads: int,
    tell: Callable[[str], None],
) -> Ask:  # fmt: skip
    """Asks a reproducer with releases of a package; environments are built on demand and stay. beside: what else it
    needs, in the versions that are here; tell: takes a line for each that is built."""
    first = run(path, sys.executable, seconds, threads)

    def ask(version: Version) -> Answer:
        if version == here:
            return first
        said = Answer(UNKNOWN, "no environment")
        for asked in releases.environments_of(package, version, beside):
            if not asked.stamp.exists():
                tell(f"environment for {' '.join(asked.packages)}")
            why = _failure(asked)
            if why:
                said = Answer(UNKNOWN, why)
                continue
            said = alike(run(path, str(asked.interpreter), seconds, threads), first)
            if said.state != UNKNOWN or not _UNLOADED.search(said.told):
                break
        return said

    return ask


_UNLOADED = re.compile(r"ImportError|ModuleNotFoundError|numpy", re.IGNORECASE)
"""What a release says that does not go with the packages beside it."""


@cache
def _failure(asked: Environment) -> str:
    """Build an environment. Why it cannot be, which is found out once; empty where it is there."""
    try:
        build(asked)
    except EnvironmentsError as error:
        return str(error)
    return ""
