"""How soon does the plan of a hunt come to cases of the known issues? Nothing is run: the first place counts whose case
is one of an entry's, by operator, dtype, target and its predicate on values. It tells what an order of the plan is
worth by hundreds of real faults, in a minute. Those that show in company, by their place in a graph or by what was
returned count as met where operator and dtype are theirs.
`PYTHONPATH=.:tests/meta python tests/meta/planted/campaigns/reach_known.py --places 60000` prints how many are met
within so many places, and within so many processor seconds by `harness/search/hunting/costs.json`."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Annotated

import typer

from generators.baits import BAITS
from generators.baits import cases as baited
from generators.ops import OPS
from generators.union import Filled
from harness.commands.hunt import lanes_of
from harness.execute.pool import Limits, Pool
from harness.findings.known.entry import FOLDER
from harness.findings.known.issues import KnownIssue, load
from harness.findings.known.predicate import values_of
from harness.questions import QUESTIONS
from harness.questions.derivatives.gradient import GRADIENT
from harness.search.blame.excuses import Excuses
from harness.search.hunting.plan import STEP, Lane, Plan, member
from harness.search.laboratory import Laboratory
from oracles.judge import reference

LIMITS = (500, 1000, 2000, 4000, 8000, 16000, 32000, 64000)

SLOPES = 0.05
"""Processor seconds that the reference takes for the slopes of one place, which are measured once (of 128 places, 462
cases, 6.6)."""

cases = lru_cache(4096)(member)


@dataclass
class Reach:
    """met: by an entry's id, the number of the plan's place and the processor seconds before it; near: by lane, the
    entries that it might meet, each with what is asked about it."""

    pool: Pool
    issues: tuple[KnownIssue, ...]
    met: dict[str, tuple[int, float]] = field(default_factory=dict)
    near: dict[Lane, list[Excuses]] = field(default_factory=dict)

    def of(self, lane: Lane) -> list[Excuses]:
        """What the lane might meet."""
        if lane not in self.near:
            lab = Laboratory(self.pool, QUESTIONS[lane.question])
            oracles = lab.question.oracles
            mine = (issue for issue in self.issues if issue.oracle in oracles and issue.here)
            self.near[lane] = [one for issue in mine if (one := Excuses(lab, (issue,))).of(lane.target)]
        return self.near[lane]

    def look(self, lane: Lane, operator: str, turn: int, when: tuple[int, float]) -> None:
        """Note what one place meets."""
        operators = baited.operators_of(operator) if operator in BAITS else (operator,)
        for asked in self.of(lane):
            (issue,) = asked.issues
            if issue.id not in self.met and any(map(issue.is_of, operators)):
                question = QUESTIONS[lane.question]
                one = cases(question, operator, turn)
                runs = not question.why_not(lane.target, one.graph) and asked.nearby(lane.target, one.graph)
                if runs and holds(issue, one):
                    self.met[issue.id] = when


def holds(issue: KnownIssue, one: Filled) -> bool:
    """Does its predicate hold for an element of a node, as far as values of the reference tell?"""
    for arrays in one.fills:
        found = {name: each.value for name, each in reference.evaluate(one.graph, arrays).items()}
        for node in filter(lambda node: issue.is_of(node.op), one.graph.nodes):
            predicate = issue.predicate(node.op)
            if predicate is None or "got" in predicate.names:
                return True
            operands = [found[name] for name in node.operands]
            known = values_of(operands, node.attributes, node.type.dtype, found[node.name])
            if predicate.holds(known, node.type.shape).any():
                return True
    return False


def main(
    places: Annotated[int, typer.Option(help="So many of the plan, those that are refused among them.")] = 60_000,
    seed: Annotated[int, typer.Option(help="Of the plan's order.")] = 1,
    missing: Annotated[bool, typer.Option("--missing", help="List the entries that it does not come to.")] = False,
) -> None:
    """Go through the plan, and say when known issues are met."""
    lanes, number, seconds = lanes_of("*", QUESTIONS), 0, 0.0
    measured: set[tuple[str, int]] = set()
    with Pool(Limits()) as pool:
        reach = Reach(pool, load(FOLDER))
        could = {one.issues[0].id for lane in lanes for one in reach.of(lane)}
        for step in Plan(lanes, (*OPS, *BAITS), seed).steps():
            for operator, turn in step.takes:
                reach.look(step.lane, operator, turn, (number, seconds))
            number += len(step.takes)
            seconds += step.lane.cost * len(step.takes) / STEP
            if step.lane.question == GRADIENT.name:
                seconds += SLOPES * len({*step.takes} - measured)
                measured |= {*step.takes}
            if number >= places:
                break
    print(f"{len(reach.met)} of {len(could)} entries that it could meet, in {number} places, {seconds:.0f} s")
    for limit in LIMITS:
        by_place, by_time = (sum(one[k] < limit for one in reach.met.values()) for k in (0, 1))
        print(f"{limit:>6} places: {by_place:>4}   {limit:>6} s: {by_time:>4}")
    if missing:
        print(*sorted(could - reach.met.keys()), sep="\n")


if __name__ == "__main__":
    typer.run(main)
