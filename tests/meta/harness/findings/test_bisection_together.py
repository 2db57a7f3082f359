"""Many bisections side by side: the order of the releases asked, the environments that go again, the answers kept."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from packaging.version import Version

from harness.commands.findings import bisect as command
from harness.execute import environments
from harness.execute.environments import Environment
from harness.execute.reading import FileError
from harness.findings.bisection import answers, programs
from harness.findings.bisection.answers import Answers
from harness.findings.bisection.programs import PLAIN, Needs, Program, needs_of
from harness.findings.bisection.search import RIGHT, UNKNOWN, WRONG, Answer, Bisection, bisect, search
from harness.findings.bisection.together import Search, together
from harness.findings.triage.instance import Instance

HERE = Version("1.8")
RELEASES = [Version(f"1.{minor}") for minor in range(10)]


@dataclass(eq=False)
class Planted:
    """Wrong from 1.`first` on. log: what is asked, by all; home: of the environments; stop: raises there."""

    name: str
    first: int
    log: list[str]
    home: Path
    kept: dict[Version, Answer] = field(default_factory=dict)
    stop: tuple[Version, BaseException] | None = None

    def places(self, version: Version) -> tuple[Environment, ...]:
        name = f"package-{version}"
        return () if version == HERE else (Environment(name, (), (), "", self.home / name, cache=self.home / "loaded"),)

    def known(self, version: Version) -> Answer | None:
        return self.kept.get(version)

    def ask(self, version: Version) -> Answer:
        if self.stop and self.stop[0] == version:
            raise self.stop[1]
        for place in self.places(version):
            if not place.stamp.exists():
                self.log.append(f"build {version}")
                place.folder.mkdir(parents=True)
                place.stamp.write_text("{}")
        self.log.append(f"{self.name} {version}")
        self.kept[version] = Answer(WRONG if version.minor >= self.first else RIGHT)
        return self.kept[version]

    def check(self, found: Bisection) -> None:
        if self.name == "doubtful":
            raise ValueError("not so")

    @property
    def search(self) -> Search:
        return Search(self.name, self, search("package", HERE, RELEASES))


def all_of(searches: list[Search], drop: bool = False) -> dict[str, Bisection | ValueError]:
    return {one.name: found for one, found in together(searches, drop)}


def test_release_by_release(tmp_path: Path) -> None:
    """All that wait for a release are asked together, and it is built once."""
    log: list[str] = []
    planted = [Planted("a", 0, log, tmp_path), Planted("b", 5, log, tmp_path), Planted("c", 5, log, tmp_path)]
    found = all_of([one.search for one in planted])
    assert log[:8] == ["a 1.8", "b 1.8", "c 1.8", "build 1.9", "a 1.9", "b 1.9", "c 1.9", "build 1.0"]
    builds = [line for line in log if line.startswith("build")]
    assert len(set(builds)) == len(builds)
    for one in planted:
        alone = bisect("package", HERE, RELEASES, Planted("", one.first, [], tmp_path).ask)
        assert found[one.name] == alone


def test_what_most_wait_for_comes_first_and_what_is_built_before_all(tmp_path: Path) -> None:
    log: list[str] = []
    older, newer = [Planted(name, 2, log, tmp_path) for name in "ab"], Planted("c", 6, log, tmp_path)
    everything = [newer, *older]
    known = {version: Answer(WRONG) for version in (HERE, RELEASES[9])} | {RELEASES[0]: Answer(RIGHT)}
    for one in everything:
        one.kept |= known | ({RELEASES[4]: Answer(WRONG), RELEASES[3]: Answer(WRONG)} if one is not newer else {})
    all_of([one.search for one in everything])
    assert log[:3] == ["build 1.2", "a 1.2", "b 1.2"]  # two wait for it, and one for 1.4
    log.clear()
    for one in everything:
        one.kept = dict(known) | ({RELEASES[4]: Answer(WRONG), RELEASES[3]: Answer(WRONG)} if one is not newer else {})
    environments.remove(older[0].places(RELEASES[2])[0])
    all_of([one.search for one in everything])
    assert log[0] == "c 1.4"  # built by the run before


def test_what_was_built_is_dropped_when_nothing_waits_for_it(tmp_path: Path) -> None:
    log: list[str] = []
    there = Planted("", 0, log, tmp_path).places(RELEASES[0])[0]
    there.folder.mkdir()
    there.stamp.write_text("{}")
    (tmp_path / "loaded").mkdir()
    seen: list[set[str]] = []

    class Watching(Planted):
        def ask(self, version: Version) -> Answer:
            answer = super().ask(version)
            seen.append({path.parent.name for path in tmp_path.glob("*/dissent.json")} - {there.name})
            return answer

    all_of([Watching(name, first, log, tmp_path).search for name, first in (("a", 3), ("b", 6), ("c", 6))], drop=True)
    assert max(map(len, seen)) == 1
    assert [path.parent for path in tmp_path.glob("*/dissent.json")] == [there.folder]  # it was there before
    assert not (tmp_path / "loaded").exists()


def test_an_interruption_loses_nothing_that_ended(tmp_path: Path) -> None:
    log: list[str] = []
    old, young = Planted("old", 0, log, tmp_path), Planted("young", 5, log, tmp_path)
    young.stop = RELEASES[4], KeyboardInterrupt()
    ended: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        ended.extend(one.name for one, _ in together([old.search, young.search], drop=True))
    assert ended == ["old"]
    assert not list(tmp_path.glob("*/dissent.json"))
    young.stop = None
    log.clear()
    found = all_of([young.search])["young"]
    assert isinstance(found, Bisection)
    assert str(found.since) == "1.5"
    assert not {"young 1.8", "young 1.9", "young 1.0"} & set(log)


def test_one_that_cannot_be_asked_stops_no_other(tmp_path: Path) -> None:
    log: list[str] = []
    bad, right = Planted("bad", 0, log, tmp_path), Planted("right", 9, log, tmp_path)
    bad.stop = RELEASES[0], FileError("no such file")
    others = [Planted(name, 0, log, tmp_path).search for name in ("doubtful", "good")]
    found = all_of([bad.search, right.search, *others])
    assert [str(found[name]) for name in ("bad", "right", "doubtful")] == [
        "no such file",
        "package 1.8, which is installed, does not show it: ",
        "not so",
    ]
    assert isinstance(found["good"], Bisection)


def test_kept_answers(tmp_path: Path) -> None:
    path = tmp_path / "releases" / answers.NAME
    kept = Answers(path)
    assert kept.get("p", "e") is None
    kept.add("p", "e", Answer(WRONG, "reproduced"))
    kept.add("p", "slow", Answer(UNKNOWN, "nothing within 2 s", lasting=False))
    again = Answers(path)
    assert again.get("p", "e") == Answer(WRONG, "reproduced")
    assert again.get("p", "slow") is None
    good = path.read_text()
    for bad in ("{", '{"program": "p"}', good.strip().replace(WRONG, "perhaps")):
        path.write_text(good + bad + "\n")
        with pytest.raises(FileError, match=rf"{re.escape(str(path))}: line 2: .*; remove the line, or the file"):
            Answers(path)


def planted(folder: Path, said: dict[str, Answer], monkeypatch: pytest.MonkeyPatch, **options: Any) -> Program:
    """A program of numpy that says this, by the name of the environment ("here" where it is none); "ran" counts."""
    folder.mkdir(exist_ok=True)
    (folder / "reproducer.py").write_text("import numpy\n")
    monkeypatch.setattr(environments, "home", lambda: folder)
    monkeypatch.setattr(programs, "build", lambda asked: asked)

    def run(path: Path, python: str, seconds: float, threads: int) -> Answer:
        name = Path(python).parents[1].name if str(folder) in python else "here"
        answer = said[name.split("-")[1] if "-" in name else name]
        said[f"ran {name}"] = answer
        return answer

    monkeypatch.setattr(programs, "run", run)
    needs = Needs("", {"numpy": "2.0.0", "ml-dtypes": "0.5.0"}, {})
    return Program(folder / "reproducer.py", "numpy", needs, 5.0, 1, Answers(folder / "answers.jsonl"), **options)


def test_what_is_known_is_not_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    states = {"here": Answer(WRONG, PLAIN), "1.26.4": Answer(RIGHT), "1.25.0": Answer(UNKNOWN, "slow", lasting=False)}
    one = planted(tmp_path, states, monkeypatch)
    old, slow, here = Version("1.26.4"), Version("1.25.0"), Version("2.0.0")
    assert [one.ask(version).state for version in (here, old, slow)] == [WRONG, RIGHT, UNKNOWN]
    again = planted(tmp_path, {}, monkeypatch)  # would raise LookupError where it ran
    assert [again.known(version) for version in (here, old, slow)] == [states["here"], states["1.26.4"], None]
    (tmp_path / "reproducer.py").write_text("import numpy  # another program\n")
    assert replace(again).known(old) is None


@pytest.mark.parametrize(
    ("words", "said", "state", "runs"),
    [
        (False, PLAIN, WRONG, False),
        (True, PLAIN, UNKNOWN, True),
        (False, "reproduced: OSError: no", UNKNOWN, True),
        (True, "reproduced: ValueError: bad 3", WRONG, True),
    ],
)
def test_the_installed_release_is_trusted(
    words: bool, said: str, state: str, runs: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    states = {"here": Answer(WRONG, "reproduced: ValueError: bad 4"), "1.26.4": Answer(WRONG, said)}
    one = planted(tmp_path, states, monkeypatch, trusted=True, words=words)
    assert one.known(Version("2.0.0")) == Answer(WRONG, PLAIN)
    assert one.ask(Version("1.26.4")).state == state
    assert ("ran here" in states) == runs


@pytest.mark.parametrize("state", [WRONG, UNKNOWN])
def test_trust_that_no_release_bears_out(state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    states = {"here": Answer(state, "no such processor"), "1.26.4": Answer(UNKNOWN, "no such processor")}
    one = planted(tmp_path, states, monkeypatch, trusted=True)
    ((_, found),) = together([Search("one", one, search("numpy", one.here, [Version("1.26.4")]))])
    assert "ran here" in states
    shown = "numpy: no release shows it, nor does that which is here: no such processor"
    assert str(found) == shown if state == UNKNOWN else isinstance(found, Bisection)


def test_what_another_processor_shows_is_not_trusted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    one = SimpleNamespace(
        id="a", framework="jax", folder=tmp_path, symptoms=("value",), threads=1, here=False, versions=""
    )
    (tmp_path / "reproducer.py").write_text("import jax\n")
    kept = Answers(tmp_path / "answers.jsonl")
    assert not command._program(cast(Instance, one), "", kept, 1.0, trust=True).trusted
    one.here = True
    assert command._program(cast(Instance, one), "", kept, 1.0, trust=True).trusted


def test_whose_releases(tmp_path: Path) -> None:
    """What stands on another package comes first; side by side, what the program says it ran with first."""
    path = tmp_path / "reproducer.py"
    path.write_text('"""x\n\nran with numpy 2.4.6, onnx2tf 1.0, onnx 1.2 (environment onnx2tf)\n"""\nimport onnx2tf\n')
    needs = needs_of(path)
    assert needs.environment == "onnx2tf"
    assert set(needs.bare) == {"onnx2tf", "sng4onnx", "tf-keras"}
    assert needs.versions["numpy"] == "1.26.4"
    assert command.package_of("onnx", needs) == "onnx2tf"
    path.write_text('"""x\n\nran with numpy 2.4.6, jax 0.10.2\n"""\nimport numpy\n')
    assert needs_of(path).named == ("numpy", "jax")
    both = {"tensorflow-cpu": "2.21.0", "ai-edge-litert": "2.3.0"}
    for first, second in (("tensorflow-cpu", "ai-edge-litert"), ("ai-edge-litert", "tensorflow-cpu")):
        needs = Needs("", both, {}, ("numpy", first, second))
        assert command.package_of("litert", needs) == first
        assert command.package_of("litert", needs, f"<={both[second]}") == second
    assert command.package_of("litert", Needs("", both, {})) == "ai-edge-litert"
    assert command.package_of("litert", Needs("", {**both, "litert-torch": "0.10.0"}, {})) == "litert-torch"
    assert command.package_of("torch", Needs("", {"numpy": "2.4.6"}, {})) == ""


@pytest.mark.parametrize("stopped", [False, True])
def test_the_command_writes_each_as_it_ends(
    stopped: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log: list[str] = []
    two = {"a": Planted("a", 0, log, tmp_path), "b": Planted("b", 5, log, tmp_path)}
    two["b"].stop = (RELEASES[4], KeyboardInterrupt()) if stopped else None
    for name, one in two.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "issue.toml").write_text('reason = """\nwhy"""\n')
        vars(one).update(package="package", here=HERE)
    entries = [SimpleNamespace(id=name, folder=tmp_path / name, kind="issue") for name in two]
    monkeypatch.setattr(command, "_chosen", lambda *_: entries)
    monkeypatch.setattr(command, "_program", lambda one, *_: two[one.id])
    monkeypatch.setattr(command.releases, "released", lambda _: RELEASES)
    monkeypatch.setattr(command.answers, "file", lambda: tmp_path / answers.NAME)
    work: Callable[[], None] = lambda: command.bisect(["a", "b"], write=True, drop=True, among=">=1.2")  # noqa: E731
    if stopped:
        with pytest.raises(command.typer.Exit):
            work()
    else:
        work()
    assert 'since = "<=1.2"' in (tmp_path / "a" / "issue.toml").read_text()
    assert ("since" in (tmp_path / "b" / "issue.toml").read_text()) != stopped
    told = capsys.readouterr().out
    assert ("1 bisected; the same command goes on" if stopped else "2 of 2 bisected; 0 could not be") in told
