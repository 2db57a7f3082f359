"""Environments: what their file may say, how one is built, and workers that run in one."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from examples.small_graphs import chain_case
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version
from typer.testing import CliRunner

from harness.backends import TARGETS, probe
from harness.commands.app import app_of
from harness.execute import environments, install
from harness.execute.environments import EnvironmentsError
from harness.execute.pool import Job, Pool, Unavailable
from harness.findings import reproducer
from harness.questions.forward import FORWARD
from harness.questions.question import reproduction_of
from harness.search.laboratory import Laboratory
from oracles.judge.outcome import Value

Write = Callable[[str], Path]
PINS = 'packages = ["ml_dtypes==0.6.0", "numpy==2.4.6"]\n'


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Writes the file that is read."""

    def written(text: str) -> Path:
        path = tmp_path / f"{len(list(tmp_path.glob('*.toml')))}.toml"
        path.write_text(text, encoding="utf-8")
        monkeypatch.setenv(environments.VARIABLE, str(path))
        return path

    return written


def fake(name: str = "other", **versions: str) -> Path:
    """A finished environment of the file's, whose interpreter is this one. Returns its folder."""
    environment = environments.named(name)
    environment.interpreter.parent.mkdir(parents=True)
    environment.interpreter.write_text(f'#!/bin/sh\nPLANTED={name} exec "{sys.executable}" "$@"\n')
    environment.interpreter.chmod(0o755)
    stamp = {"digest": environment.digest, "versions": {"python": "3.11.0", "numpy": "2.4.6", **versions}}
    environment.stamp.write_text(json.dumps(stamp))
    return environment.folder


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[a", "Expected"),
        ("[A]\n" + PINS, "small letters"),
        ('["a@b"]\n' + PINS, "small letters"),
        ("[a]\npython = '3.11'\n", "a: $: Object missing required field `packages`"),
        ("[a]\npins = []\n" + PINS, "a: $: Object contains unknown field `pins`"),
        ("[a]\npackages = 'numpy==2.4.6'\n", "a: $.packages: Expected `array`, got `str`"),
        ("[a]\npackages = ['numpy==2.4.6', 'ml_dtypes>=0.6']\n", "'ml_dtypes>=0.6' does not name one version"),
        ("[a]\npackages = ['numpy==2.*']\n", "'numpy==2.*' does not name one version"),
        ("[a]\npackages = ['num py']\n", "'num py' is no requirement"),
        ("[a]\npackages = ['numpy==2.4.6']\n", "a: ml-dtypes missing, which a worker imports"),
        ("[a]\npython = 3.11\n" + PINS, "a: $.python: Expected `str`, got `float`"),
    ],
)
def test_a_file_that_cannot_be_used_is_one_line(text: str, said: str, write: Write) -> None:
    path = write(text)
    with pytest.raises(EnvironmentsError) as caught:
        environments.load()
    assert str(caught.value).startswith(str(path))
    assert said in str(caught.value)
    listed = CliRunner().invoke(app_of(), ["env", "list"])
    assert listed.exit_code == 2


def test_a_file_that_is_not_there(write: Write) -> None:
    write("").unlink()
    with pytest.raises(EnvironmentsError, match=r"0\.toml: No such file"):
        environments.load()


def test_the_repositorys_own_file_serves_its_targets() -> None:
    known = environments.load()
    for target in (target for target in TARGETS.values() if target.environment):
        environment = known[target.environment]
        pins = {canonicalize_name(r.name): str(r.specifier) for r in map(Requirement, environment.packages)}
        for package, least in target.packages.items():
            have = pins[canonicalize_name(package)].removeprefix("==")
            assert Version(have) >= Version(least), f"{target.name}: {package}"


def test_unknown_names_and_what_is_not_built(write: Write) -> None:
    write("[other]\n" + PINS)
    with pytest.raises(EnvironmentsError, match=r"no environment is called 'nope'.*known: other"):
        environments.interpreter("nope")
    with pytest.raises(EnvironmentsError, match=r"other is not built \(python -m harness env create other\)"):
        environments.interpreter("other")
    with Pool() as pool, pytest.raises(Unavailable, match="json: environment other is not built"):
        pool.run([Job("json", ("json",), "", {}, "other")])
    target = TARGETS["torch-eager"].elsewhere("other")
    found = probe.probe(target)
    assert (found.available, found.version) == (False, None)
    assert "environment other is not built" in str(found.reason)


def test_half_made_changed_and_damaged_are_not_whole(write: Write) -> None:
    write("[other]\n" + PINS)
    folder = fake()
    assert environments.state(environments.named("other")).reason is None
    stamp = (folder / "dissent.json").read_text()
    (folder / "dissent.json").unlink()
    assert "half made" in str(environments.state(environments.named("other")).reason)
    (folder / "dissent.json").write_text(stamp[:-5])
    assert "cannot be read" in str(environments.state(environments.named("other")).reason)
    (folder / "dissent.json").write_text(stamp)
    environments.named("other").interpreter.unlink()
    assert "lost its interpreter" in str(environments.state(environments.named("other")).reason)
    write("[other]\n" + PINS.replace("2.4.6", "2.4.5"))
    assert "was built from other pins" in str(environments.state(environments.named("other")).reason)


