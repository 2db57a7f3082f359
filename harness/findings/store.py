"""The findings folder: one folder a fingerprint, written as soon as something is found, counted when it is seen
again, rewritten when a smaller case is at hand."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from generators import caseio
from generators.graphs import Case
from harness.backends import Target
from harness.execute.files import locked, replace_text, whole
from harness.execute.reading import read_by, read_json
from harness.execute.templates import render
from harness.findings import reproducer
from harness.findings.database.recorder import NOTHING, Recorder
from harness.findings.deviation import Deviation
from harness.questions.question import Question, reproduction_of
from oracles.judge.discrepancy import SYMPTOMS, Discrepancy
from oracles.judge.outcome import Outcome
from oracles.judge.verdict import normalized


@dataclass(frozen=True)
class Finding:
    """One inconsistency, as its folder's `finding.json` keeps it. nodes: of the minimised graph; votes: status
    by target; twin: status of the float64 twin on the same target (None: not run); reproduced, tried: runs in
    fresh processes; passes: of the compiler, those to blame; guilty_pass: the same for people (None: not asked);
    condition: what the case shows beside."""

    fingerprint: str
    oracle: str
    symptom: str
    message: str
    target: str
    targets: tuple[str, ...]
    operators: tuple[str, ...]
    nodes: int
    diverging: str | None
    votes: Mapping[str, str]
    versions: Mapping[str, str]
    twin: str | None = None
    reproduced: int = 0
    tried: int = 0
    count: int = 1
    path: str = ""
    condition: str = ""
    passes: tuple[str, ...] = ()
    guilty_pass: str | None = None


def fingerprint(
    oracle: str, framework: str, operators: tuple[str, ...], discrepancy: Discrepancy, passes: tuple[str, ...] = ()
) -> str:
    """Oracle, symptom, framework, culprit operators, normalised message and guilty passes, e.g.
    value-tvm-softmax-1f3a or value-tvm-softmax-1f3a-FuseOps."""
    key = "\n".join([oracle, discrepancy.symptom, framework, *operators, normalized(discrepancy)])
    digest = hashlib.sha256(key.encode()).hexdigest()[:6]
    middle = "-".join(operators[:2]) + ("-etc" if len(operators) > 2 else "")
    return "-".join([discrepancy.symptom, framework, middle, digest, *passes])


def failure_text(finding: Finding, case: Case) -> str:
    """What a person reads when a campaign fails; an interface, and snapshot-tested."""
    subject = f"{' + '.join(finding.operators)} -> {', '.join(case.graph.outputs)}"
    head = f"{SYMPTOMS[finding.symptom].__name__}  {subject}   {finding.target} vs reference"
    agree = [t for t, s in finding.votes.items() if s in ("agree", "within_bound_only")]
    against = [t for t, s in finding.votes.items() if s in ("mismatch", "rejected", "crash", "timeout")]
    votes = []
    if agree:
        votes.append(f"{', '.join(agree)} agree with the reference")
    if against:
        votes.append(f"{', '.join(against)} do not")
    lines = [head, finding.message, *filter(None, [finding.condition]), "votes: " + ("; ".join(votes) or "none")]
    if finding.diverging:
        lines.append(f"first diverging node: {finding.diverging}")
    if finding.guilty_pass:
        lines.append(f"guilty pass: {finding.guilty_pass}")
    if finding.twin:
        lines.append(f"float64 twin on {finding.target}: {finding.twin}")
    if finding.tried:
        lines.append(f"fresh processes: reproduced {finding.reproduced} of {finding.tried}")
    return "\n".join([*lines, f"reproducer: {finding.path}/reproducer.py"])


@dataclass
class Store:
    """A findings folder. Several processes may share one: it is locked while it is read and written. record: the run
    that finds, which is told of all that comes and goes here."""

    root: Path
    seconds: float = 120.0
    record: Recorder = NOTHING

    def get(self, name: str) -> Finding | None:
        """The finding with this fingerprint, if it is there. Raises FileError."""
        path = self.root / name / "finding.json"
        return read_json(path, Finding) if path.exists() else None

    def case(self, name: str) -> Case | None:
        """The case of a finding, if it is there. Raises FileError."""
        path = self.root / name / "graph.json"
        return read_by(path, caseio.loads) if path.exists() else None

    def check(self) -> None:
        """Can every record be read, those of training runs among them? Raises FileError naming one that cannot."""
        for path in sorted(self.root.glob("[!.]*/finding.json")):
            read_json(path, Deviation if "strategy" in read_json(path, dict) else Finding)

    def alike(self, name: str) -> list[Finding]:
        """Findings of this fingerprint, whatever the guilty passes."""
        paths = sorted(self.root.glob(f"{name}*/finding.json"))
        found = [self.get(path.parent.name) for path in paths if path.parent.name.removeprefix(name)[:1] in ("", "-")]
        return [finding for finding in found if finding]

    def count_again(self, name: str, target: str) -> Finding | None:
        """Fold a duplicate into the finding with this fingerprint; None where there is none yet."""
        with self._locked():
            old = self.get(name)
            if old is None:
                return None
            targets = old.targets if target in old.targets else (*old.targets, target)
            updated = replace(old, count=old.count + 1, targets=targets)
            _write_record(self.root / name, updated)
        self.record.again(name, target, old.symptom)
        return updated

    def drop(self, name: str) -> None:
        """Remove the folder of a finding that turned out to be another one."""
        with self._locked():
            shutil.rmtree(self.root / name, ignore_errors=True)
        self.record.dropped(name)

    def save(
        self, finding: Finding, question: Question, target: Target, case: Case, outcome: Outcome | None = None
    ) -> Finding:
        """Write (or rewrite) the folder of a finding of `target`. Returns it with its path and the count kept.
        outcome: of a run, for a question that judges by it."""
        folder = self.root / finding.fingerprint
        shown = reproduction_of(question, target, case, outcome)
        with self._locked():
            old = self.get(finding.fingerprint)
            finding = replace(finding, path=str(folder))
            if old:
                targets = tuple(dict.fromkeys((*old.targets, *finding.targets)))
                finding = replace(finding, count=old.count, targets=targets)
            text = failure_text(finding, case)
            title = "\n".join(filter(None, [text.splitlines()[0], finding.condition]))
            with whole(folder) as scratch:
                reproducer.write(scratch, shown, finding.symptom, title, self.seconds)
                (scratch / "graph.json").write_text(caseio.dumps(case), encoding="utf-8")
                report = render("findings/report.md.j2", finding=finding, text=text, case=case, shown=shown)
                (scratch / "report.md").write_text(report.rstrip("\n"), encoding="utf-8")
                _write_record(scratch, finding)
        self.record.finding(
            finding.fingerprint, [finding.target], finding.symptom, finding.guilty_pass or finding.condition
        )
        return finding

    def _locked(self) -> AbstractContextManager[None]:
        return locked(self.root / ".lock")


def _write_record(folder: Path, finding: Finding) -> None:
    replace_text(folder / "finding.json", json.dumps(asdict(finding), indent=1) + "\n")
