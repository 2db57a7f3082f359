"""Which releases have to be asked to say since when something is wrong, and until when, and what is kept of it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from msgspec import Struct
from packaging.version import Version

from harness.execute.reading import read_json
from harness.findings.known.entry import told

FILE = "bisection.json"
"""Beside a finding."""
WRONG, RIGHT, UNKNOWN = "wrong", "right", "cannot say"
STEPS_WITHOUT_ANSWER = 3
"""Releases in a row that cannot say, after which those beyond are not asked: they lack what the program uses."""


@dataclass(frozen=True)
class Answer:
    """Of one release: WRONG, RIGHT or UNKNOWN, and what the program said, or why it could not be run. lasting: would it
    say the same another time? An installation that failed, or a program that was too slow, might not."""

    state: str
    told: str = ""
    lasting: bool = True


T = TypeVar("T")
Asks: TypeAlias = Generator[Version, Answer, T]
"""Yields each release that it wants to know of, and is sent the answer."""
State: TypeAlias = Callable[[Version], Asks[str]]
Ask: TypeAlias = Callable[[Version], Answer]


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
            "since": self.since.public if self.since else f"<={self.oldest.public}",
            "until": self.until.public if self.until else "",
            "newest": self.newest.public,
            "answers": {str(v): {"state": a.state, "told": a.told} for v, a in sorted(self.answers.items())},
        }


def bisect(package: str, here: Version, known: Sequence[Version], ask: Ask, every: bool = False) -> Bisection:
    """A search (`search`) whose releases are asked one after the other."""
    going = search(package, here, known, every)
    try:
        version = next(going)
        while True:
            version = going.send(ask(version))
    except StopIteration as end:
        return end.value


def search(package: str, here: Version, known: Sequence[Version], every: bool = False) -> Asks[Bisection]:
    """Asks the releases that it takes to say since when and until when, one change in each direction being assumed, or
    all of them, and then the changes next to `here`. The oldest is asked first, since most faults are as old as that.
    here: the version that is installed, which has to be wrong; known: releases in order. Raises ValueError where the
    version that is here is right, or cannot say."""
    found = Bisection(package, here)

    def state(version: Version) -> Asks[str]:
        if version not in found.answers:
            found.answers[version] = yield version
        return found.answers[version].state

    if (yield from state(here)) != WRONG:
        raise ValueError(f"{package} {here}, which is installed, does not show it: {found.answers[here].told}")
    others = [v for v in known if v.public != here.public]  # not another build of the same release
    older, newer = [v for v in reversed(others) if v < here], [v for v in others if v > here]
    for version in (*older, *newer) if every else ():
        yield from state(version)
    if newer:
        answering = yield from _first(list(reversed(newer))[:STEPS_WITHOUT_ANSWER], (WRONG, RIGHT), state)
        if answering and found.answers[answering].state == RIGHT:
            _, found.until = yield from _between(here, answering, newer, state)
        elif every:
            _, found.until = yield from _change(here, newer, state)
    right = (yield from _change(here, older, state))[1] if every else (yield from _right(here, older, state))
    if right:
        found.since, found.before = yield from _between(here, right, older, state)
    return found


def _first(versions: Sequence[Version], states: Collection[str], state: State) -> Asks[Version | None]:
    """The first that is in one of these states."""
    for version in versions:
        if (yield from state(version)) in states:
            return version
    return None


def _change(wrong: Version, versions: Sequence[Version], state: State) -> Asks[tuple[Version, Version | None]]:
    """The last wrong one before the first right one, and that."""
    for version in versions:
        found = yield from state(version)
        if found == RIGHT:
            return wrong, version
        wrong = version if found == WRONG else wrong
    return wrong, None


def _right(wrong: Version, versions: Sequence[Version], state: State) -> Asks[Version | None]:
    """One that is right, if the oldest is not wrong."""
    oldest = versions[-1] if versions else wrong
    found = yield from state(oldest)
    if found == UNKNOWN:
        return (yield from _gallop(wrong, versions, state))
    return oldest if found == RIGHT else None


def _gallop(wrong: Version, versions: Sequence[Version], state: State) -> Asks[Version | None]:
    """One that is right, looked for in growing steps; where those come to releases that cannot say, before these."""
    at, step = 0, 1
    while at < len(versions):
        found = yield from state(versions[at])
        if found == RIGHT:
            return versions[at]
        if found == UNKNOWN:
            beyond = versions[at + 1 : at + STEPS_WITHOUT_ANSWER]
            if (yield from _first(beyond, (WRONG, RIGHT), state)) is None:
                return (yield from _oldest(wrong, versions[:at], state))
        wrong = versions[at] if found == WRONG else wrong
        at = at + step if at + step < len(versions) or at == len(versions) - 1 else len(versions) - 1
        step *= 2
    return None


def _oldest(wrong: Version, versions: Sequence[Version], state: State) -> Asks[Version | None]:
    """One that is right among releases beyond which none can say; on the way the oldest that is wrong is met."""
    left = [version for version in versions if version < wrong]
    while left:
        middle = left[len(left) // 2]
        found = yield from state(middle)
        if found == RIGHT:
            return middle
        left = [v for v in left if (v < middle if found == WRONG else v > middle)]
    return None


def _between(
    wrong: Version, right: Version, versions: Sequence[Version], state: State
) -> Asks[tuple[Version, Version]]:
    """The neighbours of the change, wrong and right, those that cannot say apart."""
    while True:
        low, high = sorted((wrong, right))
        left = sorted(v for v in versions if low < v < high)
        middle = sorted(left, key=lambda version: abs(left.index(version) - len(left) // 2))
        version = yield from _first(middle, (WRONG, RIGHT), state)
        if version is None:
            return wrong, right
        if (yield from state(version)) == WRONG:
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
