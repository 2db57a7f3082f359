"""How many planted faults does a hunt find in ten minutes that is not pointed at them? `hunt` runs, with its plan, its
drawn cases and all known issues, over all targets, each of which has its faults of `planted/faults/reach.py` at
once. A fault is found where a finding has its operator, and its program the wrong function.
`PYTHONPATH=.:tests/meta python tests/meta/planted/campaigns/hunted.py --budget 600` prints a line for each fault."""

from __future__ import annotations

import json
import tempfile
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Annotated

import typer
from planted.campaigns.riddled import riddled
from planted.faults.reach import REACH_FAULTS, ReachFault

from generators.baits import BAITS
from generators.graphs import MAX_NODES
from generators.ops import OPS
from harness.commands.hunt import lanes_of
from harness.commands.shared.cases import usable
from harness.findings.known.entry import FOLDER
from harness.findings.known.issues import load
from harness.findings.store import Finding
from harness.questions import QUESTIONS
from harness.questions.forward import FORWARD
from harness.search import hunt
from harness.search.hunting.plan import Plan
from harness.search.hunting.tally import Tally

CARRY = ("forward", "gradient", "conversion")


@dataclass
class Found:
    """seen: by fingerprint, seconds after which a finding was first told of"""

    started: float = field(default_factory=time.monotonic)
    seen: dict[str, float] = field(default_factory=dict)

    def tell(self, tally: Tally) -> None:
        """Note what is new."""
        for fingerprint in tally.findings:
            self.seen.setdefault(fingerprint, time.monotonic() - self.started)


def shows(finding: Finding, fault: ReachFault) -> bool:
    """Is this fault in the finding's program, and its operator among those that are blamed?"""
    on = fault.target in finding.targets and fault.operator in finding.operators
    return on and f"{fault.function}(" in Path(finding.path, "reproducer.py").read_text()


def options_of(budget: float, seed: int, jobs: int, findings: Path, share: float) -> hunt.Options:
    """Those of `hunt --budget … --seed …`, with faulty targets; the programs of other questions do not carry faults."""
    lanes = tuple(
        replace(lane, target=riddled(lane.target)) if lane.question in CARRY else lane
        for lane in lanes_of("*", QUESTIONS)
    )
    targets = tuple(map(riddled, usable("*")))
    return hunt.Options(
        targets=targets,
        budget=budget,
        seed=seed,
        max_nodes=MAX_NODES,
        findings=findings,
        operators=FORWARD.drawn,
        issues=load(FOLDER),
        jobs=jobs,
        voters=targets,
        plan=Plan(lanes, (*OPS, *BAITS), seed),
        share=share,
    )


def main(
    budget: Annotated[float, typer.Option(help="Seconds that the hunt has.")] = 600.0,
    seed: Annotated[int, typer.Option(help="Of the hunt.")] = 1,
    jobs: Annotated[int, typer.Option(help="Processes of the hunt.")] = 2,
    json_file: Annotated[Path | None, typer.Option("--json", help="Where the figures go, too.")] = None,
    findings: Annotated[Path | None, typer.Option(help="Where the findings stay.")] = None,
    share: Annotated[float, typer.Option(help="Of the plan, of the time that is not the findings'.")] = 0.5,
) -> None:
    """Hunt, and say which faults were found, and when."""
    with tempfile.TemporaryDirectory() as folder:
        found = Found()
        tally = hunt.run(options_of(budget, seed, jobs, findings or Path(folder), share), found.tell)
        met: dict[ReachFault, list[Finding]] = {}
        for fault in REACH_FAULTS:
            met[fault] = [one for one in tally.findings.values() if shows(one, fault)]
        ours = {one.fingerprint for some in met.values() for one in some}
        others = [one for name, one in tally.findings.items() if name not in ours]
    for fault, some in met.items():
        first = min((found.seen.get(one.fingerprint, budget) for one in some), default=0.0)
        least = min((one.nodes for one in some), default=0)
        print(f"{fault.kind:8} {fault}: {f'after {first:.0f} s, {least} nodes' if some else 'MISSED'}")
    for other in others:
        told = f"{other.fingerprint} {other.target} {', '.join(other.operators)}: {other.symptom} {other.message}"
        print(f"not planted: {told}"[:200])
    nodes = [min(one.nodes for one in some) for some in met.values() if some]
    print(f"{len(nodes)} of {len(met)} found, median {median(nodes or [0])} nodes; {tally.cases} drawn cases, "
          f"{tally.taken} places of the plan; {len(others)} findings that were not planted")  # fmt: skip
    if json_file:
        json_file.write_text(json.dumps({str(fault): [one.fingerprint for one in some] for fault, some in met.items()}))


if __name__ == "__main__":
    typer.run(main)
