"""Which planted faults does a hunt meet that is not pointed at them, and how soon? The plan of a hunt over all targets
by all questions is gone through in its order; places without a faulty operator are counted, not run, since their
program is the correct one, letter for letter.
`PYTHONPATH=.:tests/meta python tests/meta/planted/campaigns/reach.py --places 400000` prints a line for each fault."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Annotated

import typer
from planted.campaigns.riddled import riddled
from planted.faults.reach import REACH_FAULTS, ReachFault

from generators.baits import BAITS
from generators.graphs import Case
from generators.ops import OPS
from harness.backends import Target
from harness.commands.hunt import lanes_of
from harness.execute.pool import Limits, Pool
from harness.findings.known.entry import FOLDER
from harness.findings.known.issues import load
from harness.findings.store import Store
from harness.questions import QUESTIONS
from harness.search.campaign import Campaign
from harness.search.hunting.carry_out import Carrier
from harness.search.hunting.plan import Lane, Plan, Step
from harness.search.laboratory import Laboratory
from oracles.judge.discrepancy import Discrepancy


@dataclass
class Search:
    """What is left to find. met: by fault, the number of the plan's place, its question and nodes; tried: how many
    places of its operator were run before."""

    pool: Pool
    folder: Path
    left: list[ReachFault]
    met: dict[ReachFault, tuple[int, str, int]] = field(default_factory=dict)
    tried: dict[ReachFault, int] = field(default_factory=dict)
    campaigns: dict[str, Campaign] = field(default_factory=dict)

    def campaign(self, question: str) -> Campaign:
        """One that asks this, to which all is known that is known to a hunt."""
        if question not in self.campaigns:
            lab = Laboratory(self.pool, QUESTIONS[question])
            self.campaigns[question] = Campaign(lab, (), Store(self.folder), load(FOLDER))
        return self.campaigns[question]

    def carry_out(self, step: Step, right: Target, number: int) -> None:
        """Run the places of faulty operators of a step that begins with this place. right: the target without
        faults, which has to agree where the other does not."""
        mine = {one.operator: one for one in self.left if one.target == right.name}
        takes = tuple(take for take in step.takes if take[0] in mine)
        if not takes:
            return
        campaign = self.campaign(step.lane.question)

        def pursue(_: Campaign, target: Target, case: Case, discrepancy: Discrepancy) -> None:
            rest = campaign.unexplained(target, case, discrepancy)
            if rest is None:
                return
            other = campaign.verdict(right, rest[0]).discrepancy
            if other and campaign.unexplained(right, rest[0], other):
                return
            for operator in set(rest[0].graph.operators) & set(mine):
                if mine[operator] in self.left:
                    self.left.remove(mine[operator])
                    self.met[mine[operator]] = number, step.lane.question, len(rest[0].graph.nodes)
                    print(f"place {number} by {step.lane.question}: {mine[operator]}", flush=True)

        for operator, _ in takes:
            self.tried[mine[operator]] = self.tried.get(mine[operator], 0) + 1
        for _ in Carrier(pursue).carry_out(campaign, replace(step, takes=takes)):
            pass


def steps(lanes: tuple[Lane, ...], seed: int, places: int) -> Iterator[tuple[int, Step]]:
    """Those of the plan, each with the number of its first place."""
    number = 0
    for step in Plan(lanes, (*OPS, *BAITS), seed).steps():
        yield number, step
        number += len(step.takes)
        if number >= places:
            return


def main(
    places: Annotated[int, typer.Option(help="So many of the plan, those that are not run among them.")] = 400_000,
    seed: Annotated[int, typer.Option(help="Of the plan's order.")] = 1,
    questions: Annotated[str, typer.Option(help="Those that are asked.")] = "forward,gradient,conversion",
    seconds: Annotated[float, typer.Option(help="No longer than that.")] = 1200.0,
    only: Annotated[str, typer.Option(help="Faults whose text has this in it.")] = "",
) -> None:
    """Go through the plan, and say which faults were met, and when."""
    lanes, started = lanes_of("*", QUESTIONS), time.monotonic()
    chosen = [fault for fault in REACH_FAULTS if only in str(fault)]
    faulty = {target: riddled(target, chosen) for target in {lane.target for lane in lanes}}
    names, number = {fault.target for fault in chosen}, 0
    with Pool(Limits(seconds=120.0), tolerant=True) as pool, tempfile.TemporaryDirectory() as folder:
        search = Search(pool, Path(folder), list(chosen))
        for number, step in steps(lanes, seed, places):
            right = step.lane.target
            if right.name in names and step.lane.question in questions.split(","):
                search.carry_out(replace(step, lane=replace(step.lane, target=faulty[right])), right, number)
            if not search.left or time.monotonic() - started > seconds:
                break
    for fault in chosen:
        where = search.met.get(fault)
        said = f"place {where[0]:>7} by {where[1]}, {where[2]} nodes" if where else "MISSED"
        print(f"{fault.kind:8} {fault}: {said}, {search.tried.get(fault, 0)} of its own")
    nodes = [found[2] for found in search.met.values()]
    after = sorted(found[0] for found in search.met.values())
    print(f"{len(nodes)} of {len(chosen)} met in {number} places, medians: {median(nodes or [0])} nodes, place "
          f"{median(after or [0])}; {time.monotonic() - started:.0f} s")  # fmt: skip


if __name__ == "__main__":
    typer.run(main)
