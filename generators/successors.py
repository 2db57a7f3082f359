"""Every ordered pair of operators whose types fit: a case in which the second takes the result of the first. Optimisers
rewrite neighbours, so a pair that has never met has never been tested."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from generators.graphs import PLAIN, Case, SeededDraw, Style, build_pair, draw_recipes
from generators.inputs import fill_all

ATTEMPTS = 24
"""Draws before a pair is taken not to fit: they find 98.8 % of the pairs that 100 find (1,637 and 1,657 of 2,000)."""


def successors(first: str, operators: Sequence[str], seed: int = 0, style: Style = PLAIN) -> Iterator[tuple[str, Case]]:
    """Each operator that can take a result of `first`, with a case of the two: the same for the same seed, whatever
    other operators are asked for."""
    for second in operators:
        case = pair(first, second, seed, style)
        if case:
            yield second, case


def pair(first: str, second: str, seed: int = 0, style: Style = PLAIN) -> Case | None:
    """A case in which `second` takes the result of `first`, or None where none was found."""
    for attempt in range(ATTEMPTS):
        d = SeededDraw(f"{seed}/{first}/{second}/{attempt}")
        graph = build_pair(d, first, second, style)
        if graph:
            return Case(graph, fill_all(graph, draw_recipes(d, graph, style)))
    return None
