"""All that was found, as triage wants it: the entries of `known/`, and the findings of a folder."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path

from packaging.specifiers import SpecifierSet

from generators import caseio
from harness.backends import TARGETS
from harness.conversions.formats import RUNNERS
from harness.execute.processes.worker import versions_of
from harness.execute.reading import read_by, read_json
from harness.findings.bisection import search
from harness.findings.deviation import Deviation
from harness.findings.known import deviations, issues, programs
from harness.findings.store import Finding
from harness.findings.triage import instance
from harness.findings.triage.instance import Instance
from harness.models import known as models
from harness.questions import QUESTIONS
from harness.strategies import STRATEGIES


def entries(root: Path) -> list[Instance]:
    """All entries of a folder of what is known. Raises FileError."""
    found = [instance.of_issue(issue, read_by(issue.case, caseio.loads)) for issue in issues.load(root)]
    return [*found, *beside_issues(root)]


def beside_issues(root: Path) -> list[Instance]:
    """Entries on strategies, on models that are given, and on programs of their own. Raises FileError."""
    found = [instance.of_deviation(known) for known in deviations.load(root)]
    found += [of_model(known) for known in models.load(root)]
    return [*found, *(of_program(known) for known in programs.load(root))]


def of_model(known: models.KnownModel) -> Instance:
    """An issue of models that are given."""
    have = versions_of(list(known.versions))
    fixed = any(not SpecifierSet(known.versions[name], prereleases=True).contains(have[name]) for name in have)
    needed = [f"a model with {', '.join(names)}" for names in (known.nodes, known.layers) if names]
    subjects = known.runners or known.edges
    named = [name for name in RUNNERS if models.matches(name, known.runners)] if known.runners else subjects
    return Instance(
        id=known.id, framework=known.folder.parent.name, kind="model", subjects=subjects, reach=len(named),
        asked=len(RUNNERS), symptoms=known.symptoms, folder=known.folder, reason=" ".join(known.reason.split()),
        message=known.message, conditions=tuple(needed),
        versions=", ".join(f"{name} {spec}" for name, spec in known.versions.items()), fixed=fixed,
        upstream=instance.link(known.upstream), bisection=known.bisection,
    )  # fmt: skip


def of_program(known: programs.KnownProgram) -> Instance:
    """A fault that a program of its own shows."""
    have = versions_of([known.package])
    wanted = SpecifierSet(known.versions, prereleases=True)
    return Instance(
        id=known.id, framework=known.folder.parent.name, kind="program", subjects=known.targets,
        reach=len(known.targets), asked=len(TARGETS), symptoms=known.symptoms, folder=known.folder,
        reason=" ".join(known.reason.split()), message=known.message, versions=known.versions,
        fixed=any(not wanted.contains(version) for version in have.values()), upstream=instance.link(known.upstream),
        bisection=known.bisection,
    )  # fmt: skip


def found(folder: Path) -> list[Instance]:
    """All findings of a folder, those of training runs among them. Raises FileError."""
    return [of_folder(path.parent) for path in sorted(folder.glob("[!.]*/finding.json"))]


def of_folder(folder: Path) -> Instance:
    """The finding that this folder keeps. Raises FileError."""
    path = folder / "finding.json"
    if "strategy" in read_json(path, dict):
        deviation = read_json(path, Deviation)
        strategy = STRATEGIES.get(deviation.strategy)
        framework = strategy.framework if strategy else deviation.strategy.split("-")[0]
        return instance.of_training_finding(deviation, framework, folder)
    finding = read_json(path, Finding)
    question = QUESTIONS.get(finding.oracle)
    target = question.targets.get(finding.target) if question else None
    framework = target.framework if target else finding.target.split("-")[0]
    case = read_by(folder / "graph.json", caseio.loads)
    return instance.of_finding(finding, framework, folder, case, search.of(folder))


def names_of(one: Instance) -> list[str]:
    """Targets that an instance names."""
    question = QUESTIONS[one.question]
    return [name for name in question.targets if any(fnmatchcase(name, glob) for glob in one.subjects)]
