"""Which pass of a compiler is to blame for a failure: it is left out, and the failure is gone."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

Shown = Literal["right", "same", "other"]
"""What comes of a run: nothing is wrong, it fails in the same way, it fails in another way."""

Run = Callable[[Collection[str]], Shown]
"""A run without these passes."""


@dataclass(frozen=True)
class GuiltyPass:
    """names: the pass without which the failure is gone, or passes, where all of them have to be left out; none where
    it does not take a pass, or where it is not known. text: the same for people, and what else mends it, or why it is
    not known."""

    names: tuple[str, ...]
    text: str


class _Spent(Exception):
    """Nothing is left of the budget."""


def find(passes: Sequence[str], run: Run, spend: Callable[[], bool]) -> GuiltyPass:
    """The guilty pass. passes: all that can be left out, in the order in which they run; spend: accounts for a run,
    False when nothing is left.

    Where the failure is gone without any pass, the passes are put back from the first to the last, halving: the one
    that brings the failure back is to blame if leaving it out alone mends it. Passes before it that it needs (a fusion,
    say, that only brings operators together) thus are named only as what mends it, too. Otherwise it is the last pass
    without which alone it is right, or else the smallest set of them, by delta debugging (Zeller, Hildebrandt,
    Simplifying and Isolating Failure-Inducing Input, IEEE TSE 28, 2002). What fails in another way is not mended."""
    seen: dict[frozenset[str], Shown] = {}

    def shown(off: Collection[str]) -> Shown:
        key = frozenset(off)
        if key not in seen:
            if not spend():
                raise _Spent
            seen[key] = run([name for name in passes if name in key])
        return seen[key]

    names: tuple[str, ...] = ()
    others: list[str] = []
    try:
        if shown(()) != "same":
            return GuiltyPass((), "unknown, it comes and goes")
        whole = shown(passes)
        if whole == "same":
            return GuiltyPass((), f"none, it fails without any of {len(passes)}")
        if whole == "right":
            names = _last(passes, shown) or _any(passes[::-1], shown)
            names = names or smallest(passes, lambda off: shown(off) == "right")
        else:
            names = _any(passes[::-1], shown)
        for name in passes if len(names) == 1 else ():
            if name not in names and shown((name,)) == "right":
                others.append(name)
    except _Spent:
        if not names:
            return GuiltyPass((), "unknown, the time for it was spent")
    if not names:
        return GuiltyPass((), f"unknown, without any of {len(passes)} it fails in another way")
    text = " and ".join(names)
    if len(names) > 1:
        text += ", right only without all of them"
    if others:
        text += f", right also without {' or '.join(others)}"
    return GuiltyPass(names, text)


def _last(passes: Sequence[str], shown: Run) -> tuple[str, ...]:
    """The pass that brings the failure back, if it is right without it alone."""
    low, high = 0, len(passes)  # right with the first `low` of them, the same failure with the first `high`
    unclear: set[int] = set()
    while between := [i for i in range(low + 1, high) if i not in unclear]:
        middle = between[len(between) // 2]
        match shown(passes[middle:]):
            case "right":
                low = middle
            case "same":
                high = middle
            case "other":
                unclear.add(middle)
    return _any(passes[low:high][::-1], shown)


def _any(passes: Sequence[str], shown: Run) -> tuple[str, ...]:
    """The first pass without which alone it is right."""
    return next(((name,) for name in passes if shown((name,)) == "right"), ())


def smallest(passes: Sequence[str], enough: Callable[[Collection[str]], bool]) -> tuple[str, ...]:
    """Some of the passes, none of which can be spared, that are enough, as all of them are."""
    names, parts = tuple(passes), 2
    while len(names) > 1:
        smaller = next((some for some in _parts(names, parts) if enough(some)), None)
        if smaller is None and parts == len(names):
            break
        names, parts = (smaller, 2) if smaller else (names, min(len(names), 2 * parts))
    return names


def _parts(names: tuple[str, ...], count: int) -> Iterator[tuple[str, ...]]:
    """So many parts of about one size, then all names but those of one part."""
    bounds = [len(names) * i // count for i in range(count + 1)]
    parts = [names[a:b] for a, b in pairwise(bounds)]
    yield from parts
    if count > 2:
        for part in parts:
            yield tuple(name for name in names if name not in part)
