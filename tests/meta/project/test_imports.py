"""Who may import whom, how long a file may be, how much stands in a folder."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from graphlib import CycleError, TopologicalSorter
from pathlib import Path, PurePosixPath

import pytest
from project.floors import FLOORS

ROOT = Path(__file__).parents[3]
LONGEST = 400
"""Lines of a file."""
MOST = 15
"""Entries of a folder."""
CROWDED = ("generators/ops/*", "known/*")
"""Folders of many records of one kind, which may hold more."""

FRAMEWORKS = {
    "ai_edge_litert",
    "jax",
    "jaxlib",
    "keras",
    "onnx",
    "onnxruntime",
    "openvino",
    "tensorflow",
    "torch",
    "tvm",
}
ALLOWED = {
    "generators": {"numpy", "scipy", "ml_dtypes", "hypothesis", "msgspec", "generators"},  # msgspec checks what is read
    "oracles": {"numpy", "scipy", "ml_dtypes", "generators", "oracles"},
}
"""What a room may import beside the standard library; `harness` may import anything but the rest of this page."""
FORMATS = {"oracles/onnx/*": {"onnx"}}
"""What evaluates models of a format reads them with its library."""
STANDALONE = tuple(
    f"harness/execute/{name}.py"
    for name in ("processes/rank", "processes/worker", "processes/zygote", "isolation/confine", "isolation/keeper")
)
PRINTED = (
    "harness/dialects/functions/*",
    "harness/conversions/helpers/*",
    "harness/models/helpers/*",
    "harness/studies/conformance/helpers/*",
    "harness/studies/faults/guard/*",
    "harness/studies/faults/helpers/*",
    "harness/studies/surface/baits/helpers/*",
    "harness/studies/surface/helpers/*",
)
"""Text of printed programs, read and never imported by Dissent; the guard is for training loops of others, too."""
GATES = ("harness/conversions/gate/*",)
"""Run in a confined worker alone; inside functions they ask a format's own schema and parser."""


