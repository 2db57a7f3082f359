"""What a step of a hunt's plan costs, by question and target: `harness/search/hunting/costs.json`, by which the plan
shares its turns out. `PYTHONPATH=.:tests/meta python tests/meta/planted/campaigns/costs.py --targets 'tvm-*'` measures
these anew; a target without figures counts as a middling one."""

from __future__ import annotations

import json
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from generators.ops import OPS
from harness.commands.hunt import lanes_of
from harness.execute.pool import Limits, Pool
from harness.findings.known.entry import FOLDER
from harness.findings.known.issues import load
from harness.findings.store import Store
from harness.questions import QUESTIONS
from harness.search.campaign import Campaign
from harness.search.hunting import plan
from harness.search.hunting.carry_out import Carrier
from harness.search.hunting.plan import STEP, Lane, Plan
from harness.search.laboratory import Laboratory

FILE = Path(plan.__file__).with_name("costs.json")
LEAST = 0.5
"""Seconds: what a step costs that runs hardly anything."""


def cost(lane: Lane, pool: Pool, places: int) -> float | None:
    """Processor seconds of a step, by so many of its places; the first one, which starts processes, is not counted. The
    reference's work on derivatives is not, either: it is done once for all targets. None: nothing can be asked."""
    step = next(Plan((lane,), tuple(OPS), 1).steps(), None)
    if step is None:
        return None
    lab = Laboratory(pool, QUESTIONS[lane.question])

    def spent() -> float:
        return time.process_time() - lab.seconds["reference"] + sum(v for k, v in lab.seconds.items() if ":" in k)

    with tempfile.TemporaryDirectory() as folder:
        campaign = Campaign(lab, (), Store(Path(folder)), load(FOLDER))
        carrier = Carrier(lambda campaign, target, case, discrepancy: None)
        started = 0.0
        for takes in (step.takes[:1], step.takes[1 : places + 1]):
            started = spent()
            for _ in carrier.carry_out(campaign, replace(step, takes=takes)):
                pass
    return max(LEAST, round((spent() - started) * STEP / places, 1))


def main(
    targets: Annotated[str, typer.Option(help="Globs; conversions have routes.")] = "*",
    questions: Annotated[str, typer.Option(help="With figures of their own.")] = "forward,gradient,conversion",
    places: Annotated[int, typer.Option(help="So many are run for each.")] = 24,
) -> None:
    """Measure, and write the file after each of them."""
    measured = {question: dict(found) for question, found in plan.costs().items()}
    with Pool(Limits(seconds=240.0), tolerant=True) as pool:
        for lane in lanes_of(targets, questions.split(",")):
            seconds = cost(lane, pool, places)
            if seconds is None:
                continue
            measured.setdefault(lane.question, {})[lane.target.name] = seconds
            print(f"{lane.question} {lane.target.name}: {seconds} s", flush=True)
            FILE.write_text(json.dumps(measured, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    typer.run(main)
