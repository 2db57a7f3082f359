"""How small an error do Dissent's own oracles see? A fault multiplies one element of a result, or all of them, by one
plus its relative size, in one target: PyTorch, a node of a drawn graph (forward), the gradient that comes to one
(gradient), or the gradient after all ranks have added theirs up (DistributedDataParallel): one rank's (sharding), which
is apart from the others' then, or all ranks' (reduction), which agree on it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from generators.bounds.bounded import PRECISION
from generators.graph import Graph
from generators.graphs import SeededDraw, build_case
from generators.training.runs import seeded_training
from harness.backends import TARGETS, Target
from harness.execute.pool import Job, Pool
from harness.execute.ranks import RankPools
from harness.questions.derivatives.gradient import GRADIENT
from harness.questions.forward import FORWARD
from harness.questions.question import Question
from harness.strategies import STRATEGIES
from harness.strategies.torch.program import SINGLE_DEVICE
from harness.training.judge import TrainingJudge
from oracles.determinism import same
from oracles.judge.compare import Expected
from oracles.judge.outcome import Outcome, Value
from oracles.judge.verdict import judge

SIZES = tuple(10.0**power for power in range(-7, 1))
EXTENTS = ("element", "result")
TARGET, STRATEGY, WORLD = "torch-eager", "torch-ddp", 2
STRUCK_DTYPES = ("float32", "float64", "float16", "bfloat16")
QUESTIONS: dict[str, Question] = {FORWARD.name: FORWARD, GRADIENT.name: GRADIENT}
"""Of graphs, by the oracle's name."""
OF_RANKS = {"sharding": "0", "reduction": "dist.get_rank()"}
"""Oracles of ranks, with the rank that is struck, as source text."""
ORACLES = (*QUESTIONS, *OF_RANKS)
Task = tuple[str, int]
"""An oracle, and the number of a case."""

_STRIKE = '''
def strike(value):
    """The value with a fault in it: {what}, times one plus {size}."""
    flat = value.detach().clone().reshape(-1)
    able = (flat.isfinite() & (flat != 0)).nonzero().reshape(-1)
    places = able[{place} % max(1, len(able)) :][:1] if {one} else able
    flat[places] = flat[places] * {factor!r}
    return flat.reshape(value.shape)


'''
_FORWARD = "struck = strike\n\n\n"
_GRADIENT = '''class Struck(torch.autograd.Function):
    """The same, its gradient with a fault in it."""

    @staticmethod
    def forward(ctx, value):
        return value.view_as(value)

    @staticmethod
    def backward(ctx, gradient):
        return strike(gradient)


struck = Struck.apply


'''
_REDUCED = """

def backward(subject, x, y, coefficient, last, world):
    loss = fault_free_backward(subject, x, y, coefficient, last, world)
    if last and dist.get_rank() == {rank}:
        named = [p for p in subject.parameters() if p.grad is not None]
        parameter = named[{place} % len(named)]
        parameter.grad.copy_(strike(parameter.grad))
    return loss
"""


@dataclass(frozen=True)
class Mutant:
    """One fault. oracle: of ORACLES; number: of the case; dtype: of what is struck; extent: of EXTENTS; size: relative;
    shown: the greatest relative change in what the target returned (0: no bit changed; at most 1, and 1 for what are no
    floating numbers, for what is not finite in one of both, and where nothing was returned); caught: did the oracle
    report it? determined: may the oracle judge any element that changed, or are all of them such as it excuses?
    subnormal: is every change smaller than the smallest normal number, as back ends make that flush what is below?"""

    oracle: str
    number: int
    operator: str
    dtype: str
    extent: str
    size: float
    shown: float
    caught: bool
    determined: bool = True
    subnormal: bool = False

    @property
    def visible(self) -> bool:
        """Did any bit of what was returned change?"""
        return self.shown > 0

    @property
    def told(self) -> bool:
        """Is it visible, and of a kind that can be told from a correct run?"""
        return self.visible and self.determined and not self.subnormal


def mutants(oracle: str, seed: int, number: int, pool: Pool, pools: RankPools) -> Iterator[Mutant]:
    """All faults of one case, drawn from the seed and this number alone: each extent, each size. None where the case
    has nothing to strike, or the target fails it or refuses it as it is."""
    yield from (
        _of_ranks(oracle, seed, number, pools)
        if oracle in OF_RANKS
        else _of_graph(QUESTIONS[oracle], seed, number, pool)
    )


def each_case(tasks: Iterable[Task], keep: Callable[[Sequence[Mutant]], None], *, seed: int) -> None:
    """These cases, one after the other; what a case gives is kept at once."""
    with Pool() as pool, RankPools() as pools:
        for oracle, number in tasks:
            keep(list(mutants(oracle, seed, number, pool, pools)))


def undone(task: Task, there: Sequence[Mutant]) -> Task | None:
    """A case of which there is no fault among these; None where there is."""
    return None if task in {(one.oracle, one.number) for one in there} else task


