"""Folders collect what their files name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from generators.discovery import collected, modules_of

RECORD = """
from types import SimpleNamespace

THINGS = (SimpleNamespace(name="{name}"),)
"""


@pytest.fixture
def package(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """One with files of its own, a folder below it, a helper, and a folder of text."""
    name = "discovered_" + re.sub(r"\W", "_", request.node.name)
    monkeypatch.syspath_prepend(tmp_path)
    for folder in ("", "below", "text"):
        (tmp_path / name / folder).mkdir()
    for file, text in {
        "__init__": "",
        "zebra": RECORD.format(name="z"),
        "apple": RECORD.format(name="a"),
        "helper": "HELPS = True",
        "below/__init__": "",
        "below/middle": RECORD.format(name="m"),
        "text/never": "raise AssertionError('imported')",
    }.items():
        (tmp_path / name / f"{file}.py").write_text(text, encoding="utf-8")
    return name


def test_modules_come_by_name_after_the_first_ones(package: str) -> None:
    def names(*first: str) -> list[str]:
        return [module.__name__.removeprefix(f"{package}.") for module in modules_of(package, first)]

    assert names() == ["apple", "below.middle", "helper", "zebra"]
    assert names("zebra", "below.middle") == ["zebra", "below.middle", "apple", "helper"]


def test_records_are_collected_in_that_order(package: str) -> None:
    assert list(collected(package, "THINGS")) == ["a", "m", "z"]
    assert list(collected(package, "THINGS", ("zebra",))) == ["z", "a", "m"]


def test_a_first_one_that_is_gone_is_an_error(package: str) -> None:
    with pytest.raises(ValueError, match=f"{package} has no module gone"):
        modules_of(package, ("apple", "gone"))


def test_two_of_one_name_are_an_error_that_names_both_files(package: str, tmp_path: Path) -> None:
    (tmp_path / package / "below" / "again.py").write_text(RECORD.format(name="a"), encoding="utf-8")
    with pytest.raises(ValueError, match=r"'a' stands among the THINGS of \w+\.apple and of \w+\.below\.again"):
        collected(package, "THINGS")
