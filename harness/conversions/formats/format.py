"""A model file: what its format is, who can run it, and how a drawn graph is written as one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from harness.dialects import Dialect


@dataclass(frozen=True)
class Writer:
    """dialect: that the graph is printed in
    write:      source of `def write(parameters, path)`, which may use what that dialect's programs have, `model`,
                INPUTS, PARAMETERS and OUTPUTS
    modules, packages: what it imports, and PyPI distributions with the least version that this was written for
    inherits:   names of targets that do to a graph what writing it as a file does: their known issues hold here
    name:       that routes begin with (empty: the dialect's)
    like:       how a route begins by which the same file comes, written otherwise (tensorflow, jax/jax2tf): the known
                issues of its further way hold here
    refuses:    as that of `Format`: what shows when the file is run
    narrows:    dtype -> that in which what is written computes, as it documents
    on_request: only a route that is named begins so
    """

    dialect: Dialect
    write: str
    modules: tuple[str, ...]
    packages: Mapping[str, str]
    inherits: tuple[str, ...]
    name: str = ""
    like: str = ""
    refuses: tuple[tuple[str, str], ...] = ()
    narrows: Mapping[str, str] = field(default_factory=dict)
    on_request: bool = False


@dataclass(frozen=True)
class Format:
    """name:    e.g. onnx
    suffix:     that files (or, without one, folders) of it have where we write them
    suffixes:   by which a file is taken for one of it; of a folder none
    check:      why what lies at a path is not of this format though its name says so, or None; it reads the first bytes
                or the names in an archive, and loads nothing
    executes:   why opening a file runs code that the file carries (empty: it does not); refused unless it is trusted
    writers:    how a drawn graph is written as one
    refuses:    (regular expression of "class: message", why): what writing it documents not to do"""

    name: str
    suffix: str
    suffixes: tuple[str, ...]
    check: Callable[[Path], str | None]
    executes: str = ""
    writers: tuple[Writer, ...] = ()
    refuses: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Runner:
    """name:    e.g. ort-all
    format:     name of the format that it takes
    framework:  the worker that runs it
    modules:    what that worker imports first
    packages:   PyPI distributions and the least version that this was written for
    open:       source of `def open_model(path)`, which returns (inputs, outputs, call); numpy is np. The first two list
                (name, dtype, shape), in the model's own order; a dimension that varies is None, and so is what the file
                does not say. `call` takes arrays in that order and returns a list of arrays. TRUST says whether code
                that the file carries may be executed
    narrows:    dtype -> the dtype that it is computed in instead, where the runner documents that
    reference:  is it the plain implementation that the format's authors keep beside the fast one?
    inherits:   names of targets that run graphs by the same kernels: their known issues hold here, too
    level:      how much it optimises, beside other runners of the same library and format: one of a higher level that
                is slower than one of a lower level is a finding
    slow:       it compiles for seconds or minutes when it opens a file: it runs models that are given (of several files
                of its format the one that the fewest conversions made), and no drawn graphs
    refuses:    (regular expression of "class: message", why): what it says of what it has no kernel for
    owner:      whose kernels compute: runners of one owner are no two opinions (empty: that of the framework)"""

    name: str
    format: str
    framework: str
    modules: tuple[str, ...]
    packages: Mapping[str, str]
    open: str
    narrows: Mapping[str, str] = field(default_factory=dict)
    reference: bool = False
    inherits: tuple[str, ...] = ()
    level: int = 0
    slow: bool = False
    refuses: tuple[tuple[str, str], ...] = ()
    owner: str = ""


def begins(magic: bytes, at: int = 0) -> Callable[[Path], str | None]:
    """A check that certain bytes stand at a place of the file."""

    def check(path: Path) -> str | None:
        with path.open("rb") as file:
            file.seek(at)
            found = file.read(len(magic))
        return None if found == magic else f"{magic!r} does not stand at byte {at}"

    return check


def not_empty(path: Path) -> str | None:
    """The check of a format whose files have no common beginning."""
    return None if path.stat().st_size else "the file is empty"
