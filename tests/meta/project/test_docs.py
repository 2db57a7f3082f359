"""The pages name what is there: links and paths, files, keys, symptoms, building blocks."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

from generators.bounds import bounded
from generators.graph import TensorType
from generators.ops import slots, spec
from harness.findings.known import issues as known_issues
from oracles.judge.discrepancy import SYMPTOMS

ROOT = Path(__file__).parents[3]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def table(text: str, first: str) -> dict[str, str]:
    """First column to second of the table whose heading row begins so; first cells without backquotes."""
    rows = text.split(f"| {first} |", 1)[1].split("\n\n")[0].splitlines()[2:]
    cells = [row.strip("|").split("|") for row in rows]
    return {row[0].strip().strip("`"): row[1].strip() for row in cells}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_links_and_paths_lead_somewhere(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for link in re.findall(r"\]\(([^)#:]+)[^)]*\)", text):
        assert (path.parent / link).exists(), link
    for name in re.findall(r"`((?:generators|oracles|harness|tests|docs)/[\w/.]+)`", text):
        assert (ROOT / name).exists(), name


def test_every_folder_is_explained() -> None:
    """Two levels deep: what is below them, their own page or docstring says."""
    text = page("architecture.md")
    for room in ("generators", "oracles", "harness"):
        for path in (ROOT / room).iterdir():
            if path.is_dir() and path.name != "__pycache__":
                assert f"`{path.relative_to(ROOT)}/`" in text, path


def test_pages_are_short_where_newcomers_begin() -> None:
    for path, most in ((ROOT / "README.md", 120), (ROOT / "docs/architecture.md", 150)):
        assert len(path.read_text(encoding="utf-8").splitlines()) <= most, path


def test_building_blocks_exist() -> None:
    names = set(re.findall(r"`(\w+)\(", page("operators.md"))) - {"domain", "fresh", "accepts", "gamma"}
    assert len(names) > 8
    missing = [name for name in names if not any(hasattr(module, name) for module in (bounded, slots, spec))]
    assert missing == []


def test_record_fields_are_explained() -> None:
    named = {name.strip("` ") for row in table(page("operators.md"), "field") for name in row.split(",")}
    assert named == set(spec.OpSpec.__dataclass_fields__)


def test_symptoms_are_explained() -> None:
    assert table(page("findings.md"), "symptom") == {name: kind.__name__ for name, kind in SYMPTOMS.items()}


def test_known_issue_keys_are_explained() -> None:
    keys = set(known_issues.KnownIssue.__dataclass_fields__) - {"folder"}
    assert set(table(page("findings.md"), "key")) == {"kind", *keys}


def test_the_known_issue_of_the_page_matches_the_finding_of_the_readme(tmp_path: Path) -> None:
    block = re.search(r"^    targets = .*\n(?:    .*\n)+", page("findings.md"), re.MULTILINE)
    assert block
    own = tmp_path / "tvm" / "tvm-combine-parallel-matmul-constant"
    own.mkdir(parents=True)
    (own / "issue.toml").write_text(textwrap.dedent(block[0]), encoding="utf-8")
    (own / "case.json").touch()
    (issue,) = known_issues.load(tmp_path)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (message,) = re.findall(r"^    (TypeError: .*)$", readme, re.MULTILINE)
    assert issue.concerns("tvm-O3", "0.27.0.post1", ("forward",), "rejected", message)
    assert not issue.concerns("tvm-O3", "0.28.0", ("forward",), "rejected", message)
    assert not issue.concerns("tvm-O2", "0.27.0.post1", ("forward",), "rejected", message)
    matrix = TensorType("float32", (2, 2))
    assert issue.covers("matmul", matrix, [matrix])
    assert not issue.covers("add", matrix, [matrix])
