"""Systematic cases instead of random ones: of one operator every choice at its edges, alone and in pairs; and every
ordered pair of operators whose types fit, since optimisers rewrite neighbours.

Whatever is drawn (dtypes, shapes, attributes, distributions of elements) goes through `Draw`, so a case is a list of
choices. The simplest case takes the first option of each; the sweep moves one choice, then two, to an edge."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import chain, combinations, islice, zip_longest
from typing import TypeVar

import numpy as np

from generators.graph import COMPLEX, FLOATS, Graph
from generators.graphs import (
    FAVOURED,
    PLAIN,
    Case,
    SeededDraw,
    Style,
    build_case,
    build_graph,
    build_pair,
    draw_recipes,
)
from generators.inputs import INTEGER, THRESHOLDS, Arrays, Recipe, fill_all
from generators.ops import OPS
from generators.ops.slots import DIMS, SMALL
from generators.ops.spec import Draw
from generators.sweep.extents import ALL, extents, of_extent
from generators.sweep.neighbours import COUNT, WINDOWS, near, squared, windowed
from generators.union import Filled

T = TypeVar("T")
FEW = 10
LAST = 2**62
ONE = LAST + 1
"""The last option, but of a length, which is 1."""
SWEPT = Style((*FAVOURED, *COMPLEX), apart=True)
DTYPES = tuple(dict.fromkeys(SWEPT.favoured))
"""What each of a sweep's cases favours one of."""
GRAPHED = Style((*SWEPT.favoured, "bool"), apart=True)
"""The same where only the graphs are looked at."""
LENGTHS = ((3, 37), (1, 37), (37, 1), (3, 37))
"""Of the first dimensions that are drawn, in every second place in turn: 16 lanes, twice, and a rest, or a dimension of
one beside such a length. With few elements a fault at special numbers, or behind full vectors, is not met."""
FILLED = (
    *("hundreds", "with_zeros", "specials", "small_integers", "extreme", "halves"),
    *("normal", "infinities", "huge", "uniform", "tiny", "subnormals"),
)
"""Distributions in the order in which places take them, those that show most first."""
MIXED = 6
"""So many cases of each dtype move half of their choices."""
VARIED = 3
"""In the first place, and those of every third script, attributes that the script does not move are the simplest; in
the others they are any. The simplest ones (k = 1, a stride of 1) hide what is wrong, and a lane comes to few places of
an operator."""
EARLY = 3
"""Cases of wide windows, of which there are few, come before so many of each dtype (times its share)."""
ATTEMPTS = 24
"""Draws before a pair is taken not to fit: they find 98.8 % of the pairs that 100 find (1,637 and 1,657 of 2,000)."""
Script = Mapping[int, int]
"""Number of a choice -> the option taken, counted from the simplest; every other choice takes its simplest option."""


class ScriptedDraw:
    """`Draw` that follows a script. `sizes`: how many options each choice had. An option beyond the last one means
    the last one, since an earlier choice may have changed what there is to choose from. varied: what draws the choices
    of a node's attributes that the script does not move; None: they are the simplest, too."""

    def __init__(self, script: Script, varied: random.Random | None = None) -> None:
        self.dtype = FAVOURED[0]
        self.sizes: list[int] = []
        self._script, self._varied = script, varied

    def integer(self, low: int, high: int) -> int:
        return low + self.taken(high - low + 1)

    def taken(self, options: int, otherwise: int = 0) -> int:
        """The next choice, of so many options."""
        taken = min(self._script.get(len(self.sizes), otherwise), options - 1)
        self.sizes.append(options)
        return taken

    def choice(self, options: Sequence[T]) -> T:
        if self._script.get(len(self.sizes)) == ONE and (options is SMALL or options is DIMS):
            self.sizes.append(len(options))
            return options[options.index(1)]  # type: ignore[arg-type]
        return options[self.integer(0, len(options) - 1)]

    def boolean(self) -> bool:
        return bool(self.integer(0, 1))

    def attributes(self) -> Draw:
        return VariedDraw(self, self._varied) if self._varied else self


