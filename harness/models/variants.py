"""A variant of a given model: a file of it (as given, or converted) and who runs it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from harness.conversions.formats import RUNNERS, Runner

DIRECT = "as given"


@dataclass(frozen=True)
class ModelFile:
    """path: of the file or folder; format: its name; edges: the conversions that made it, none for the given file;
    versions: of the tools that made it."""

    path: Path
    format: str
    edges: tuple[str, ...] = ()
    versions: tuple[tuple[str, str], ...] = ()

    @property
    def conversion(self) -> str:
        """Its edges in one string."""
        return " > ".join(self.edges) or DIRECT

    @property
    def told(self) -> str:
        """What it is, with the versions of the tools."""
        tools = ", ".join(f"{name} {version}" for name, version in self.versions)
        return f"{self.format} by {self.conversion} ({tools})" if self.edges else f"the given {self.format} model"


@dataclass(frozen=True)
class Refusal:
    """A conversion that made no file, or a runner that is not here. what: its name; why: its message."""

    what: str
    why: str


@dataclass(frozen=True)
class Variant:
    """One file run by one runner."""

    file: ModelFile
    runner: Runner
    device: str = "cpu"

    @property
    def name(self) -> str:
        """The runner, and how the model came to it."""
        return f"{self.runner.name} ({self.file.conversion})" if self.file.edges else self.runner.name

    @property
    def library(self) -> str:
        """The first word of its runner: runners of one format that share it are levels of one library."""
        return self.runner.name.split("-")[0]

    @property
    def owner(self) -> str:
        """Whose kernels it runs on."""
        return self.runner.owner or self.runner.framework

    @property
    def optimisation(self) -> str:
        """What its runner adds to that word and the format's name, where there are several of them for the format."""
        others = [r for r in RUNNERS.values() if r.format == self.file.format and r.name != self.runner.name]
        if not any(other.name.split("-")[0] == self.library for other in others):
            return "default"
        return self.runner.name.removesuffix(f"-{self.file.format}").partition("-")[2] or "default"

    @property
    def family(self) -> tuple[str, str]:
        """Variants of one family differ in their optimisation only."""
        return self.library, self.file.conversion
