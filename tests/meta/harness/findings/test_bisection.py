"""Which release broke it: the releases that are asked, what they answer, and what is kept of it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from harness.execute import environments, releases
from harness.execute.reading import FileError
from harness.findings.bisection import programs, search
from harness.findings.bisection.programs import alike
from harness.findings.bisection.search import RIGHT, UNKNOWN, WRONG, Answer, Bisection, bisect
from harness.findings.known.entry import note, told

pytestmark = pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")  # of JAX, where another test has imported it
HERE = Version("1.20")
RELEASES = [Version(f"1.{minor}") for minor in range(31)]


def asked(states: Mapping[Version, str], every: bool = False) -> Bisection:
    return bisect("package", HERE, list(states), lambda version: Answer(states[version]), every)


def history(first: int, fixed: int, silent: set[int]) -> dict[Version, str]:
    """Wrong from 1.`first` until before 1.`fixed`; those that are silent cannot say."""
    return {
        version: UNKNOWN if minor in silent - {20} else WRONG if first <= minor < fixed else RIGHT
        for minor, version in enumerate(RELEASES)
    }


@given(st.integers(0, 20), st.integers(21, 31), st.sets(st.integers(0, 30), max_size=4), st.booleans())
def test_the_changes_are_found(first: int, fixed: int, silent: set[int], every: bool) -> None:
    states = history(first, fixed, silent)
    runs = [minor for minor in silent if {minor + 1, minor + 2} <= silent]  # three in a row: those beyond are not asked
    found = asked(states, every)
    answering = {state: [v for v in RELEASES if states[v] == state] for state in (RIGHT, WRONG)}
    before = [version for version in answering[RIGHT] if version < HERE]
    after = [version for version in answering[RIGHT] if version > HERE]
    if not runs:
        assert found.since == (min(answering[WRONG]) if before else None)
        assert found.before == (max(before) if before else None)
        assert found.until == (min(after) if after else None)
    assert found.oldest == min(version for version in found.answers if states[version] == WRONG)


def test_few_are_asked() -> None:
    found = asked(history(7, 27, set()))
    assert (str(found.before), str(found.since), str(found.until)) == ("1.6", "1.7", "1.27")
    assert len(found.answers) <= 14
    assert len(asked(history(7, 27, set()), every=True).answers) == len(RELEASES)
    old = asked(history(0, 31, set()))
    assert [str(version) for version in old.answers] == ["1.20", "1.30", "1.0"]


def test_another_build_of_the_release_is_not_asked() -> None:
    states = {Version("1.0"): RIGHT, Version("1.1"): RIGHT, Version("1.1+cpu"): WRONG}
    found = bisect("package", Version("1.1+cpu"), [Version("1.0"), Version("1.1")], lambda v: Answer(states[v]))
    assert (found.since, found.before) == (Version("1.1+cpu"), Version("1.0"))
    assert (found.to_json()["since"], found.to_json()["newest"]) == ("1.1", "1.1")


def test_releases_that_lack_what_the_program_uses() -> None:
    """Those before 1.9 cannot say: the oldest that is wrong is found, and no change is claimed."""
    found = asked(history(0, 31, set(range(9))))
    assert (found.since, str(found.oldest), found.to_json()["since"]) == (None, "1.9", "<=1.9")
    assert found.line == "package: wrong from 1.9 or before, up to 1.30"
    assert sum(version < Version("1.9") for version in found.answers) <= 6


def test_a_fault_that_came_back_is_found_where_all_are_asked() -> None:
    states = history(0, 31, set()) | {Version("1.10"): RIGHT, Version("1.25"): RIGHT}
    found = asked(states, every=True)
    assert found.line == "package: right in 1.10, wrong from 1.11, right again from 1.25"


def test_what_does_not_show_here_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"package 1\.20, which is installed, does not show it: not reproduced"):
        bisect("package", HERE, RELEASES, lambda version: Answer(RIGHT, "not reproduced"))


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("print('not reproduced')", Answer(RIGHT, "not reproduced")),
        ("print('output 0: 1 of 2 wrong'); print('reproduced'); sys.exit(1)", Answer(WRONG, "reproduced")),
        (
            "print('the process ended with status', -11); sys.exit(1)",
            Answer(WRONG, "the process ended with status -11"),
        ),
        ("print('not available: onnx'); sys.exit(77)", Answer(UNKNOWN, "not available: onnx")),
        ("import nothing_of_this_name", Answer(UNKNOWN, "ModuleNotFoundError: No module named 'nothing_of_this_name'")),
        ("sys.exit(3)", Answer(UNKNOWN, "exit status 3")),
        ("import time; time.sleep(60)", Answer(UNKNOWN, "nothing within 2 s", lasting=False)),
    ],
)
def test_what_a_program_says(body: str, expected: Answer, tmp_path: Path) -> None:
    path = tmp_path / "reproducer.py"
    path.write_text(f"import sys\n{body}\n")
    assert programs.run(path, sys.executable, 2 if "sleep" in body else 60) == expected


def test_what_a_program_started_ends_with_its_time(tmp_path: Path) -> None:
    path, started = tmp_path / "reproducer.py", tmp_path / "started"
    path.write_text(
        "import subprocess, sys\n"
        "one = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        f"open({str(started)!r}, 'w').write(str(one.pid))\none.wait()\n"
    )
    assert programs.run(path, sys.executable, 3).state == UNKNOWN
    gone = Path("/proc") / started.read_text() / "stat"
    deadline = time.monotonic() + 10
    while gone.exists() and gone.read_text().rpartition(")")[2].split()[0] != "Z" and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not gone.exists() or gone.read_text().rpartition(")")[2].split()[0] == "Z"


def test_another_failure_says_nothing() -> None:
    rejected = Answer(WRONG, "reproduced: RuntimeError: dim 3 of 'x' is wrong")
    assert alike(Answer(WRONG, "reproduced: RuntimeError: dim 4 of 'y' is wrong"), rejected).state == WRONG
    assert alike(Answer(WRONG, "reproduced: AttributeError: no attribute 'f'"), rejected).state == UNKNOWN
    place = "reproduced: RuntimeError: {}/site-packages/a.py:3:1: bad"
    one, other = (Answer(WRONG, place.format(folder)) for folder in ("/home/some/lib", "/opt/other-1.0/lib64"))
    assert alike(one, other).state == WRONG
    tool = Answer(WRONG, "reproduced: RuntimeError: Error code: -11")
    assert alike(Answer(WRONG, "reproduced: RuntimeError: Error code: -6"), tool).state == WRONG
    assert alike(Answer(WRONG, "reproduced: RuntimeError: Error code: 1"), tool).state == UNKNOWN
    died = Answer(WRONG, "the process ended with status -11")
    assert alike(Answer(WRONG, "the process ended with status -6"), died).state == WRONG
    assert alike(Answer(WRONG, "the process ended with status 1"), died).state == UNKNOWN
    told = Answer(WRONG, "reproduced: the process ended with -6")
    assert alike(Answer(WRONG, "reproduced: the process ended with -11"), told).state == WRONG
    assert alike(Answer(WRONG, "reproduced: the process ended with 1"), told).state == UNKNOWN


def test_what_pip_lists() -> None:
    text = "onnx (1.3)\nAvailable versions: 1.10, 1.9.1, 1.9rc1, 1.9.1+cpu, 1.9.1.post1, none\n  INSTALLED: 1.9.1\n"
    assert [str(version) for version in releases.listed(text)] == ["1.9.1", "1.9.1.post1", "1.10"]


def test_an_index_without_the_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with pytest.raises(environments.EnvironmentsError, match="releases of onnx cannot be had: ERROR: No matching"):
        releases.released("onnx")


def test_what_a_reproducer_needs(tmp_path: Path) -> None:
    path = tmp_path / "reproducer.py"
    path.write_text(
        "for module in ['onnxruntime']:\n    pass\nimport sys\nfrom numpy import array\nimport jax.numpy as jnp\n"
    )
    assert programs.modules_of(path) == {"onnxruntime", "numpy", "jax", "sys"}
    assert list(releases.distributions(programs.modules_of(path))) == ["jax", "numpy", "onnxruntime"]
    path.write_text("import torch\n\ndef convert():\n    torch.onnx.export(dynamo=False)\n")
    assert programs.modules_of(path) == {"torch", "onnx"}
    path.write_text("import (")
    with pytest.raises(FileError, match=r"reproducer\.py"):
        programs.modules_of(path)


def test_environments_of_a_release() -> None:
    one, two, three = releases.environments_of("jax", Version("0.8.1"), {"numpy": "2.4.6", "jax": "0.10.2"})
    assert one.packages[:2] == ("jax==0.8.1", "jaxlib==0.8.1")
    assert "numpy==2.4.6" in one.packages
    assert "numpy" in two.packages
    assert "numpy<2" in three.packages
    assert len({one.folder, two.folder, three.folder}) == 3
    assert one.folder.parent == environments.home() / "releases"
    (first, *_) = releases.environments_of("numpy", Version("2.0.0"), {})  # in that one version only
    assert [package for package in first.packages if package.startswith("numpy")] == ["numpy==2.0.0"]
    (first, *_) = releases.environments_of("openvino", Version("2025.0.0"), {"torch": "2.13.0"})
    assert any(package.startswith("packaging==") for package in first.packages)  # which it does not ask for
    pinned, unpinned, free, _ = releases.environments_of(
        "torchrec", Version("1.7.0"), {"torch": "2.13.0"}, {"torchrec": "1.8.0", "fbgemm-gpu-cpu": "1.8.0"}
    )
    assert pinned.no_deps == free.no_deps == ("fbgemm-gpu-cpu==1.7.0", "torchrec==1.7.0")
    assert {"numpy", "torch==2.13.0"} <= set(unpinned.packages)
    assert "torch==2.13.0" in pinned.packages
    assert "torch" in free.packages


def test_what_is_kept(tmp_path: Path) -> None:
    (tmp_path / "issue.toml").write_text('targets = ["a"]\nuntil = "0.1"\nreason = """\nwhy"""\n')
    note(tmp_path, {"since": "1.2", "until": "", "newest": "1.4"})
    assert (
        tmp_path / "issue.toml"
    ).read_text() == 'targets = ["a"]\nsince = "1.2"\nnewest = "1.4"\nreason = """\nwhy"""\n'
    assert told("1.2", "", "1.4") == "wrong from 1.2, up to 1.4"
    assert told("<=1.2", "1.5", "1.6") == "wrong from 1.2 or before, right again from 1.5"
    assert told("", "", "") == ""
    assert search.of(tmp_path) == ""
    found = asked(history(7, 27, set()))
    (tmp_path / search.FILE).write_text(json.dumps(found.to_json()))
    assert search.of(tmp_path) == "package: wrong from 1.7, right again from 1.27"
    (tmp_path / search.FILE).write_text("{}")
    with pytest.raises(FileError):
        search.of(tmp_path)


@pytest.mark.slow(one_in=3)
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["no-such-entry"], "no-such-entry: neither the id of a known entry nor the folder of a finding"),
        (["ort-max-pool-lowest", "--releases", "2.5.1"], "--releases: Invalid specifier: '2.5.1'"),
        (["ort-max-pool-lowest", "--package", "jax"], "its reproducer does not need jax, but"),
    ],
)
def test_bad_input_is_one_line(arguments: list[str], expected: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "harness", "bisect", *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert expected in done.stderr
    assert len(done.stderr.splitlines()) == 1