class VariedDraw:
    """Any option of each choice that the script of `of` does not move."""

    def __init__(self, of: ScriptedDraw, rng: random.Random) -> None:
        self.dtype, self._of, self._rng = of.dtype, of, rng

    def integer(self, low: int, high: int) -> int:
        options = high - low + 1
        return low + self._of.taken(options, self._rng.randrange(options))

    def choice(self, options: Sequence[T]) -> T:
        return options[self.integer(0, len(options) - 1)]

    def boolean(self) -> bool:
        return bool(self.integer(0, 1))

    def attributes(self) -> VariedDraw:
        return self


class LongDraw(ScriptedDraw):
    """A script whose lengths, where it does not move them, are of rows that fill a vector and leave a rest."""

    def __init__(
        self, script: Script, lengths: Sequence[int] = LENGTHS[0], varied: random.Random | None = None
    ) -> None:
        super().__init__(script, varied)
        self._lengths = list(lengths)

    def choice(self, options: Sequence[T]) -> T:
        moved = len(self.sizes) in self._script
        taken = super().choice(options)
        if moved or not self._lengths or (options is not SMALL and options is not DIMS):
            return taken
        return self._lengths.pop(0)  # type: ignore[return-value]


def sweep(operator: str, most: int | None = None, dtypes: Sequence[str] = SWEPT.favoured) -> Iterator[Case]:
    """Distinct one-node cases of an operator, for each favoured dtype: the simplest, then one choice at each of its
    edges, then two choices at their last options; each once with the elements that belong to it, and once with
    those of the next distribution in turn, or every third time from beside the operator's thresholds. most: only about
    so many of them, evenly spaced; dtypes: the favoured."""
    starts = [_start(dtype) for dtype in dict.fromkeys(dtypes)]
    sizes = [_sizes(operator, start) for start in starts]
    scripts = [
        {**script, **start}
        for moved in (_none, _one, _two)
        for start, options in zip(starts, sizes, strict=True)
        for script in moved(options)
    ]
    step = max(1, 2 * len(scripts) // most) if most else 1
    seen: set[str] = set()
    for turn in range(0, len(scripts), step):
        case = build_case(ScriptedDraw(scripts[turn]), 1, (operator,), SWEPT)
        for version in (case, _refilled(case.graph, turn, beside=turn % 3 == 1)):
            key = repr((version.graph, [(name, a.tobytes()) for name, a in version.arrays.items()]))
            if key not in seen:
                seen.add(key)
                yield version


def graphs(operator: str, most: int) -> Iterator[Graph]:
    """At most so many distinct graphs of an operator alone: of each dtype in turn, booleans among them, the simplest,
    those whose choices are mixed (each dtype begins with another one), and those of its edges, evenly spaced."""
    by_dtype = []
    for number, dtype in enumerate(dict.fromkeys(GRAPHED.favoured)):
        start = {0: GRAPHED.favoured.index(dtype)}
        draw = ScriptedDraw(start)
        build_case(draw, 1, (operator,), GRAPHED)
        mixed, edges = list(_mixed(draw.sizes)), [*_one(draw.sizes), *_two(draw.sizes)]
        turn = number % MIXED
        scripts = ({}, *mixed[turn:], *mixed[:turn], *edges[:: 1 + len(edges) // most])
        by_dtype.append([{**script, **start} for script in scripts if 0 not in script])
    seen: dict[Graph, None] = {}
    for script in chain.from_iterable(zip_longest(*by_dtype)):
        if script is not None and len(seen) < most:
            graph = build_case(ScriptedDraw(script), 1, (operator,), GRAPHED).graph
            if graph not in seen:
                seen[graph] = None
                yield graph


@cache
def places(operator: str) -> np.ndarray:
    """All places of an operator's sweep, each a dtype's number and a script's, in a drawn order that is always the
    same: the simplest case of the dtype that is favoured most, with many attributes two whose choices are mixed, then
    in turn the simplest cases of two further dtypes and one of all others, of which, however far one gets, dtypes have
    had shares as `FAVOURED` has them, complex ones as rare ones. A dtype that no operand and no result has, has no
    places. Those of large and deep cases have the numbers -1, -2, ... as scripts: all of float32 and float64, one in
    turn of every other dtype; they come early, since what they meet depends on few choices, those of wide windows, of
    which there are few, earliest. Whether an operator has such a neighbour, or a result that can be squared, takes long
    to say, and 84 and 78 of 100 have: `swept` sees."""
    rng, keys = random.Random(operator), []
    taken = [number for number, dtype in enumerate(DTYPES) if _takes(operator, dtype)]
    first = 3 if len(OPS[operator].attrs) > 2 else 1
    for number in taken:
        dtype = DTYPES[number]
        count = _count(_sizes(operator, _start(dtype)))
        weight = max(1, FAVOURED.count(dtype))
        keys += [
            (
                (turn + rng.random()) / weight if script >= first or number != taken[0] else float(script - first),
                number,
                script,
            )
            for turn, script in enumerate(rng.sample(range(count), count))
        ]
    last = max(keys)[0] if keys else 1.0
    unusual = extents(operator)
    beside = range(_unusual(operator), _unusual(operator) + COUNT)
    windows = range(beside.stop, beside.stop + len(WINDOWS))
    squares = range(windows.stop, windows.stop + 1)
    for kind in (*unusual, beside, windows, squares):
        for number, dtype in enumerate(DTYPES):
            turn = number % len(kind)
            for k in kind if dtype in ALL else kind[turn : turn + 1]:
                may = kind in unusual or number in taken
                if may and (kind in (beside, squares) or _numbered(operator, dtype, k)):
                    key = EARLY * rng.random() if kind is windows else last * rng.random() ** 2
                    keys.append((key, number, -1 - k))
    order = [key[1:] for key in sorted(keys)]
    head, simplest = order[:first], [(number, 0) for number in taken[1:]]
    others = [place for place in order[first:] if place[1]]
    mixed = [place for few in zip_longest(simplest[::2], simplest[1::2], others) for place in few if place]
    return np.array([*head, *mixed], np.int32)


def swept(operator: str, turn: int, fills: int, enlarge: bool = False) -> Filled:
    """Place number `turn` of an operator's sweep, with so many sets of arrays: the elements that belong to it, then
    those from beside the operator's thresholds, then of one distribution after the other. enlarge: are large
    cases wanted? They have two sets of arrays at most; in place of those, and of neighbours that the operator does not
    have, comes the dtype's simplest case."""
    number, script = map(int, places(operator)[turn])
    if script < 0:
        graph = _numbered(operator, DTYPES[number], -1 - script, enlarge)
        if graph:
            ordinary = 0 if DTYPES[number] in FLOATS else 1  # normal, or all of an integer's numbers
            sets = (_refilled(graph, ordinary).arrays, _refilled(graph, turn, beside=True).arrays)
            return Filled(graph, sets[:fills])
        script = 0
    start = _start(DTYPES[number])
    chosen = next(islice(_scripts(_sizes(operator, start)), script, None))
    moves = {**chosen, **start}
    lengths = LENGTHS[(script // 2 + number) % len(LENGTHS)]
    plain = not script % VARIED if script else not turn
    varied = None if plain else random.Random(f"{operator}/{number}/{script}")
    follow = ScriptedDraw(moves, varied) if script % 2 else LongDraw(moves, lengths, varied)
    case = build_case(follow, 1, (operator,), SWEPT)
    constant = {leaf.name: case.arrays[leaf.name] for leaf in case.graph.parameters}
    others: list[Arrays] = [
        {**_refilled(case.graph, turn * (fills - 1) + k - 1, beside=k == 1).arrays, **constant} for k in range(1, fills)
    ]
    return Filled(case.graph, (case.arrays, *others))


def _unusual(operator: str) -> int:
    """How many large and deep cases an operator has of a dtype."""
    return sum(map(len, extents(operator)))


def _numbered(operator: str, dtype: str, number: int, enlarge: bool = True) -> Graph | None:
    """A case that is not of choices: large or deep ones, then those beside neighbours, then those of wide windows, and
    in float32 and float64 one whose result is squared."""
    first = _unusual(operator)
    if number < first:
        return of_extent(operator, dtype, number, enlarge)
    number -= first
    if number < COUNT:
        return near(operator, dtype, number)
    if number < COUNT + len(WINDOWS):
        return windowed(operator, dtype, number - COUNT)
    return squared(operator, dtype) if dtype in ALL else None


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


def _takes(operator: str, dtype: str) -> bool:
    """Is a value of this dtype in some of the operator's cases that favour it? Where the simplest one is of floating
    numbers of one other dtype alone, it is in none."""
    start = _start(dtype)
    simplest = _simplest(operator)[start[0]][1]
    if dtype in simplest or dtype == DTYPES[0]:
        return True
    if len(simplest) == 1 and simplest <= {*FLOATS}:
        return False
    scripts = list(_scripts(_sizes(operator, start)))
    return any(dtype in _dtypes(operator, {**script, **start}) for script in scripts[:: 1 + len(scripts) // 8])


def _dtypes(operator: str, script: Script) -> set[str]:
    """Of all values of a case."""
    graph = build_graph(ScriptedDraw(script), 1, (operator,), style=SWEPT)
    return {type_.dtype for type_ in graph.types.values()}


def _start(dtype: str) -> Script:
    """A graph's first choice is the dtype that it favours."""
    return {0: SWEPT.favoured.index(dtype)}


def _scripts(sizes: Sequence[int]) -> Iterator[Script]:
    """Of one dtype: without those that would move the first choice, which is the dtype."""
    found = chain.from_iterable(moved(sizes) for moved in (_none, _mixed, _one, _two))
    return (script for script in found if 0 not in script)


def _count(sizes: Sequence[int]) -> int:
    """How many scripts there are, without making them."""
    one = sum(options - 1 if options <= FEW else 3 for options in sizes[1:])
    two = sum(len(sizes) - 1 - i for i, options in enumerate(sizes) if i and options > 1)
    return 1 + MIXED + one + two


def _refilled(graph: Graph, turn: int, beside: bool = False) -> Case:
    """All leaves from one distribution, the `turn`-th of those that their dtypes have; or from beside the thresholds of
    the operator, if it has any."""
    numbers = OPS[graph.nodes[0].op].thresholds
    if beside and numbers:
        chosen = {leaf.name: Recipe(THRESHOLDS, turn + i) for i, leaf in enumerate(graph.leaves)}
        return Case(graph, fill_all(graph, chosen, numbers))
    recipes = {}
    for i, leaf in enumerate(graph.leaves):
        names = FILLED if leaf.type.dtype in (*FLOATS, *COMPLEX) else tuple(INTEGER)
        recipes[leaf.name] = Recipe(names[turn % len(names)], turn + i)
    return Case(graph, fill_all(graph, recipes))


def _sizes(operator: str, start: Script) -> tuple[int, ...]:
    """How many options each choice of the simplest case has."""
    return _simplest(operator)[start[0]][0]


@cache
def _simplest(operator: str) -> dict[int, tuple[tuple[int, ...], set[str]]]:
    """By the number of the favoured dtype, how many options each choice of the simplest case has, and the dtypes of its
    values."""
    found = {}
    for dtype in DTYPES:
        start = _start(dtype)
        draw = ScriptedDraw(start)
        graph = build_graph(draw, 1, (operator,), style=SWEPT)
        draw_recipes(draw, graph, SWEPT)  # the choices of `build_case` that come after the graph
        found[start[0]] = tuple(draw.sizes), {type_.dtype for type_ in graph.types.values()}
    return found


def _none(sizes: Sequence[int]) -> Iterator[Script]:
    yield {}


def _mixed(sizes: Sequence[int]) -> Iterator[Script]:
    """Half of the choices anywhere, so that those meet that no pair of edges brings together."""
    rng = random.Random(repr(sizes))
    for _ in range(MIXED):
        yield {number: rng.randrange(options) for number, options in enumerate(sizes) if number and rng.random() < 0.5}


def _one(sizes: Sequence[int]) -> Iterator[Script]:
    """Every option of a choice among few, otherwise the second, the middle and the last one."""
    for number, options in enumerate(sizes):
        for taken in range(1, options) if options <= FEW else (1, options // 2, options - 1):
            yield {number: taken}


def _two(sizes: Sequence[int]) -> Iterator[Script]:
    """Two choices at their last options, a length, which is 0 there, in every second pair at 1; moving the first choice
    may be what gives the second one options."""
    for i, j in combinations(range(len(sizes)), 2):
        if sizes[i] > 1:
            yield dict.fromkeys((i, j), ONE if (i + j) % 2 else LAST)