def imported(source: str) -> set[str]:
    """Top-level names of all modules that a file imports, anywhere in it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add("relative" if node.level else (node.module or "").split(".")[0])
    return names


def forbidden(path: Path, source: str) -> set[str]:
    """What the file at this path of the repository imports and may not."""
    names = imported(source) - set(sys.stdlib_module_names)
    room = path.parts[0]
    if path.as_posix() in STANDALONE:
        return names - {"numpy", "rank", "worker"}
    if room in ALLOWED:
        own = [modules for glob, modules in FORMATS.items() if fnmatchcase(path.as_posix(), glob)]
        return names - ALLOWED[room].union(*own)
    if room == "harness":
        printed = any(fnmatchcase(path.as_posix(), glob) for glob in (*PRINTED, *GATES))
        return names & ({"tests", "conftest", "relative"} | (set() if printed else FRAMEWORKS))
    return names & {"relative"}


ROOMS = ("generators", "oracles", "harness", "tests", "conftest.py")


def files(room: str) -> list[Path]:
    """Of the repository, from its root."""
    found = sorted((ROOT / room).rglob("*.py")) or [ROOT / room]
    return [path.relative_to(ROOT) for path in found]


@pytest.mark.parametrize("room", ROOMS)
def test_files_import_what_they_may(room: str) -> None:
    found = {path.as_posix(): forbidden(path, (ROOT / path).read_text(encoding="utf-8")) for path in files(room)}
    assert not {path: names for path, names in found.items() if names}


@pytest.mark.parametrize("room", ROOMS)
def test_files_are_no_longer_than_one_purpose_takes(room: str) -> None:
    lengths = {path.as_posix(): len((ROOT / path).read_text(encoding="utf-8").splitlines()) for path in files(room)}
    assert not {path: length for path, length in lengths.items() if length > LONGEST}


@pytest.mark.parametrize(
    ("path", "source", "names"),
    [
        ("generators/a.py", "def f():\n    import torch", {"torch"}),
        ("generators/a.py", "from oracles import forward", {"oracles"}),
        ("generators/a.py", "import json\nimport numpy as np\nfrom hypothesis import strategies", set()),
        ("oracles/a.py", "import hypothesis, numpy", {"hypothesis"}),
        ("oracles/a.py", "from harness.execute.pool import Pool", {"harness"}),
        ("oracles/a.py", "import scipy.special", set()),
        ("harness/a.py", "from tests.meta import planted", {"tests"}),
        ("harness/a.py", "import tensorflow.python", {"tensorflow"}),
        ("harness/a.py", "from . import pool", {"relative"}),
        ("harness/backends/a.py", "from harness.backends import torch", set()),
        ("harness/dialects/functions/torch/basic.py", "import torch", set()),
        ("harness/dialects/torch.py", "import torch", {"torch"}),
        ("harness/execute/processes/worker.py", "import numpy\nimport harness.execute.pool", {"harness"}),
    ],
)
def test_the_rule_itself(path: str, source: str, names: set[str]) -> None:
    assert forbidden(Path(path), source) == names


@pytest.mark.slow
def test_reproducers_stand_alone() -> None:
    found = sorted((ROOT / "known").glob("*/*/reproducer.py"))
    assert len(found) > 400
    ours = {"generators", "oracles", "harness", "tests", "conftest", "relative"}
    wrong = [path for path in found if imported(path.read_text(encoding="utf-8")) & ours]
    assert wrong == []


Arrows = Mapping[str, Mapping[str, set[str]]]
"""By entry of a folder: the entries beside it that it imports, each with the files that do."""


def arrows(sources: Mapping[str, str]) -> dict[str, Arrows]:
    """By folder, what its entries import of each other. sources: path in the repository -> text."""
    modules = {_module(path): path for path in sources}
    found: dict[str, dict[str, dict[str, set[str]]]] = defaultdict(lambda: defaultdict(lambda: defaultdict(set)))
    for path, source in sources.items():
        for name in _named(ast.parse(source), modules):
            here, there = _parts(path), _parts(modules[name])
            depth = next((i for i, (a, b) in enumerate(zip(here, there, strict=False)) if a != b), None)
            if depth is not None:
                folder = "/".join(here[:depth]) or "."
                found[folder][here[depth]][there[depth]].add(path)
    return {folder: dict(entries) for folder, entries in found.items()}


def _module(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _parts(path: str) -> tuple[str, ...]:
    return PurePosixPath(path).with_suffix("").parts


def _named(tree: ast.AST, modules: Mapping[str, str]) -> Iterable[str]:
    """Modules of ours that a file imports."""
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            whole = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [name if name in modules else node.module for name in whole]
        yield from (name for name in names if name in modules)


def floors(plan: str) -> list[list[str]]:
    return [floor.split() for floor in plan.split("|")]


def floor_of(entry: str, plan: str) -> int:
    """Which floor an entry stands on, counted from the ground."""
    for wanted in (entry, "*"):
        for number, names in enumerate(floors(plan)):
            if wanted in names:
                return number
    raise LookupError(f"{entry} has no floor in {plan!r}")


def rising(folder: str, entries: Arrows, plan: str) -> list[str]:
    """Arrows up, a line each; an entry that has no floor, or a circle, is a line, too."""
    lines = []
    for entry, others in sorted(entries.items()):
        for other, paths in sorted(others.items()):
            try:
                if floor_of(entry, plan) < floor_of(other, plan):
                    lines.append(f"{folder}: {entry} imports {other}, which is above it ({', '.join(sorted(paths))})")
            except LookupError as error:
                lines.append(f"{folder}: {error}")
    try:
        TopologicalSorter({entry: set(others) for entry, others in entries.items()}).prepare()
    except CycleError as error:
        lines.append(f"{folder}: a circle: {' imports '.join(reversed(error.args[1]))}")
    return lines


def _sources() -> dict[str, str]:
    return {
        path.as_posix(): (ROOT / path).read_text(encoding="utf-8")
        for room in ("generators", "oracles", "harness")
        for path in files(room)
    }


def test_imports_go_down() -> None:
    found = arrows(_sources())
    assert set(found) > {".", "generators", "oracles", "harness"}
    lines = [line for folder, entries in found.items() for line in rising(folder, entries, FLOORS.get(folder, "*"))]
    assert not lines, "\n".join(lines)


def test_every_floor_is_of_something() -> None:
    """A line of the plan names entries that are there, each once."""
    for folder, plan in FLOORS.items():
        names = [name for floor in floors(plan) for name in floor if name != "*"]
        assert len(set(names)) == len(names), folder
        missing = [name for name in names if not any((ROOT / folder / f"{name}{end}").exists() for end in ("", ".py"))]
        assert not missing, f"{folder}: {missing}"


def test_what_runs_up_is_seen() -> None:
    sources = {
        "harness/a/__init__.py": "",
        "harness/a/one.py": "def f():\n    from harness.b.two import x",
        "harness/b/__init__.py": "",
        "harness/b/two.py": "from harness.a import one\nimport harness.c",
        "harness/c.py": "",
    }
    entries = arrows(sources)["harness"]
    assert entries == {"a": {"b": {"harness/a/one.py"}}, "b": {"a": {"harness/b/two.py"}, "c": {"harness/b/two.py"}}}
    assert rising("harness", entries, "c | a | b") == [
        "harness: a imports b, which is above it (harness/a/one.py)",
        "harness: a circle: a imports b imports a",
    ]
    assert rising("harness", {"b": entries["b"]}, "c | a | b") == []
    assert rising("harness", {"b": {"a": {"p"}}}, "a") == ["harness: b has no floor in 'a'"]


def _folders() -> dict[str, set[str]]:
    """Entries by folder, of what git has, or would have."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    found: dict[str, set[str]] = defaultdict(set)
    for name in listed:
        path = PurePosixPath(name)
        if (ROOT / name).exists():
            for entry, folder in zip((path, *path.parents), path.parents, strict=False):
                found[str(folder)].add(entry.name)
    return found


def test_no_folder_is_crowded() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("not a checkout: what stands in a folder is asked of git")
    for folder, entries in _folders().items():
        shown = {name for name in entries if not name.startswith(".")}
        if not any(fnmatchcase(folder, glob) for glob in CROWDED):
            assert len(shown) <= MOST, f"{folder} has {len(shown)} entries: {' '.join(sorted(shown))}"


def test_files_of_tests_have_names_of_their_own() -> None:
    """Without packages pytest imports them by name: two of one name end the run at collection."""
    names = [path.name for path in (ROOT / "tests").rglob("test_*.py")]
    assert len(set(names)) == len(names), sorted({name for name in names if names.count(name) > 1})
