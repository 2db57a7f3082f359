"""The plan of a hunt: every place of every operator's sweep and of every bait, on every target by every question, what
has been tested least first. It is a list of steps that is the same for a seed, a findings folder and any number of
jobs."""

from __future__ import annotations

import heapq
import json
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Annotated

from msgspec import Meta, Struct

from generators.baits import BAITS
from generators.baits import cases as baited
from generators.graphs import Case
from generators.ops.drawing import OFTEN as USUAL
from generators.sweep import places as sweep_places
from generators.sweep import swept
from generators.union import Filled
from harness.backends import Target
from harness.execute.files import locked, replace_text
from harness.execute.reading import read_json
from harness.questions import QUESTIONS
from harness.questions.compile_time import COMPILE_TIME
from harness.questions.conversion import CONVERSION
from harness.questions.derivatives.gradient import GRADIENT
from harness.questions.forward import FORWARD
from harness.questions.question import Question
from harness.search import coverage
from harness.search.campaign import operators_for
from harness.search.coverage import Coverage

FILE = "plan.json"
STEP, FEW = 64, 8
"""Places that one step takes, those that its target refuses among them; of a question that joins no cases."""

OFTEN, SELDOM = 4, 0.25
"""How often the plan turns to a lane of the questions that every fault of a value or a gradient shows in, and to one of
a target that has to be named, or that measures how long compilers take: as often as others by this factor. Of 2, 3, 4,
5, 6, 8 and 16, 4 met most known issues of all questions in an hour of processor time (`reach_known.py`)."""

WINDOW = 24
"""Places of a sweep that a lane goes through in an order of its own before it comes to the next ones: what levels of a
compiler share is met by more of them, and few lanes of an hour's hunt come to an operator's second place. Of 3, 6, 12,
24 and all, 24 met most known issues (`reach_known.py`: 438 of 614 in an hour of processor time, 414 with 3)."""

USUAL_FIRST = (GRADIENT.name, CONVERSION.name)
"""Questions of which the operators that models are made of come first: drawn cases, which are full of them, are asked
another one. Of 67 planted faults, most of them in such operators, 44 are come to within 600 s of processor time, 16
without; of 803 known issues 364 within 1,000 s, 378 without (first by all questions: 45 and 334). The first place of
such an operator that a lane takes is the simplest, ordinary arrays of float32, since a lane comes to few second ones
soon: a fault of every ordinary number is missed by an empty array or another dtype. Of the planted faults 32 are seen
within 30,000 places, 15 where all first places are drawn (32 and 23 where all, or every second, are the simplest); of
839 known issues 423 are met within 1,000 s, 434 (411, 437)."""

COMPANY = 1 / 3
"""Conversions by one tool from one form of a model and another have most of what may be wrong in common: their turns
are divided by this power of how many such routes there are (of 0, 1/4, 1/3, 1/2 and 1, 1/4 and 1/3 met most)."""

Key = tuple[str, str, str]
"""(question, target, operator or bait)."""


def places(name: str) -> int:
    """How many an operator's sweep has, or a bait. Raises KeyError."""
    return len(baited.places(name) if name in BAITS else sweep_places(name))


@cache
def costs() -> dict[str, dict[str, float]]:
    """What `tests/meta/planted/campaigns/costs.py` wrote: by question and target."""
    return json.loads(Path(__file__).with_name("costs.json").read_text())


@dataclass(frozen=True)
class Lane:
    """One question asked of one target."""

    question: str
    target: Target

    @property
    def weight(self) -> float:
        """How often its turn comes. What costs more has fewer turns, by the root of its cost: if what a lane has still
        to show falls with the places that it had, least is left then (Neyman's allocation; Cochran, Sampling
        Techniques, 3rd ed., 5.5)."""
        often = OFTEN if self.question in (FORWARD.name, GRADIENT.name, CONVERSION.name) else 1
        named = self.target.opt_in and self.question != CONVERSION.name
        return often * (SELDOM if named or self.question == COMPILE_TIME.name else 1) / self.cost**0.5

    @property
    def cost(self) -> float:
        """Processor seconds of a step, as they were measured once: of the same target by the question of what a graph
        computes where this one was not, and of a middling one where neither was."""
        measured, name = costs(), self.target.name
        own, plain = measured.get(self.question, {}), measured[FORWARD.name]
        return own.get(name) or plain.get(name) or median((own or plain).values())

    @property
    def family(self) -> str:
        """Lanes of one family have most of what may be wrong in common: a framework's, or those of a conversion's last
        tool."""
        route = self.target.name.split("/")
        return route[-2] if self.question == CONVERSION.name else self.target.framework

    def operators(self, names: Sequence[str]) -> list[str]:
        """Those of the operators and baits that are worth asking about here, and that can be expressed."""
        concerns = QUESTIONS[self.question].concerns

        def worth(name: str) -> bool:
            needed = baited.operators_of(name) if name in BAITS else (name,)
            return all(map(concerns, needed)) and len(operators_for(self.target, tuple(needed))) == len(needed)

        return [name for name in names if worth(name)]


