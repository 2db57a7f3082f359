"""Known issues: what is already reported upstream or understood, so that it neither shrinks again nor hides what
is new. An entry matches a discrepancy by target, oracle, symptom, operator, dtype and framework version."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal

from packaging.specifiers import SpecifierSet

from generators import caseio
from generators.graph import TensorType
from generators.graphs import Case
from generators.ops import OPS
from harness.backends import Target
from harness.backends.probe import probe
from harness.execute import machine
from harness.execute.pool import Pool
from harness.findings import known_file, reproducer
from harness.questions import QUESTIONS
from harness.questions.conversion import CONVERSION
from harness.questions.forward import FORWARD
from harness.questions.question import exhibit
from harness.search.laboratory import Laboratory
from oracles.judge.discrepancy import SYMPTOMS, Discrepancy


@dataclass(frozen=True)
class KnownIssue:
    """id: a short name; targets, operators: globs; dtypes: of the culprit's result or first operand (none: any);
    empty: only where its result or an operand has size 0 ("parameter": an operand that is a parameter of the graph);
    constant: only where all its operands are parameters; together: shows only beside other nodes, whatever they
    are; message: a regular expression found in the message (none: any); threads: shows only where each library has so
    many or more; cpu: shows only on processors with this feature, or with a ! before its name without it;
    seconds: for how long its own case is waited for (0: as for any other), for what never ends; versions: of the
    framework; upstream: link or "not yet reported"; case: a stored case file that shows it, relative to the
    known-issue file."""

    id: str
    targets: tuple[str, ...]
    symptoms: tuple[str, ...]
    operators: tuple[str, ...]
    reason: str
    case: str
    oracle: str = FORWARD.name
    dtypes: tuple[str, ...] = ()
    empty: bool | Literal["parameter"] = False
    constant: bool = False
    together: bool = False
    versions: str = ""
    message: str = ""
    threads: int = 1
    cpu: str = ""
    seconds: float = 0.0
    upstream: str = "not yet reported"

    def concerns(self, target: str, version: str, oracles: Sequence[str], symptom: str, message: str) -> bool:
        """Could this entry explain a discrepancy found by one of these oracles, its operators apart?"""
        return (
            self.oracle in oracles
            and symptom in self.symptoms
            and self.names(target)
            and self.says(message)
            and self.applies_to(version)
            and self.here
        )

    @property
    def here(self) -> bool:
        """Is this processor one of the entry's?"""
        return not self.cpu or machine.has(self.cpu)

    def names(self, target: str) -> bool:
        """Is this target one of the entry's, in whatever environment?"""
        return any(fnmatchcase(target.split("@")[0], glob) for glob in self.targets)

    def says(self, message: str) -> bool:
        """Does the message contain what the entry asks for?"""
        return re.search(self.message, message) is not None

    def applies_to(self, version: str) -> bool:
        """Is this version of the framework one of the entry's?"""
        return not self.versions or SpecifierSet(self.versions, prereleases=True).contains(version)

    def covers(
        self, operator: str, result: TensorType, operands: Sequence[TensorType], parameters: Sequence[TensorType] = ()
    ) -> bool:
        """Is this operator, with these types, one of the entry's? parameters: the types of those operands that are."""
        dtypes = {type_.dtype for type_ in (result, *operands[:1])}
        small = parameters if self.empty == "parameter" else (result, *operands)
        return (
            any(fnmatchcase(operator, glob) for glob in self.operators)
            and (not self.dtypes or not dtypes.isdisjoint(self.dtypes))
            and (not self.empty or any(type_.size == 0 for type_ in small))
            and (not self.constant or len(parameters) == len(operands))
        )


def load(path: Path) -> tuple[KnownIssue, ...]:
    """The entries of a file. Raises KnownFileError naming the file and what is wrong."""
    return known_file.load(path, "issue", KnownIssue, _check)


