"""Adding is one file: written into a copy of the project, it is found, and nothing else names it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def block(heading: str) -> str:
    """The Python code under a heading of the README."""
    found = re.search(rf"^### {heading}$.*?^```python\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL)
    assert found, heading
    return found[1]


DIALECT = """
from dataclasses import replace

from harness.dialects.torch import TORCH

DIALECTS = (replace(TORCH, name="added", spellings={"neg": "-{0}"}),)
"""
EDGE = """
from harness.conversions.edges.edge import Edge

EDGES = (Edge("added", "onnx", "onnx", ("onnx",), {"onnx": "1.17"}, "def convert(source, target): ..."),)
"""
FORMAT = """
from harness.conversions.formats.format import Format, Runner, not_empty

FORMATS = (Format("added", ".added", (".added",), not_empty),)
RUNNERS = (Runner("added-runner", "added", "torch", ("torch",), {"torch": "2.9"}, "def open_model(path): ..."),)
"""
QUANTISER = """
from dataclasses import replace

from harness.quantisers.onnxruntime import QUANTISERS as THEIRS

QUANTISERS = (replace(THEIRS[0], name="added"),)
"""
STRATEGY = """
from dataclasses import replace

from harness.strategies.torch.ddp import STRATEGIES as THEIRS

STRATEGIES = (replace(THEIRS[0], name="added"),)
"""
COMMAND = """
def added() -> None:
    \"\"\"Say that it is there.\"\"\"
    print("it is there")


COMMANDS = (added,)
"""
BAIT = """
from generators.baits.bait import Bait

BAITS = (Bait("added-bait", ("nobody/rule",), lambda p: p.neg(p.neg(p.input(2, 3)))),)
"""
ADDED: Mapping[str, str] = {
    "generators/baits/patterns/added.py": BAIT,
    "harness/backends/torch_fx.py": block("Adding a back end"),
    "harness/questions/odd.py": block("Adding an oracle"),
    "harness/dialects/added.py": DIALECT,
    "harness/dialects/functions/torch/added.py": "def added(x):\n    return x\n",
    "harness/conversions/edges/added.py": EDGE,
    "harness/conversions/formats/added.py": FORMAT,
    "harness/quantisers/added.py": QUANTISER,
    "harness/strategies/torch/added.py": STRATEGY,
    "harness/commands/added.py": COMMAND,
    "harness/commands/study/added.py": COMMAND.replace("COMMANDS", "STUDIES"),
}
"""A new file -> its text."""
NAMES = """
from generators.baits import BAITS
from harness.backends import TARGETS
from harness.conversions.edges import EDGES
from harness.conversions.formats import FORMATS, RUNNERS
from harness.dialects import DIALECTS
from harness.dialects.dialect import functions, helper_sources
from harness.quantisers import QUANTISERS
from harness.questions import QUESTIONS
from harness.strategies import STRATEGIES

for found in (TARGETS, QUESTIONS, DIALECTS, EDGES, FORMATS, RUNNERS, QUANTISERS, STRATEGIES, BAITS):
    print(*found)
print(*helper_sources(functions("torch")[0]))
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project with the new files."""
    folder = tmp_path_factory.mktemp("copy")
    for room in ("generators", "oracles", "harness"):
        shutil.copytree(ROOT / room, folder / room, ignore=shutil.ignore_patterns("__pycache__"))
    for path, text in ADDED.items():
        assert not (folder / path).exists(), path
        (folder / path).write_text(text, encoding="utf-8")
    return folder


def said(copy: Path, *arguments: str) -> str:
    """What Python prints there."""
    done = subprocess.run([sys.executable, *arguments], cwd=copy, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_records_are_there(copy: Path) -> None:
    targets, questions, dialects, edges, formats, runners, quantisers, strategies, baits, functions = (
        line.split() for line in said(copy, "-c", NAMES).splitlines()
    )
    assert (targets[0], targets[-1]) == ("torch-eager", "torch-fx")
    assert (questions[0], questions[-1]) == ("forward", "odd")
    assert (runners[0], runners[-1]) == ("tf-savedmodel", "added-runner")
    for found in (dialects, edges, formats, quantisers, strategies):
        assert found[-1] == "added"
        assert len(found) > 5
    assert "added" in functions
    assert "added-bait" in baits


def test_commands_are_there(copy: Path) -> None:
    assert "it is there" in said(copy, "-m", "harness", "added")
    assert "it is there" in said(copy, "-m", "harness", "study", "added")


@pytest.mark.slow
def test_they_work_like_the_others(copy: Path) -> None:
    """The new target, question, dialect, edge, quantiser and strategy, by the commands that list or take them."""
    assert "torch-fx" in said(copy, "-m", "harness", "targets")
    assert "added" in said(copy, "-m", "harness", "ops").splitlines()[1]
    assert re.search(r"\badded\b", said(copy, "-m", "harness", "conversions"))
    assert re.search(r"\badded\b", said(copy, "-m", "harness", "strategies"))
    assert "odd" in said(copy, "-m", "harness", "hunt", "--help")
