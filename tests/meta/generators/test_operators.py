"""Operators are found by their files: nothing is registered by hand."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from generators import ops
from generators.ops import DRAWN, DRAWN_SELDOM, OPS, STEPPED_OPS, drawing

ROOT = Path(__file__).parents[3]
README = (ROOT / "README.md").read_text(encoding="utf-8")
RECORD = README.split("### Adding an operator")[1].split("```python\n")[1].split("```")[0]
"""The README's operator, a whole file of records."""

ASKED = """
import itertools, json
import generators
from generators.graphs import seeded_case
from generators.ops import DRAWN, DRAWN_SELDOM, OPS, STEPPED_OPS
from generators.ops.drawing import LISTED
from generators.sweep import sweep

print(json.dumps({
    "file": generators.__file__,
    "behind": [not set(names[names.index("cube") :]) & set(LISTED) for names in (list(OPS), list(DRAWN))],
    "seldom": "cube" in DRAWN_SELDOM,
    "stepped": "cube" in STEPPED_OPS,
    "drawn": next((i for i in range(2000) if "cube" in seeded_case(3, i).graph.operators), None),
    "swept": sum("cube" in case.graph.operators for case in itertools.islice(sweep("cube"), 5)),
}))
"""


@pytest.fixture
def kind(tmp_path: Path) -> Path:
    """A folder of records in a copy of the room."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "generators", tmp_path / "generators", ignore=ignored)
    return tmp_path / "generators/ops/elementwise"


def run(kind: Path, text: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", text], cwd=kind.parents[2], capture_output=True, text=True, check=False
    )


def test_a_new_file_is_found_drawn_and_swept(kind: Path) -> None:
    (kind / "cubes.py").write_text(RECORD, encoding="utf-8")
    process = run(kind, ASKED)
    assert process.returncode == 0, process.stderr
    found = json.loads(process.stdout)
    assert Path(found.pop("file")).is_relative_to(kind.parents[2])
    assert found.pop("drawn") is not None
    assert found == {"behind": [True, True], "seldom": True, "stepped": True, "swept": 5}


def test_two_records_of_one_name_are_refused(kind: Path) -> None:
    for name in ("cubes", "powers_of_three"):
        (kind / f"{name}.py").write_text(RECORD, encoding="utf-8")
    process = run(kind, "import generators.ops")
    assert process.returncode == 1
    (line,) = re.findall(r"^ValueError: .*$", process.stderr, re.MULTILINE)
    assert line == (
        "ValueError: 'cube' stands among the OPERATORS of generators.ops.elementwise.cubes and of "
        "generators.ops.elementwise.powers_of_three"
    )


def test_what_is_listed_exists_and_is_listed_once() -> None:
    assert [name for name, times in Counter(drawing.LISTED).items() if times > 1] == []
    assert set(drawing.LISTED) <= set(OPS)
    assert list(OPS)[: len(drawing.LISTED)] == list(drawing.LISTED)


def test_what_is_drawn_follows_the_lists() -> None:
    assert set(OPS) - set(DRAWN) == set(drawing.ON_REQUEST)
    assert set(DRAWN) - set(DRAWN_SELDOM) == set(drawing.OFTEN)
    assert set(drawing.SELDOM) == DRAWN_SELDOM - STEPPED_OPS


def test_records_stand_in_the_folders_of_kinds() -> None:
    (root,) = ops.__path__
    homes = {path.parent.parent for path in Path(root).rglob("*.py") if "\nOPERATORS" in path.read_text("utf-8")}
    assert homes == {Path(root)}