def _check(entry: Mapping[str, Any]) -> None:
    """Raises ValueError where something else than its keys and symptoms is wrong with an entry."""
    for glob in entry["operators"]:
        if not any(fnmatchcase(name, glob) for name in OPS):
            raise ValueError(f"no operator matches {glob!r}")
    if entry.get("oracle", FORWARD.name) not in QUESTIONS:
        raise ValueError(f"unknown oracle {entry['oracle']!r}; there are {', '.join(QUESTIONS)}")
    for glob in entry["targets"]:
        if not any(fnmatchcase(name, glob) for name in QUESTIONS[entry.get("oracle", FORWARD.name)].targets):
            raise ValueError(f"no target matches {glob!r}")
    SpecifierSet(entry.get("versions", ""))
    for key in ("empty", "constant", "together"):
        if not isinstance(entry.get(key, False), bool) and (key, entry[key]) != ("empty", "parameter"):
            raise ValueError(f"{key} must be true or false")
    if type(entry.get("threads", 1)) is not int:
        raise ValueError("threads must be a whole number")
    if type(entry.get("seconds", 0.0)) not in (int, float):
        raise ValueError("seconds must be a number")
    if not re.fullmatch(r"(!?\w+)?", str(entry.get("cpu", ""))):
        raise ValueError("cpu must be the name of a feature, or ! and the name")


def targets_of(issue: KnownIssue) -> list[Target]:
    """The targets that an entry names, where they are available here and of a version that it names; those that are to
    be asked for only where it names no others; none where it is of other processors."""
    named = [t for t in QUESTIONS[issue.oracle].targets.values() if issue.here and issue.names(t.name)]
    prompt = [target for target in named if not target.asked]
    if issue.oracle == CONVERSION.name:  # the shortest route is enough
        named = named[:1]
    found = [(target, probe(target)) for target in prompt or named]
    return [target for target, here in found if here.available and issue.applies_to(here.version or "0")]


def still_shows(lab: Laboratory, issue: KnownIssue, target: Target, case: Case) -> str:
    """Run an entry's own case: "shows", "fixed", or "not run" with the reason."""
    why = QUESTIONS[issue.oracle].why_not(target, case.graph)
    if why:
        return f"not run: {why}"
    return "shows" if _shown(lab, issue, target, case) else "fixed"


def _shown(lab: Laboratory, issue: KnownIssue, target: Target, case: Case) -> Discrepancy | None:
    """What the entry is about, if it still shows, with the threads and in the time that the entry asks for."""
    limits = lab.pool.limits
    asked = replace(limits, threads=max(issue.threads, limits.threads), seconds=issue.seconds or limits.seconds)
    if asked != limits:
        with Pool(asked) as pool:
            return _found(Laboratory(pool), issue, target, case)
    return _found(lab, issue, target, case)


def _found(lab: Laboratory, issue: KnownIssue, target: Target, case: Case) -> Discrepancy | None:
    """A worker that has run other programs before may hide it (what is compiled, what lies in memory), so that a miss
    is asked again of a fresh one: most entries cost no import."""
    asking = Laboratory(lab.pool, QUESTIONS[issue.oracle])
    for again in (False, True):
        if again:
            lab.pool.fresh(target.framework, target.environment)
        found = asking.judge(case, [target]).verdicts[target.name].discrepancy
        if found and found.symptom in issue.symptoms and issue.says(found.message):
            return found
    return None


def write_reproducers(lab: Laboratory, issues: Sequence[KnownIssue], cases: Path, folder: Path) -> list[str]:
    """Write `FOLDER/ID/reproducer.py` for each entry that has none yet, of the first of its targets that shows it here.
    cases: what the entries' case files are relative to. Returns the ids of those that no target shows."""
    missing = []
    for issue in issues:
        own = folder / issue.id
        if (own / "reproducer.py").exists():
            continue
        case = caseio.loads((cases / issue.case).read_text(encoding="utf-8"))
        for target in targets_of(issue):
            found = _shown(lab, issue, target, case)
            if found:
                own.mkdir(parents=True, exist_ok=True)
                title = f"{issue.id}: {SYMPTOMS[found.symptom].__name__} of {target.name}"
                question = QUESTIONS[issue.oracle]
                outcome = Laboratory(lab.pool, question).returned(target, case, found.symptom)
                shown = exhibit(question, target, case, outcome)
                # alone, it imports the framework in that time, too
                seconds = issue.seconds + 30 if issue.seconds else lab.pool.limits.seconds
                reproducer.write(own, shown, found.symptom, title, seconds)
                break
        else:
            missing.append(issue.id)
    return missing