@dataclass(frozen=True)
class Step:
    """What is run at once: places of operators' sweeps and of baits, by a question on a target."""

    lane: Lane
    takes: tuple[tuple[str, int], ...]


class Cell(Struct, frozen=True, forbid_unknown_fields=True):
    """What is done of a sweep. places: how many it had; done: bits in hexadecimal, the first place's last."""

    places: Annotated[int, Meta(ge=0)]
    done: Annotated[str, Meta(pattern="^[0-9a-f]+$")]


@dataclass
class Done:
    """Which places are done, as bits, by question, target and operator."""

    bits: dict[Key, int] = field(default_factory=dict)

    def add(self, step: Step) -> None:
        """Count a step that has been carried out."""
        for operator, turn in step.takes:
            key = (step.lane.question, step.lane.target.name, operator)
            self.bits[key] = self.bits.get(key, 0) | 1 << turn

    @property
    def count(self) -> int:
        """Of places."""
        return sum(bits.bit_count() for bits in self.bits.values())

    def save(self, folder: Path) -> None:
        """Add this to the file in `folder`. Several processes may do so at once."""
        with locked(folder / ".plan.lock"):
            bits = load(folder).bits
            for key, mine in self.bits.items():
                bits[key] = bits.get(key, 0) | mine
            tree: dict = {}
            for (question, target, operator), done in sorted(bits.items()):
                cell = {"places": places(operator), "done": f"{done:x}"}
                tree.setdefault(question, {}).setdefault(target, {})[operator] = cell
            replace_text(folder / FILE, json.dumps(tree))


def load(folder: Path) -> Done:
    """What `Done.save` wrote; nothing of sweeps that have another length by now. Raises FileError naming the file."""
    return Done({key: int(cell.done, 16) for key, cell in cells(folder).items() if cell.places == _length(key[2])})


def cells(folder: Path) -> dict[Key, Cell]:
    """What `Done.save` wrote, whatever sweeps have by now: none is made. Raises FileError naming the file."""
    if not (folder / FILE).exists():
        return {}
    tree = read_json(folder / FILE, dict[str, dict[str, dict[str, Cell]]])
    return {
        (question, target, operator): cell
        for question, targets in tree.items()
        for target, operators in targets.items()
        for operator, cell in operators.items()
    }


def _length(operator: str) -> int:
    try:
        return places(operator)
    except KeyError:  # of another version
        return -1


@dataclass(frozen=True)
class Plan:
    """lanes: in any order; operators: that take part, and baits; done: before this hunt; tested: how often each was"""

    lanes: tuple[Lane, ...]
    operators: tuple[str, ...]
    seed: int
    done: Mapping[Key, int] = field(default_factory=dict)
    tested: Mapping[Key, int] = field(default_factory=dict)

    def steps(self) -> Iterator[Step]:
        """All that is left, from what has been tested least, by the weight of its lane; ties in a drawn order."""
        rng = random.Random(f"{self.seed}/plan")
        queue: list[tuple[float, float, int, _Turns]] = []
        members = Counter((lane.question, lane.family) for lane in self.lanes)
        before: Counter[tuple[str, str]] = Counter()
        for lane in self.lanes:
            family = lane.question, lane.family
            tested = sum(self.tested.get((lane.question, lane.target.name, name), 0) for name in self.operators)
            company = members[family] ** COMPANY if lane.question == CONVERSION.name else 1
            turns = _Turns(self, lane, before[family] / members[family], lane.weight / company, before[family])
            queue.append(((tested + STEP) / turns.weight, rng.random(), len(queue), turns))
            before[family] += 1
        heapq.heapify(queue)
        while queue:
            tested, tie, number, turns = heapq.heappop(queue)
            takes = turns.take(FEW if QUESTIONS[turns.lane.question].fills == 1 else STEP)
            if takes:
                yield Step(turns.lane, takes)
                heapq.heappush(queue, (tested + len(takes) / turns.weight, tie, number, turns))


