"""The night: what is new, what is gone, what is fixed; its exit status says whether anything is new."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest
from packaging.version import Version
from typer.testing import CliRunner

from harness.commands import app
from harness.commands.findings import nightly
from harness.commands.findings.nightly import Step, markdown
from harness.execute import environments, releases
from harness.execute.environments import EnvironmentsError
from harness.findings import newest
from harness.findings.database import kept, opened
from harness.findings.database.nights import Difference, difference
from harness.findings.database.recorder import begin
from harness.findings.site.junit import junit_of

ROOT = Path(__file__).parents[4]


def part(folder: Path, night: str, monkeypatch: pytest.MonkeyPatch, **found: str) -> None:
    """A command of a night, with findings and their states."""
    monkeypatch.setenv(opened.PART_OF, night)
    run = begin(opened.url_of(folder), "hunt", folder, 0, {}, "")
    for name, state in found.items():
        run.finding(name, ["torch-eager"], "value", state=state)
    run.end(0)
    monkeypatch.delenv(opened.PART_OF)


def test_a_night_beside_what_was_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = opened.url_of(tmp_path)
    assert begin(url, "hunt", tmp_path, 0, {}, "", "day").failure is None
    begin(url, "hunt", tmp_path, 0, {}, "", "day").finding("old", ["torch-eager"], "value")
    begin(url, "nightly", tmp_path, 0, {}, "", "first")
    part(tmp_path, "first", monkeypatch, a="found", b="found", issue="known", c="dropped")
    first = difference(url, "first")
    assert (first.new, first.again, first.gone, first.fixed, first.last) == (("a", "b"), (), (), (), None)
    begin(url, "nightly", tmp_path, 0, {}, "", "second").finding("a", ["torch-eager"], "value", state="shows")
    part(tmp_path, "second", monkeypatch, old="found", d="found", issue="fixed")
    second = difference(url, "second")
    assert (second.new, second.again, second.gone) == (("d",), ("a", "old"), ("b",))
    assert second.fixed == ("issue (torch-eager)",)
    assert second.last


@pytest.mark.parametrize(("found", "failed", "status"), [({}, 0, 0), ({"x": "found"}, 0, 1), ({"x": "found"}, 2, 2)])
def test_the_exit_status(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, found: dict[str, str], failed: int, status: int
) -> None:
    called = []

    def ran(arguments: list[str], night: str) -> Step:
        called.append(arguments[0])
        if arguments[0] == "hunt":
            part(tmp_path, night, monkeypatch, **found)
        return Step(arguments[0], failed if arguments[0] == "hunt" else 0, 1.0)

    monkeypatch.setattr(nightly, "_run", ran)
    monkeypatch.setenv(nightly.SUMMARY, str(tmp_path / "summary.md"))
    arguments = ["nightly", "--findings", str(tmp_path), "--out", str(tmp_path / "site"), "--json", str(tmp_path / "o")]
    result = CliRunner().invoke(app.app_of(), arguments)
    assert (result.exit_code, called) == (status, ["known", "hunt", "site"]), result.output
    assert json.loads((tmp_path / "o").read_text())["new"] == list(found)
    assert (tmp_path / "summary.md").read_text().startswith(f"## Dissent: {len(found)} new, 0 met before")
    assert [row.status for row, _, _ in kept.runs(opened.url_of(tmp_path)) if row.part_of is None] == [status]
    if failed:
        assert "the night is not whole: hunt" in result.output


@pytest.mark.parametrize("changed", ["gelu", "README"])
def test_operators_that_a_change_touches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: str) -> None:
    """The hunt is for them; where there is none, there is no hunt."""
    source, called = tmp_path / "source", []
    source.mkdir()
    git = ["git", "-C", str(source), "-c", "user.name=a", "-c", "user.email=a@b.c"]
    (source / f"{changed}.cpp").write_text("one\n")
    for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "one"]):
        subprocess.run([*git, *command], check=True)
    (source / f"{changed}.cpp").write_text("two\n")

    def ran(arguments: list[str], night: str) -> Step:
        called.append(arguments)
        return Step(arguments[0], 0, 1.0)

    monkeypatch.setattr(nightly, "_run", ran)
    arguments = ["nightly", "--findings", str(tmp_path / "f"), "--source", str(source), "--since"]
    result = CliRunner().invoke(app.app_of(), [*arguments, "HEAD"])
    assert result.exit_code == 0, result.output
    hunts = [one[-2:] for one in called if one[0] == "hunt"]
    assert hunts == ([["--operators", "gelu,gelu_tanh"]] if changed == "gelu" else [])
    result = CliRunner().invoke(app.app_of(), [*arguments, "nowhere"])
    assert result.exit_code == 2
    assert "the changes since nowhere cannot be had" in result.output


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")  # of JAX, where another test has imported it
def test_what_was_found_is_run_again(tmp_path: Path) -> None:
    for name, end in (("shows", 1), ("fixed", 0), ("absent", 77), ("hangs", 0), ("raises", 1)):
        folder = tmp_path / name
        folder.mkdir()
        text = "import time\ntime.sleep(60)" if name == "hangs" else f"raise SystemExit({end})"
        text = f"print('reproduced')\n{text}" if name == "shows" else text  # an exception ends with 1, too
        (folder / "reproducer.py").write_text(text)
        record = {"fingerprint": name, "symptom": "value", "target": "torch-eager"}
        (folder / "finding.json").write_text(json.dumps(record))
    run = begin(opened.url_of(tmp_path), "nightly", tmp_path, 0, {}, "")
    found = dict(nightly.again(tmp_path, run, 10.0))
    assert found == {
        "shows": "shows",
        "fixed": "fixed",
        "absent": "not told",
        "hangs": "not told",
        "raises": "not told",
    }
    states = {row["fingerprint"]: row["state"] for row in kept.rows(run.url, "finding")}
    assert states == {"shows": "shows", "fixed": "fixed"}


def test_the_summary(tmp_path: Path) -> None:
    found = Difference(("value-x",), ("value-y",), ("value-z",), ("tf-a (tf-xla)",), "2026-01-02T03:04:05.678Z")
    assert markdown(found, [Step("hunt", 0, 61.4)], Path("f")).splitlines() == [
        "## Dissent: 1 new, 1 met before, 1 gone, 1 fixed since the last night (2026-01-02)",
        "",
        "### New",
        "",
        "- `value-x` (f/value-x/report.md)",
        "",
        "### Gone: found in the last night, and not in this one",
        "",
        "- `value-z`",
        "",
        "### Fixed: shows no more",
        "",
        "- `tf-a (tf-xla)`",
        "",
        "| command | exit status | seconds |",
        "|---|---|---|",
        "| `hunt` | 0 | 61 |",
    ]


def test_what_is_newer_than_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    last = {"onnxruntime": "99.1.0", "jax": str(releases.installed("jax"))}

    def released(package: str) -> tuple[Version, ...]:
        if package not in last:
            raise EnvironmentsError(f"releases of {package} cannot be had: no route to host")
        return (Version("0.1"), Version(last[package]))

    monkeypatch.setattr(releases, "released", released)
    old = tmp_path / ".environments" / "newest-onnxruntime-98.0"
    old.mkdir(parents=True)
    (one,) = newest.newest("onnxruntime,jax", tmp_path, told.append)
    assert (one.package, one.version, one.name) == ("onnxruntime", "99.1.0", "newest-onnxruntime-99.1.0")
    assert "ort-all" in one.targets
    assert not old.exists()
    assert sorted(line.split(":")[0] for line in told) == ["jax", "onnxruntime"]
    monkeypatch.setenv(environments.VARIABLE, str(tmp_path / newest.FILE))
    listed = environments.named(one.name)  # with all that a worker needs, each in one version
    assert "onnxruntime==99.1.0" in listed.packages
    told.clear()
    last.clear()
    assert newest.newest("onnxruntime,jax", tmp_path, told.append) == []
    assert len(told) == 1  # the index is out of reach: that is said once
    assert "no route to host" in told[0]


def test_junit(tmp_path: Path) -> None:
    (tmp_path / "value-x").mkdir()
    (tmp_path / "value-x" / "report.md").write_text("expected <1> & got \x1b[0m2\n")
    found = Difference(("value-x",), ("value-y",), ("value-z",), ("tf-a (tf-xla)",))
    root = ElementTree.fromstring(junit_of(found, [("known", 0, 2.0), ("hunt", 2, 61.4)], tmp_path))
    cases = {case.get("name"): [part.tag for part in case] for case in root.iter("testcase")}
    assert cases == {
        "known": [], "hunt": ["error"], "value-x": ["failure"], "value-y": ["skipped"], "tf-a (tf-xla)": [],
    }  # fmt: skip
    assert root.findtext(".//failure") == "expected <1> & got [0m2\n"
    assert [suite.attrib for suite in root] == [
        {"name": "commands", "tests": "2", "errors": "1"},
        {"name": "findings", "tests": "3", "failures": "1", "skipped": "1"},
    ]


@pytest.mark.nightly
def test_a_short_night(tmp_path: Path) -> None:
    entry = next(path for path in sorted((ROOT / "known" / "torch").iterdir()) if (path / "case.json").is_file())
    shutil.copytree(entry, tmp_path / "known" / "torch" / entry.name)
    arguments = ["nightly", "--budget", "20s", "--targets", "torch-eager", "--seed", "1"]
    arguments += [
        "--findings",
        str(tmp_path / "f"),
        "--known-issues",
        str(tmp_path / "known"),
        "--out",
        str(tmp_path / "s"),
    ]
    result = CliRunner().invoke(app.app_of(), arguments)
    assert result.exit_code in (0, 1), result.output
    runs = kept.runs(opened.url_of(tmp_path / "f"))
    assert [row.command.split()[1] for row, _, _ in runs if row.part_of] == ["known", "hunt"]
    assert {row.status for row, _, _ in runs if row.part_of} == {0}
    assert (tmp_path / "s" / "index.html").is_file()


def test_the_workflow_calls_the_command() -> None:
    text = (ROOT / ".github" / "workflows" / "nightly.yml").read_text(encoding="utf-8")
    (line,) = [line for line in text.splitlines() if "-m harness" in line]
    assert "-m harness nightly " in line
    told = CliRunner().invoke(app.app_of(), ["nightly", "--help"], terminal_width=200).output
    options = {word for word in line.split() if word.startswith("--")}
    assert options
    assert {option for option in options if option not in told} == set()
