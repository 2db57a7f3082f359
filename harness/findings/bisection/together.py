"""Many searches side by side, release by release: an environment of several GB is made once, serves all that wait for
it, and need not stay."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from packaging.version import Version

from harness.execute import environments
from harness.execute.environments import Environment
from harness.execute.reading import FileError
from harness.findings.bisection.search import Answer, Asks, Bisection


class Asked(Protocol):
    """What is asked with releases (`programs.Program`)."""

    def places(self, version: Version) -> tuple[Environment, ...]:
        """The environments that a release may be asked in; those with the same are asked together."""
        ...

    def known(self, version: Version) -> Answer | None:
        """What can be said without them."""
        ...

    def ask(self, version: Version) -> Answer:
        """Raises FileError and OSError."""
        ...

    def check(self, found: Bisection) -> None:
        """Raises ValueError where it cannot stand."""
        ...


@dataclass(eq=False)
class Search:
    """name: of what is asked; going: the search."""

    name: str
    asked: Asked
    going: Asks[Bisection]


Ended = tuple[Search, Bisection | ValueError]
"""A search, and what it came to, or why it came to nothing."""


def together(
    searches: Sequence[Search], drop: bool = False, tell: Callable[[str], None] = lambda line: None
) -> Iterator[Ended]:
    """Each search as soon as it has ended. The release that most of them wait for is asked next, one whose environment
    is there before others. drop: remove an environment that was made for them once none waits for it, or at the end;
    tell: takes a line for each release. Raises OSError."""
    waiting: dict[Search, Version] = {}
    made: dict[Environment, bool] = {}
    """Of those that were met: was it missing then?"""
    try:
        for search in searches:
            yield from _advance(search, None, waiting)
        while waiting:
            places, some = _next(waiting)
            if drop:
                _remove(made, {place for one, version in waiting.items() for place in one.asked.places(version)})
            made |= {place: not place.stamp.exists() for place in places if place not in made}
            tell(f"{places[0].name if places else 'what is installed'}: {len(some)} of {len(waiting)} wait for it")
            for search in some:
                version = waiting.pop(search)
                try:
                    yield from _advance(search, search.asked.ask(version), waiting)
                except FileError as error:
                    yield search, error
    finally:
        if drop:
            _remove(made, set())


def _advance(search: Search, answer: Answer | None, waiting: dict[Search, Version]) -> Iterator[Ended]:
    """Go on to the next release that has to be run, or to the end."""
    try:
        version = next(search.going) if answer is None else search.going.send(answer)
        while known := search.asked.known(version):
            version = search.going.send(known)
        waiting[search] = version
    except StopIteration as end:
        yield search, _checked(search, end.value)
    except ValueError as error:
        yield search, error


def _checked(search: Search, found: Bisection) -> Bisection | ValueError:
    try:
        search.asked.check(found)
    except ValueError as error:
        return error
    return found


def _next(waiting: dict[Search, Version]) -> tuple[tuple[Environment, ...], list[Search]]:
    """What is asked next, and who waits for it."""
    groups: dict[tuple[Environment, ...], list[Search]] = {}
    for search, version in waiting.items():
        groups.setdefault(search.asked.places(version), []).append(search)
    return max(groups.items(), key=lambda group: (_there(group[0]), len(group[1])))


def _there(places: tuple[Environment, ...]) -> bool:
    return not places or any(place.stamp.exists() for place in places)


def _remove(made: dict[Environment, bool], needed: set[Environment]) -> None:
    """Those that were made; the log of one that could not be stays."""
    for place in [place for place, missing in made.items() if missing and place not in needed and place.stamp.exists()]:
        environments.remove(place)
        del made[place]