def picked(steps: Iterator[Step], numbers: Iterator[int]) -> Iterator[Step]:
    """Those of the steps that have these ascending numbers, as far as there are any."""
    behind = 0
    for number in numbers:
        step = next(islice(steps, number - behind, None), None)
        if step is None:
            return
        yield step
        behind = number + 1


class _Turns:
    """What is left of a lane: the operators by how often they were tested. They are looked up when their turn comes,
    since that takes a second for hundreds of lanes. start: lanes of a family go through one drawn order of operators,
    each from another place in it, so that together they soon come to all; 0: the first, 1: behind the last one.
    weight: how often its turn comes; number: of the lane in its family. Of gradients, lanes of the same number in their
    families draw the same places: measuring slopes takes longer than most programs, and is done once for all of them
    (418 known issues within 1,000 s of processor time with the reference's share, 403 where each has its own)."""

    def __init__(self, plan: Plan, lane: Lane, start: float, weight: float, number: int) -> None:
        self.plan, self.lane, self.start, self.weight = plan, lane, start, weight
        self.order = number if lane.question == GRADIENT.name else lane.target.name
        self._queue: list[tuple[int, float, str, int]] | None = None

    def take(self, most: int) -> tuple[tuple[str, int], ...]:
        """At most so many places; none where nothing is left."""
        if self._queue is None:
            self._queue = self._listed()
        found = []
        while self._queue and len(found) < most:
            tested, tie, operator, done = heapq.heappop(self._queue)
            turn = self._next(operator, done)
            if turn is None:
                continue
            found.append((operator, turn))
            heapq.heappush(self._queue, (tested + 1, tie, operator, done | 1 << turn))
        return tuple(found)

    def _next(self, operator: str, done: int) -> int | None:
        """The place that comes next: of a usual operator the simplest one, then of each window of places one that this
        lane draws. done: bits of those that are; None: all are."""
        lowest, count = (~done & (done + 1)).bit_length() - 1, places(operator)
        if lowest >= count:
            return None
        if not done and operator in USUAL:
            return 0
        first = lowest - lowest % WINDOW
        drawn = list(range(first, min(first + WINDOW, count)))
        random.Random(f"{self.lane.question}/{self.order}/{operator}/{first}").shuffle(drawn)
        return next(turn for turn in drawn if not done >> turn & 1)

    def _listed(self) -> list[tuple[int, float, str, int]]:
        rng = random.Random(f"{self.plan.seed}/{self.lane.question}/{self.lane.family}")
        later = set(self.plan.operators) - {*USUAL} if self.lane.question in USUAL_FIRST else ()
        place = {operator: (rng.random() - self.start) % 1 + (operator in later) for operator in self.plan.operators}
        queue = []
        for operator in self.lane.operators(self.plan.operators):
            key = (self.lane.question, self.lane.target.name, operator)
            done = self.plan.done.get(key, 0)
            before = done.bit_count() if operator in BAITS else self.plan.tested.get(key, 0)
            queue.append((before, place[operator], operator, done))
        heapq.heapify(queue)
        return queue


def tested(covered: Mapping[str, Coverage]) -> dict[Key, int]:
    """How often each operator was in a case of a target by a question, whatever came of it."""
    found: dict[Key, int] = {}
    for question, counts in covered.items():
        for (operator, _, target, _), count in counts.cells.items():
            key = (question, target, operator)
            found[key] = found.get(key, 0) + count
    return found


def state(folder: Path) -> tuple[dict[Key, int], dict[Key, int]]:
    """What is done, and how often each was tested, according to a findings folder. Raises FileError."""
    return load(folder).bits, tested(coverage.load(folder))


def member(question: Question, operator: str, turn: int) -> Filled:
    """A place of a sweep or of a bait as the question asks it: with those sets of arrays of which it makes the same
    graph and the same parameters."""
    bait = operator in BAITS
    plain = (
        baited.baited(operator, turn, question.fills) if bait else swept(operator, turn, question.fills, question.large)
    )
    asked = [question.prepare(Case(plain.graph, arrays)) for arrays in plain.fills]
    first = asked[0]
    constant = [leaf.name for leaf in first.graph.parameters]

    def alike(case: Case) -> bool:
        same = case.graph == first.graph
        return same and all(case.arrays[n].tobytes() == first.arrays[n].tobytes() for n in constant)

    return Filled(first.graph, tuple(case.arrays for case in asked if alike(case)))