def _of_graph(question: Question, seed: int, number: int, pool: Pool) -> Iterator[Mutant]:
    d = SeededDraw(f"mutation/{question.name}/{seed}/{number}")
    case, target = build_case(d, operators=question.drawn, style=question.style), TARGETS[TARGET]
    nodes = [node for node in case.graph.nodes if case.graph.types[node.name].dtype in STRUCK_DTYPES]
    nodes = [node for node in nodes if case.graph.types[node.name].size]
    if not nodes or question.why_not(target, case.graph):
        return
    node, place = d.choice(nodes), d.integer(0, 2**16)
    dtype = case.graph.types[node.name].dtype
    expected = question.expected(target, case)
    kinds = [(extent, size) for extent in EXTENTS for size in SIZES]
    texts = [_program(question, target, case.graph, node.name, place, *kind) for kind in kinds]
    first = question.program(target, case.graph)
    arrays = question.arrays(case)
    right, *outcomes = pool.run(Job(target.framework, target.modules, text, arrays) for text in (first, *texts))
    if not isinstance(right, Value) or judge(expected, right).discrepancy:
        return
    for (extent, size), outcome in zip(kinds, outcomes, strict=True):
        seen = _seen(expected, right, outcome)
        caught = judge(expected, outcome).discrepancy is not None
        yield Mutant(
            question.name, number, node.op, dtype, extent, size, seen.shown, caught, seen.determined, seen.subnormal
        )


def _program(question: Question, target: Target, graph: Graph, node: str, place: int, extent: str, size: float) -> str:
    """The program with a line behind the node's that strikes it. Raises ValueError where it has no such line."""
    text, found = re.subn(
        rf"^    {node} = .*$", rf"\g<0>\n    {node} = struck({node})", question.program(target, graph), flags=re.M
    )
    if found != 1:
        raise ValueError(f"{found} lines that begin with {node}")
    before, model, after = text.partition("def model(")
    return before + _strike(place, extent, size) + (_GRADIENT if question is GRADIENT else _FORWARD) + model + after


def _strike(place: int, extent: str, size: float) -> str:
    one = extent == EXTENTS[0]
    what = "one element" if one else "all elements"
    return _STRIKE.lstrip("\n").format(what=what, size=size, place=place, one=one, factor=1.0 + size)


@dataclass(frozen=True)
class Seen:
    """What a fault did to what was returned: as in `Mutant`."""

    shown: float = 0.0
    determined: bool = True
    subnormal: bool = False


def _seen(expected: Expected, right: Value, outcome: Outcome) -> Seen:
    if not isinstance(outcome, Value):
        return Seen(1.0)
    shown, determined, subnormal = 0.0, False, True
    for old, new, bound in zip(right.outputs, outcome.outputs, expected.values, strict=True):
        bits = np.frombuffer(old.tobytes(), np.uint8) != np.frombuffer(new.tobytes(), np.uint8)
        elements = bits.reshape(max(1, old.size), -1).any(1)
        if elements.any():
            before, after = old.reshape(-1)[elements], new.reshape(-1)[elements]
            shown = max(shown, _change(before, after))
            subnormal &= _subnormal(before, after)
            determined |= bool(np.isfinite(np.broadcast_to(bound.error, old.shape)).reshape(-1)[elements].any())
    return Seen(shown, determined, subnormal) if shown else Seen()


def _subnormal(old: np.ndarray, new: np.ndarray) -> bool:
    """Are all changes smaller than the smallest normal number of the dtype?"""
    dtype = str(old.dtype)
    if dtype not in PRECISION:
        return False
    wide = "complex128" if old.dtype.kind == "c" else "float64"
    with np.errstate(all="ignore"):
        return bool((np.abs(new.astype(wide) - old.astype(wide)) < PRECISION[dtype].tiny).all())


def _change(old: np.ndarray, new: np.ndarray) -> float:
    """The greatest relative change of elements of which some differ, above 0 and at most 1."""
    if old.dtype.kind in "biu":
        return 1.0
    wide = "complex128" if old.dtype.kind == "c" else "float64"
    with np.errstate(all="ignore"):
        before, after = old.astype(wide), new.astype(wide)
        relative = np.where(
            (after == before) | (before != before) & (after != after), 0.0, np.abs(after - before) / np.abs(before)
        )
    return float(np.clip(np.where(np.isfinite(relative), relative, 1.0), 1e-30, 1.0).max())


def _of_ranks(oracle: str, seed: int, number: int, pools: RankPools) -> Iterator[Mutant]:
    d = SeededDraw(f"mutation/sharding/{seed}/{number}")
    training, strategy, place = seeded_training(seed, number), STRATEGIES[STRATEGY], d.integer(0, 2**16)
    if strategy.refusal(training, WORLD):
        return
    own = TrainingJudge(pools)
    right, before = own.observe(training, strategy, WORLD)
    if right.status != "agree":
        return
    pieces = {**SINGLE_DEVICE, **strategy.pieces}
    kept = pieces["backward"].replace("def backward(", "def fault_free_backward(")
    reduced = _REDUCED.format(place=place, rank=OF_RANKS[oracle])
    for extent in EXTENTS:
        for size in SIZES:
            text = f"{kept.rstrip()}\n\n\n{_strike(place, extent, size).rstrip()}\n{reduced}"
            faulty = replace(strategy, pieces={**strategy.pieces, "backward": text})
            found, after = own.observe(training, faulty, WORLD)
            yield Mutant(
                oracle, number, training.settings.optimizer, training.settings.dtype, extent, size,
                _shown_by_ranks(before, after), found.discrepancy is not None,
            )  # fmt: skip


def _shown_by_ranks(before: Sequence[Mapping[str, np.ndarray]], after: Sequence[Mapping[str, np.ndarray]]) -> float:
    """The greatest relative change in what any rank returned; 1 where nothing was returned."""
    if not after:
        return 1.0
    changed = [
        _change(own[name], other[name])
        for own, other in zip(before, after, strict=True)
        for name in own
        if not same(own[name], other[name])
    ]
    return max(changed, default=0.0)
