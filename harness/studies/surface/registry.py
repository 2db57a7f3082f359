"""A registry: a framework's own list of operators. A tracer: what tells which of them printed programs call."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

HELPERS = Path(__file__).with_name("helpers")
ROOT = Path(__file__).parents[3]


@dataclass(frozen=True)
class Tracer:
    """name:    of the file of helpers/ that defines `observe(program, note)`
    target:    whose programs it reads
    modules:   that its worker imports first
    packages:  whose versions its results depend on
    every:     one of so many sweep cases is traced (slow compilers)
    helpers:   further files that stand before it: of helpers/, or by their paths in this repository
    needs:     a function that its own text calls, so that programs have to carry it"""

    name: str
    target: str
    modules: tuple[str, ...]
    packages: tuple[str, ...]
    every: int = 1
    helpers: tuple[str, ...] = ()
    needs: str = ""


@dataclass(frozen=True)
class Registry:
    """name, title: in tables
    listing:   files of helpers/ that together define `listed() -> {operator: features}`
    modules, packages: as a tracer has them
    tracer:    that meets its operators
    targets:   globs of the targets that run what it lists
    edges:     conversions that take its operators, by name"""

    name: str
    listing: tuple[str, ...]
    modules: tuple[str, ...]
    packages: tuple[str, ...]
    tracer: Tracer
    targets: str
    edges: tuple[str, ...] = ()


def helper(names: tuple[str, ...]) -> str:
    """The text of parts of a program, in order."""
    places = (ROOT / name if "/" in name else HELPERS / f"{name}.py" for name in names)
    return "\n\n\n".join(place.read_text(encoding="utf-8") for place in places)
