"""What to run next: ways of choosing cases, compared by the distinct faults that they find and the cells of operator x
dtype that they cover in the same processor time, over planted faults (two wrong PyTorch targets) and real ones (ONNX
Runtime, by the entries of `known/` that explain what it gets wrong).
`PYTHONPATH=.:tests/meta python tests/meta/planted/campaigns/guidance.py --seconds 60 --seeds 1 2` prints a table."""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain, count
from pathlib import Path
from statistics import mean

from hypothesis import HealthCheck, Phase, given, seed, settings, target
from planted.campaigns.folding import planted_faults
from planted.targets import planted_all

from generators.baits import BAITS
from generators.baits.cases import baited, with_bait
from generators.graphs import PLAIN, Case, cases, seeded_case
from generators.ops import DRAWN
from harness.backends import TARGETS, Target
from harness.execute.pool import Pool
from harness.findings.known import issues as known_issues
from harness.findings.store import Store
from harness.questions.forward import FORWARD
from harness.search.blame import culprit
from harness.search.campaign import Campaign
from harness.search.hunting.cut import runnable
from harness.search.hunting.plan import member, places
from harness.search.laboratory import Laboratory


class Over(Exception):
    """The time is."""


@dataclass
class Seen:
    """What one way has come to. found: names of faults; cells: operators x dtypes of its cases."""

    lab: Laboratory
    seconds: float
    judge: Callable[[Case], set[str]]
    found: set[str] = field(default_factory=set)
    cells: set[tuple[str, str]] = field(default_factory=set)
    cases: int = 0
    started: float = field(default_factory=time.process_time)

    @property
    def cpu(self) -> float:
        """Processor seconds of this process and of the programs."""
        ran = sum(spent for name, spent in self.lab.seconds.items() if name.startswith("run:"))
        return time.process_time() - self.started + ran

    def take(self, case: Case) -> int:
        """Run a case; how many cells are new. Raises Over."""
        if self.cpu >= self.seconds:
            raise Over
        self.cases += 1
        self.found |= self.judge(case)
        new = {(node.op, node.type.dtype) for node in case.graph.nodes} - self.cells
        self.cells |= new
        return len(new)


def drawn(number: int) -> Iterator[Case]:
    return (seeded_case(number, index) for index in count())


def drawn_with_baits(number: int) -> Iterator[Case]:
    return (with_bait(number, index, case, DRAWN, PLAIN.favoured) for index, case in enumerate(drawn(number)))


def baits(number: int) -> Iterator[Case]:
    order = random.Random(number)
    return (baited(order.choice(list(BAITS)), 0, 1).case(0) for _ in count())


def sweeps(number: int) -> Iterator[Case]:
    """Operator by operator, all places of each."""
    order = random.Random(number).sample(list(DRAWN), len(DRAWN))
    return (member(FORWARD, name, turn).case(0) for name in order for turn in range(places(name)))


def least_tested(number: int) -> Iterator[Case]:
    """A place of each operator in turn, as the plan of a hunt has them."""
    order = random.Random(number)
    left = {name: order.sample(range(places(name)), places(name)) for name in DRAWN}
    for turn in range(max(map(len, left.values()))):
        for name, turns in left.items():
            if turn < len(turns):
                yield member(FORWARD, name, turns[turn]).case(0)


def half_and_half(number: int) -> Iterator[Case]:
    """Drawn cases and least tested places in turn: what a hunt does."""
    return chain.from_iterable(zip(drawn_with_baits(number), least_tested(number), strict=False))


def guided(number: int, seen: Seen) -> None:
    """Hypothesis' `target`, by the cells that a case is the first to have."""

    @seed(number)
    @settings(
        max_examples=10**6, deadline=None, database=None, phases=(Phase.generate, Phase.target),
        suppress_health_check=(HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much),
    )  # fmt: skip
    @given(cases())
    def run(case: Case) -> None:
        target(float(seen.take(case)))

    run()


WAYS: dict[str, Callable[[int], Iterator[Case]]] = {
    "drawn": drawn, "drawn, one in eight with a bait": drawn_with_baits, "baits": baits, "sweeps": sweeps,
    "least tested first": least_tested, "drawn and least tested in turn": half_and_half,
}  # fmt: skip


def by_planted(number: int, lab: Laboratory) -> Callable[[Case], set[str]]:
    """Which planted faults does a case show?"""
    chosen = planted_faults(number)
    made = [planted_all({o: f.text for o, f in faults.items()}, name=name) for name, faults in chosen.items()]

    def judge(case: Case) -> set[str]:
        found = set()
        for one in made:
            rest = _run(lab, one, case)
            if rest:
                for guilty in culprit.blame(lab, one, rest):
                    if guilty.node.op in chosen[one.name]:
                        found.add(f"{one.name} {guilty.node.op}")
        return found

    return judge


def by_real(lab: Laboratory, folder: Path) -> Callable[[Case], set[str]]:
    """Which known issues of ONNX Runtime does a case show?"""
    issues = [issue for issue in known_issues.load() if issue.names("ort-disable") or issue.names("ort-all")]
    campaign = Campaign(lab, [], Store(folder), issues, confirmations=0)

    def judge(case: Case) -> set[str]:
        campaign.excused.clear()
        for name in ("ort-disable", "ort-all"):
            rest = _run(lab, TARGETS[name], case)
            discrepancy = lab.judge(rest, [TARGETS[name]]).verdicts[name].discrepancy if rest else None
            if rest and discrepancy:
                campaign.unexplained(TARGETS[name], rest, discrepancy)
        return set(campaign.excused)

    return judge


def _run(lab: Laboratory, one: Target, case: Case) -> Case | None:
    """What of a case runs on a target and fails there; None: nothing."""
    cut = runnable(FORWARD, one, case)
    if cut is None:
        return None
    return cut[0] if lab.judge(cut[0], [one]).verdicts[one.name].discrepancy else None


def compared(number: int, way: str, real: bool, seconds: float, pool: Pool, folder: Path) -> Seen:
    """One way with one seed."""
    lab = Laboratory(pool)
    seen = Seen(lab, seconds, by_real(lab, folder) if real else by_planted(number, lab))
    try:
        if way in WAYS:
            for case in WAYS[way](number):
                seen.take(case)
        else:
            guided(number, seen)
    except Over:
        pass
    return replace(seen)


def main() -> None:
    """A line a way."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="of the processor, for each way and seed")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2])
    asked = parser.parse_args()
    came: dict[tuple[str, bool], list[Seen]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder, Pool() as pool:
        for way in (*WAYS, "Hypothesis' target"):
            for real in (False, True):
                for number in asked.seeds:
                    came[way, real].append(compared(number, way, real, asked.seconds, pool, Path(folder)))
                mine = came[way, real]
                figures = [mean(map(len, (getattr(s, name) for s in mine))) for name in ("found", "cells")]
                told = " | ".join(f"{figure:.0f}" for figure in (*figures, mean(s.cases for s in mine)))
                print(f"{'real' if real else 'planted'} | {way} | {told}", flush=True)


if __name__ == "__main__":
    main()
