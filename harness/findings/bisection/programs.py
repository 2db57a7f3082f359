"""Reproducers: what they need, what they say with an interpreter, and what they say with a release of a package."""

from __future__ import annotations

import ast
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory

from packaging.utils import canonicalize_name
from packaging.version import Version

from harness.execute import environments, releases
from harness.execute.environments import Environment, EnvironmentsError, build
from harness.execute.isolation.signals import ends_with_parent
from harness.execute.reading import FileError, read_text
from harness.execute.variables import variables_in, variables_of
from harness.findings import written
from harness.findings.bisection import answers
from harness.findings.bisection.answers import Answers
from harness.findings.bisection.search import RIGHT, UNKNOWN, WRONG, Answer, Bisection

PLAIN = "reproduced"
"""What a program says that has no words of a framework to tell."""


@dataclass(frozen=True)
class Needs:
    """What a program runs with today. environment: its name, empty where it is the one that Dissent runs in; versions:
    of the distributions that it needs; bare: of those that are installed without what they ask for; named: all that it
    says it ran with, in this order."""

    environment: str
    versions: Mapping[str, str]
    bare: Mapping[str, str]
    named: tuple[str, ...] = ()

    @property
    def all(self) -> dict[str, str]:
        return {**self.versions, **self.bare}


def needs_of(path: Path) -> Needs:
    """What its imports come from, or, where it says that it ran in an environment of its own, what is installed there.
    Raises FileError."""
    told = written.read(path.parent) if path.name == written.FILE else None
    versions, name = (told.versions, told.environment) if told else ("", "")
    named = tuple(part.split()[0].partition("|")[0] for part in versions.split(", ") if part)
    if name:
        known = environments.named(name)
        return Needs(name, _pins(known.packages), _pins(known.no_deps), named)
    return Needs("", releases.distributions(modules_of(path)), {}, named)


def _pins(requirements: tuple[str, ...]) -> dict[str, str]:
    pairs = [requirement.partition("==") for requirement in requirements]
    return {canonicalize_name(name): version for name, _, version in pairs}


def modules_of(path: Path) -> set[str]:
    """What a reproducer imports, or looks for, at the top of its names. Raises FileError."""
    try:
        tree = ast.parse(read_text(path))
    except (SyntaxError, ValueError, RecursionError) as error:
        raise FileError(f"{path}: {error}") from error
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                found |= {alias.name.partition(".")[0] for alias in names}
            case ast.ImportFrom(module=str(name), level=0):
                found.add(name.partition(".")[0])
            case ast.For(target=ast.Name(id="module"), iter=ast.List(elts=items)):
                found |= {str(item.value).partition(".")[0] for item in items if isinstance(item, ast.Constant)}
            case ast.Attribute(value=ast.Name(id="torch"), attr="onnx"):
                found.add("onnx")  # without which its exporter by TorchScript refuses to write
    return found


def run(path: Path, python: str, seconds: float, threads: int = 1) -> Answer:
    """What a reproducer says with an interpreter."""
    with TemporaryDirectory() as folder:
        variables = variables_of(threads) | variables_in(Path(folder))
        variables["PATH"] = f"{Path(python).parent}:{variables['PATH']}"  # commands that come with packages
        try:
            done = _ended([python, str(path)], Path(folder), variables, seconds)
        except subprocess.TimeoutExpired:
            return Answer(UNKNOWN, f"nothing within {seconds:g} s", lasting=False)
    lines = [line for line in done.stdout.splitlines() if line.strip()]
    told = [line for line in lines if line.startswith((PLAIN, "the process ended"))]
    if done.returncode == 0:
        return Answer(RIGHT, (lines or [""])[-1])
    if done.returncode == 1 and told:
        return Answer(WRONG, told[-1])
    last = (lines if done.returncode == 77 else done.stderr.strip().splitlines()) or [""]
    return Answer(UNKNOWN, last[-1].strip() or f"exit status {done.returncode}")


def _ended(
    command: list[str], folder: Path, variables: Mapping[str, str], seconds: float
) -> subprocess.CompletedProcess[str]:
    """What a program said. Whatever it started ends with it: compilers that are commands outlive who called them.
    Raises TimeoutExpired."""
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder, env=variables,
        errors="replace", start_new_session=True, preexec_fn=ends_with_parent(signal.SIGKILL),
    ) as process:  # fmt: skip
        try:
            told, complaint = process.communicate(timeout=seconds)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    return subprocess.CompletedProcess(command, process.returncode, told, complaint)


