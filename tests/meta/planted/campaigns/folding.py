"""Do raw failures of planted faults fold into their causes? Faults are planted into two targets of one framework, in
some operators another one into each; what is drawn for them fails, is blamed, made small, stored and folded as in a
hunt. `PYTHONPATH=.:tests/meta python tests/meta/planted/campaigns/folding.py --seed 1` prints what came of it."""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from planted.faults.complex import COMPLEX_FAULTS
from planted.faults.forward import FAULTS, Fault
from planted.targets import planted_all

from generators.graphs import seeded_case
from generators.ops import DRAWN
from harness.backends import TARGETS, Target
from harness.commands.findings.gather import of_folder
from harness.execute.pool import Pool
from harness.findings.known import issues as known_issues
from harness.findings.store import Finding, Store
from harness.findings.triage.causes import Cause, causes_of
from harness.search.campaign import Campaign
from harness.search.laboratory import Laboratory

FAILURES, PLANTED, TARGETS_OF = 1000, 40, 2
BESIDE = 40
"""Operators that are right, drawn beside the faulty ones."""
ALL = (*FAULTS, *COMPLEX_FAULTS)


@dataclass
class Folded:
    """failures: how many there were; met: by finding, how often which faults showed; causes: that triage made of the
    findings."""

    planted: Mapping[str, Mapping[str, Fault]]
    failures: int = 0
    met: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    causes: tuple[Cause, ...] = ()

    def faults_of(self, cause: Cause) -> Counter[str]:
        """The planted faults in a cause, and how many of its failures each made."""
        return sum((self.met[one.id] for one in cause.instances), Counter())

    @property
    def mixed(self) -> list[Cause]:
        """Those that hold two faults, or more."""
        return [cause for cause in self.causes if len(self.faults_of(cause)) > 1]

    @property
    def shown(self) -> set[str]:
        """Faults that showed."""
        return {name for faults in self.met.values() for name in faults}


def planted_faults(seed: int, count: int = PLANTED) -> dict[str, dict[str, Fault]]:
    """So many faults, by target and operator."""
    chosen: dict[str, dict[str, Fault]] = {f"planted-{i + 1}": {} for i in range(TARGETS_OF)}
    for fault in random.Random(seed).sample(ALL, len(ALL)):
        free = [faults for faults in chosen.values() if fault.operator not in faults]
        if free and sum(map(len, chosen.values())) < count:
            min(free, key=len)[fault.operator] = fault
    return chosen


def fold(seed: int, pool: Pool, folder: Path, failures: int = FAILURES, count: int = PLANTED) -> Folded:
    """The raw failures of one seed, folded."""
    chosen = planted_faults(seed, count)
    made = [planted_all({o: f.text for o, f in faults.items()}, name=name) for name, faults in chosen.items()]
    issues = [replace(issue, targets=tuple(chosen)) for issue in known_issues.load() if issue.names("torch-eager")]
    campaign = Campaign(
        Laboratory(pool), [TARGETS["torch-eager"], *made], Store(folder), issues,
        confirmations=0,
    )  # fmt: skip
    folded = Folded(chosen)
    for target, finding, fault in met(seed, campaign, made, chosen):
        folded.failures += 1
        folded.met[finding.fingerprint][f"{target.name}: {fault}"] += 1
        if folded.failures == failures:
            break
    left = [path.parent for path in folder.glob("[!.]*/finding.json")]
    folded.causes = causes_of([of_folder(path) for path in left])
    return folded


def met(
    seed: int, campaign: Campaign, targets: list[Target], chosen: Mapping[str, Mapping[str, Fault]]
) -> Iterator[tuple[Target, Finding, str]]:
    """One drawn case after the other: a target that fails, the finding that it was taken for, and the fault that did
    it."""
    faulty = {operator for faults in chosen.values() for operator in faults}
    beside = random.Random(seed).sample([name for name in DRAWN if name not in faulty], BESIDE)
    operators, index = [*faulty, *beside], 0
    while True:
        case = seeded_case(seed, index, operators=operators)
        index += 1
        for target in targets:
            found = campaign.lab.examine(case, [target]).verdicts[target.name].discrepancy
            rest = campaign.unexplained(target, case, found) if found else None
            finding = campaign.met(target, *rest) or campaign.investigate(target, *rest) if rest else None
            if finding:
                mine = [o for o in finding.operators if o in chosen[target.name]]
                yield target, finding, " and ".join(f"{o}: {chosen[target.name][o].name}" for o in mine)


def main() -> None:
    """One seed, as lines."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--failures", type=int, default=FAILURES)
    parser.add_argument("--faults", type=int, default=PLANTED)
    asked = parser.parse_args()
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, Pool() as pool:
        folded = fold(asked.seed, pool, Path(folder), asked.failures, asked.faults)
    by_fault: dict[str, list[str]] = defaultdict(list)
    for cause in folded.causes:
        for name in folded.faults_of(cause):
            by_fault[name].append(cause.id)
    for cause in folded.mixed:
        print("two faults in one cause:", cause.id, dict(folded.faults_of(cause)))
    for name, causes in sorted(by_fault.items()):
        if len(causes) > 1:
            print("several causes of one fault:", name, causes)
    instances = sum(len(cause.instances) for cause in folded.causes)
    print(
        f"{folded.failures} failures of {len(folded.shown)} faults: {instances} findings, {len(folded.causes)} causes, "
        f"{len(folded.mixed)} with two faults, {time.monotonic() - started:.0f} s"
    )


if __name__ == "__main__":
    main()
