"""Who may import whom, and how long a file may be."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
LONGEST = 420

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
    "generators": {"numpy", "ml_dtypes", "hypothesis", "generators"},
    "oracles": {"numpy", "scipy", "ml_dtypes", "generators", "oracles"},
}
"""What a room may import beside the standard library; `harness` may import anything but the rest of this page."""


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
    if path.as_posix() in ("harness/execute/worker.py", "harness/execute/zygote.py"):
        return names - {"numpy", "worker"}
    if room in ALLOWED:
        return names - ALLOWED[room]
    if room == "harness":
        helper = path.parent.name in ("dialects", "models") and path.stem.endswith(
            "_helpers"
        )  # text of printed programs
        return names & ({"tests", "conftest", "relative"} | (set() if helper else FRAMEWORKS))
    return names & {"relative"}


def files() -> list[Path]:
    rooms = ("generators", "oracles", "harness", "tests")
    found = [path for room in rooms for path in sorted((ROOT / room).rglob("*.py"))]
    assert len(found) > 40
    return [*found, ROOT / "conftest.py"]


@pytest.mark.parametrize("path", [p.relative_to(ROOT) for p in files()], ids=str)
def test_file(path: Path) -> None:
    text = (ROOT / path).read_text(encoding="utf-8")
    assert not forbidden(path, text), f"{path} must not import these"
    assert len(text.splitlines()) <= LONGEST, f"{path} is too long: split it by purpose"


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
        ("harness/execute/worker.py", "import numpy\nimport harness.execute.pool", {"harness"}),
    ],
)
def test_the_rule_itself(path: str, source: str, names: set[str]) -> None:
    assert forbidden(Path(path), source) == names


def test_files_of_tests_have_names_of_their_own() -> None:
    """Without packages pytest imports them by name: two of one name end the run at collection."""
    names = [path.name for room in ("tests", "tests/meta") for path in (ROOT / room).glob("*.py")]
    assert len(set(names)) == len(names), sorted({name for name in names if names.count(name) > 1})