def alike(answer: Answer, first: Answer) -> Answer:
    """An answer beside that of the version that is here: a rejection in other words, or an end of another kind, is
    another fault, or something that the release does not know yet."""
    if answer.state != WRONG or _kind(answer.told) == _kind(first.told):
        return answer
    return Answer(UNKNOWN, f"fails otherwise: {answer.told}")


def _kind(told: str) -> str:
    """What is wrong, without places and numbers; signals are all alike, those that end a framework's own tools among
    them."""
    told = told.removeprefix(f"{PLAIN}: ")
    if told.startswith("the process ended"):
        return "signal" if "-" in told else told
    told = re.sub(r"\b(code|status):? -\d+", "signal", told)
    named = re.sub(r"'[^']*'|\"[^\"]*\"|(/[\w.+-]+){2,}|\d[\w.]*", " ", told)
    return " ".join(re.findall(r"\w+", named))


@dataclass(eq=False)
class Program:
    """A reproducer that is asked with releases of a package; environments are built on demand. kept: what is known
    already; trusted: take it that the version that is here shows it; words: does it fail in words of the framework,
    which have to be compared? tell: takes a line for each environment that is built."""

    path: Path
    package: str
    needs: Needs
    seconds: float
    threads: int
    kept: Answers
    trusted: bool = False
    words: bool = True
    tell: Callable[[str], None] = lambda line: None

    @property
    def here(self) -> Version:
        """The version that it runs with today."""
        return Version(self.needs.all[self.package])

    @cached_property
    def digest(self) -> str:
        return answers.digest(self.path)

    def places(self, version: Version) -> tuple[Environment, ...]:
        """The environments that a release may be asked in: none for what is here."""
        return () if version == self.here else self._places(version)

    def _places(self, version: Version) -> tuple[Environment, ...]:
        return tuple(releases.environments_of(self.package, version, self.needs.versions, self.needs.bare))

    def known(self, version: Version) -> Answer | None:
        """What can be said of a release without running it."""
        if version == self.here and self.trusted:
            return Answer(WRONG, PLAIN)
        kept = self.kept.get(self.digest, self._places(version)[0].name)
        return kept if kept is None or version == self.here else self._beside_first(kept)

    def ask(self, version: Version) -> Answer:
        """What a release says. Raises FileError and OSError."""
        if known := self.known(version):
            return known
        if version == self.here:
            return self.first
        said = self._said(version)
        self.kept.add(self.digest, self._places(version)[0].name, said)
        return self._beside_first(said)

    def check(self, found: Bisection) -> None:
        """What is trusted is run after all where no other release bears it out. Raises ValueError."""
        others = [answer for version, answer in found.answers.items() if version != self.here]
        if self.trusted and all(answer.state == UNKNOWN for answer in others) and self.first.state != WRONG:
            raise ValueError(f"{self.package}: no release shows it, nor does that which is here: {self.first.told}")

    def _said(self, version: Version) -> Answer:
        said = Answer(UNKNOWN, "no environment", lasting=False)
        for asked in self._places(version):
            if asked not in _failures and not asked.stamp.exists():
                self.tell(f"environment for {' '.join((*asked.packages, *asked.no_deps))}")
            why = _failure(asked)
            if why:
                said = Answer(UNKNOWN, why, lasting=False)
                continue
            said = run(self.path, str(asked.interpreter), self.seconds, self.threads)
            if said.state != UNKNOWN or not _UNLOADED.search(said.told):
                break
        return said

    def _beside_first(self, said: Answer) -> Answer:
        """Where what is here is only trusted, it is run for the words alone."""
        same = said.state != WRONG or (self.trusted and not self.words and said.told == PLAIN)
        return said if same else alike(said, self.first)

    @cached_property
    def first(self) -> Answer:
        """What the version that is here says."""
        asked = self._places(self.here)[0].name
        known = self.kept.get(self.digest, asked)
        if known:
            return known
        name = self.needs.environment
        python = str(environments.create(name).interpreter) if name else sys.executable
        found = run(self.path, python, self.seconds, self.threads)
        self.kept.add(self.digest, asked, found)
        return found


_UNLOADED = re.compile(r"ImportError|ModuleNotFoundError|numpy", re.IGNORECASE)
"""What a release says that does not go with the packages beside it."""


_failures: dict[Environment, str] = {}


def _failure(asked: Environment) -> str:
    """Build an environment. Why it cannot be, which is found out once; empty where it is there."""
    if asked not in _failures:
        try:
            build(asked)
        except EnvironmentsError as error:
            _failures[asked] = str(error)
    return _failures.get(asked, "")