def test_a_worker_runs_in_its_environment(write: Write) -> None:
    write("[other]\n" + PINS)
    command = fake() / "bin" / "planted-command"
    command.write_text("#!/bin/sh\n")
    command.chmod(0o755)
    program = (
        "import os, shutil\nimport numpy as np\nINPUTS = {}\nPARAMETERS = {}\ndef load(parameters):\n"
        "    return lambda: [np.array(['PLANTED' in os.environ, shutil.which('planted-command') is not None])]\n"
    )
    with Pool() as pool:
        jobs = [Job("json", ("json",), program, {}, name) for name in ("other", "")]
        found = [outcome.outputs[0].tolist() for outcome in pool.run(jobs) if isinstance(outcome, Value)]
        assert found == [[True, True], [False, False]]
        assert pool.restarts == 2
        pool.restart_worker("json", "other")
        pool.run(jobs)
        assert pool.restarts == 3


def test_targets_versions_and_reproducers_are_of_the_environment(write: Write, tmp_path: Path) -> None:
    write("[other]\n" + PINS)
    fake(onnxruntime="1.20.1", onnx="1.17.0")
    here = TARGETS["ort-all"]
    there = here.elsewhere("other")
    assert (there.name, there.environment, there.level.compiler) == ("ort-all@other", "other", "ort@other")
    assert probe.probe(there).version == "1.20.1"
    assert "torch is not installed" in str(probe.probe(TARGETS["torch-eager"].elsewhere("other")).reason)
    assert probe.versions([there])["onnxruntime"] == "1.20.1"
    both = probe.versions([here, there])
    assert both["other/onnxruntime"] == "1.20.1" != both["onnxruntime"]
    with Pool() as pool:
        found = Laboratory(pool).judge(chain_case(), [here, there])
    assert {verdict.status for verdict in found.verdicts.values()} == {"agree"}
    shown = reproduction_of(FORWARD, there, chain_case())
    text = reproducer.write(tmp_path, shown, "value", "title", 60.0).read_text()
    assert "python 3.11.0, numpy 2.4.6, onnxruntime 1.20.1, onnx 1.17.0 (environment other)" in text


INSTALLER = """#!{python}
import pathlib, sys
*_, python, what = " ".join(sys.argv).partition("/bin/python ")
print("installs", what)
info = next(pathlib.Path(sys.argv[4]).parent.parent.glob("lib/*/site-packages")) / "local-1.5.dist-info"
info.mkdir(exist_ok=True)
(info / "METADATA").write_text("Metadata-Version: 2.1\\nName: local\\nVersion: 1.5\\n")
if pathlib.Path("fail").exists():
    sys.exit("error: no such thing\\nhint: none")
"""


def test_create_builds_what_the_file_says(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    """With an installer that fetches nothing."""
    path = write(f"[other]\nno_deps = ['local==1.5']\npython = '{sys.executable}'\n" + PINS)
    installer = path.parent / "bin" / "uv"
    installer.parent.mkdir()
    installer.write_text(INSTALLER.replace("{python}", sys.executable))
    installer.chmod(0o755)
    start = [str(installer), "pip", "install", "--python"]
    monkeypatch.setattr(install, "command", lambda python, cache: [*start, python])
    monkeypatch.chdir(path.parent)
    run = CliRunner()
    Path("fail").touch()
    failed = run.invoke(app_of(), ["env", "create", "other"])
    assert failed.exit_code == 2
    assert "other cannot be installed: error: no such thing" in failed.stderr.replace("\n", " ")
    environment = environments.named("other")
    assert not environment.folder.exists()
    Path("fail").unlink()
    for _ in range(2):  # the second time there is nothing to do
        assert run.invoke(app_of(), ["env", "create", "other"]).exit_code == 0
    assert environments.state(environment).versions["local"] == "1.5"
    log = (environment.folder.parent / "other.log").read_text().splitlines()
    assert log == ["installs ml_dtypes==0.6.0 numpy==2.4.6", "installs --no-deps local==1.5"]
    report = path.parent / "list.json"
    assert run.invoke(app_of(), ["env", "list", "--json", str(report)]).exit_code == 0
    (row,) = json.loads(report.read_text())
    assert (row["name"], row["available"], row["versions"]["local"]) == ("other", True, "1.5")


@pytest.mark.parametrize("python", ["9.99", "/no/such/python"])
def test_create_without_its_interpreter(write: Write, python: str) -> None:
    write(f"[other]\npython = '{python}'\n" + PINS)
    failed = CliRunner().invoke(app_of(), ["env", "create", "other"])
    assert failed.exit_code == 2
    assert "which cannot be run here" in failed.stderr.replace("\n", " ")
