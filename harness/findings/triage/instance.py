"""One fault as it was met: an entry of `known/`, or a finding. What triage asks of both, in one record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

from packaging.specifiers import SpecifierSet

from generators.graphs import Case
from harness.backends import Target
from harness.backends.probe import probe
from harness.execute import environments
from harness.execute.globs import any_of
from harness.findings.deviation import Deviation
from harness.findings.known.deviations import KnownDeviation
from harness.findings.known.issues import KnownIssue
from harness.findings.store import Finding
from harness.questions import QUESTIONS
from harness.questions.question import Question
from harness.strategies import STRATEGIES, Strategy

UNREPORTED = "not yet reported"


@dataclass(frozen=True)
class Instance:
    """id:       the entry's id, or the finding's fingerprint
    framework:  whose fault it is: the folder of the entry, the framework of the finding's target
    kind:       "issue", "deviation", "model", "program" (entries), "finding"
    subjects:   targets, strategies or runners that show it: globs of an entry, names of a finding
    reach:      how many of all `asked` subjects these are
    symptoms:   keys of `SYMPTOMS`
    question:   that shows it ("": none is asked)
    operators:  globs of them (none: it is not about operators)
    message:    of an entry the regular expression that it asks for, of a finding what was said
    where:      which elements are wrong, as in issue.toml; conditions: what else has to be there, for people
    versions:   of the framework, for people; fixed: is the installed version not among them?
    upstream:   link ("": not yet reported)
    passes:     of the compiler, those to blame
    case:       the smallest that shows it, where that is a graph with arrays
    bisection:  which releases are wrong, for people ("": not asked)
    threads:    that it needs
    here:       could this processor show it?
    seen:       when it was first found, in UTC ("": the store does not say)"""

    id: str
    framework: str
    kind: str
    subjects: tuple[str, ...]
    reach: int
    asked: int
    symptoms: tuple[str, ...]
    folder: Path
    reason: str = ""
    question: str = ""
    operators: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    message: str = ""
    where: str = ""
    conditions: tuple[str, ...] = ()
    versions: str = ""
    fixed: bool = False
    upstream: str = ""
    passes: tuple[str, ...] = ()
    empty: bool = False
    case: Case | None = None
    bisection: str = ""
    threads: int = 1
    here: bool = True
    seen: str = ""

    @property
    def by_design(self) -> bool:
        """Do the maintainers want it so, as the reason tells?"""
        return "by design" in self.reason.lower()

    @property
    def state(self) -> str:
        """One of STATES."""
        if self.kind == "finding":
            return "new"
        if self.fixed:
            return "fixed"
        if self.by_design:
            return "by design"
        return "reported" if self.upstream else "known"


STATES = ("new", "known", "reported", "by design", "fixed")
"""A finding that stands nowhere yet; an entry that no thread is linked to; one with a thread; one that its maintainers
want so; one that the installed version does not have any more, as its `versions` say."""


@cache
def _of(oracle: str, globs: tuple[str, ...]) -> list[Target]:
    """The targets of a question that an entry names."""
    named, asked = any_of(globs), QUESTIONS[oracle].targets
    return [asked[name] for name in asked if named.match(name.split("@")[0])]


def of_issue(issue: KnownIssue, case: Case) -> Instance:
    """An issue of targets, with the case that shows it."""
    question = QUESTIONS[issue.oracle]
    targets = _of(issue.oracle, issue.targets)
    version = next((found for target in targets if (found := probe(target).version)), None)
    conditions = [
        *(["an operand that is a constant"] if issue.constant else []),
        *(["other operators beside it"] if issue.together is True else []),
        *([f"a processor with{'out' if issue.cpu[0] == '!' else ''} {issue.cpu.lstrip('!')}"] if issue.cpu else []),
        *([f"{issue.threads} threads or more"] if issue.threads > 1 else []),
    ]
    where = issue.where if isinstance(issue.where, str) else "; ".join(f"{k}: {v}" for k, v in issue.where.items())
    return Instance(
        id=issue.id, framework=issue.folder.parent.name, kind="issue", subjects=issue.targets,
        reach=len(targets), asked=len(question.targets), symptoms=issue.symptoms, folder=issue.folder,
        reason=" ".join(issue.reason.split()), question=issue.oracle, operators=issue.operators, dtypes=issue.dtypes,
        message=issue.message, where=where, conditions=tuple(conditions), versions=issue.versions,
        fixed=version is not None and not issue.applies_to(version), upstream=link(issue.upstream),
        empty=bool(issue.empty), case=case, bisection=issue.bisection, threads=issue.threads, here=issue.here,
    )  # fmt: skip


def of_deviation(known: KnownDeviation) -> Instance:
    """A deviation of strategies."""
    named = [name for name in STRATEGIES if any(fnmatchcase(name, glob) for glob in known.strategies)]
    installed = _installed(STRATEGIES[named[0]])
    asked_for = SpecifierSet(known.versions, prereleases=True)
    traits = [*known.where, *([" or ".join(known.one_of)] if known.one_of else [])]
    return Instance(
        id=known.id, framework=known.folder.parent.name, kind="deviation", subjects=known.strategies,
        reach=len(named), asked=len(STRATEGIES), symptoms=known.symptoms, folder=known.folder,
        reason=" ".join(known.reason.split()), message=known.message, versions=known.versions,
        fixed=installed is not None and not asked_for.contains(installed),
        conditions=tuple(f"a training run with {trait}" for trait in traits), upstream=link(known.upstream),
        bisection=known.bisection,
    )  # fmt: skip


def of_finding(finding: Finding, framework: str, folder: Path, case: Case, bisection: str = "") -> Instance:
    """A finding of a hunt. framework: of its target; bisection: which releases are wrong, for people."""
    asked: Question | None = QUESTIONS.get(finding.oracle)
    dtypes = tuple(dict.fromkeys(node.type.dtype for node in case.graph.nodes))
    return Instance(
        id=finding.fingerprint, framework=framework, kind="finding", subjects=finding.targets,
        reach=len(finding.targets), asked=len(asked.targets) if asked else len(finding.targets),
        symptoms=(finding.symptom,), folder=folder, question=finding.oracle, operators=finding.operators,
        dtypes=dtypes, message=finding.message, conditions=tuple(filter(None, [finding.condition])),
        passes=finding.passes, versions=_listed(finding.versions),
        reason=f"{finding.message}. First diverging node: {finding.diverging}." if finding.diverging else "",
        empty=any(leaf.type.size == 0 for leaf in case.graph.leaves), case=case, bisection=bisection,
    )  # fmt: skip


def of_training_finding(found: Deviation, framework: str, folder: Path) -> Instance:
    """A finding of a training run."""
    return Instance(
        id=found.fingerprint, framework=framework, kind="finding", subjects=(found.strategy,), reach=1,
        asked=len(STRATEGIES), symptoms=(found.symptom,), folder=folder, message=found.message,
        versions=_listed(found.versions), reason=f"{found.part}: {found.message}",
    )  # fmt: skip


def _installed(strategy: Strategy) -> str | None:
    """The version of its framework, where its environment is there."""
    try:
        return next(iter(environments.versions_of(strategy.packages[:1], strategy.environment).values()), None)
    except environments.EnvironmentsError:
        return None


def link(upstream: str) -> str:
    """An entry's `upstream`, empty where it says that nothing is reported."""
    return "" if upstream == UNREPORTED else upstream


def _listed(versions: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items())
