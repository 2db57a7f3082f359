"""Hostile files, from the path that a person gives to the line that is shown; and what confinement leaves of them where
the gate is open."""

from __future__ import annotations

import importlib
import os
import pkgutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import hostile
import pytest
from hostile import keras, onnx_files
from hostile.edit import parts

from harness.conversions import admit as admitting
from harness.conversions.admit import admit, admit_weights, files_of
from harness.conversions.formats import Format, runners_of
from harness.conversions.model_file import FormatError, program, recognise, unavailable
from harness.execute.isolation import confinement
from harness.execute.isolation.confinement import Confinement
from harness.execute.pool import Job, Limits, Pool
from harness.search.hypothesis_profiles import nightly

pytestmark = pytest.mark.filterwarnings("ignore")  # frameworks warn while files are made

Build = Callable[[Path, Path], Path]
SECONDS, BYTES = 10.0, 2 << 30
"""Of a refusal, with all processes."""


def corpus(kind: str) -> dict[str, Build]:
    """Builders by format and name: HOSTILE or HARMLESS."""
    modules = [importlib.import_module(f"hostile.{one.name}") for one in pkgutil.iter_modules(hostile.__path__)]
    listed = ((module, getattr(module, kind, {})) for module in modules)
    return {
        f"{module.__name__.split('.')[1]}: {name}": build for module, all_ in listed for name, build in all_.items()
    }


HOSTILE, HARMLESS = corpus("HOSTILE"), corpus("HARMLESS")
EACH = 1 if nightly() else 4
SOME_HOSTILE, SOME_HARMLESS = (dict([*files.items()][::EACH]) for files in (HOSTILE, HARMLESS))


@pytest.fixture
def made(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Path, Path]]:
    """A file of the corpus, and the mark that it tries to leave; all files around it have to stay as they are."""
    build: Build = request.param
    folder, outside = tmp_path / "given", tmp_path / "outside"
    folder.mkdir()
    outside.mkdir()
    mark = outside / "mark"
    (outside / "secret.txt").write_text("nobody else is to read it")
    yield build(folder, mark), mark
    assert sorted(path.name for path in outside.iterdir()) == ["secret.txt"]
    assert (outside / "secret.txt").read_text() == "nobody else is to read it"


def test_there_are_enough() -> None:
    assert len(HOSTILE) >= 60
    assert len(HARMLESS) >= 20


@pytest.mark.slow(one_in=19, ci=5)
@pytest.mark.parametrize("made", SOME_HOSTILE.values(), ids=SOME_HOSTILE, indirect=True)
def test_a_hostile_file_is_one_line(made: tuple[Path, Path]) -> None:
    """Outside the nightly profile every fourth, each in a process of its own; their gates alone see all."""
    path, _ = made
    with pytest.raises(FormatError) as caught:
        admit(path)
    told = str(caught.value)
    assert str(path) in told
    assert len(told.splitlines()) == 1
    assert told.isprintable()
    assert len(told) < len(str(path)) + 500
    assert "nobody else" not in told


@pytest.mark.slow(one_in=3)
@pytest.mark.parametrize("made", SOME_HARMLESS.values(), ids=SOME_HARMLESS, indirect=True)
def test_a_harmless_file_is_admitted(made: tuple[Path, Path]) -> None:
    path, _ = made
    assert admit(path) == recognise(path)


@pytest.mark.nightly
@pytest.mark.parametrize("made", HOSTILE.values(), ids=HOSTILE, indirect=True)
def test_the_command_refuses_it(made: tuple[Path, Path], tmp_path: Path) -> None:
    path, _ = made
    asked = ["model", str(path), "--out", str(tmp_path / "out"), "--runs", "0"]
    with (tmp_path / "told").open("w+") as told:
        process = subprocess.Popen([sys.executable, "-m", "harness", *asked], stdout=subprocess.DEVNULL, stderr=told)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        told.seek(0)
        (line,) = told.read().splitlines()
    assert process.returncode == 2
    assert line.startswith(f"dissent: {path} is ")
    assert used.ru_utime + used.ru_stime < SECONDS  # of the processor: other work does not count
    assert used.ru_maxrss * 1024 < BYTES


@pytest.mark.nightly
@pytest.mark.skipif(confinement.missing() is not None, reason=str(confinement.missing()))
@pytest.mark.parametrize("made", HOSTILE.values(), ids=HOSTILE, indirect=True)
def test_where_the_gate_is_open_confinement_holds(made: tuple[Path, Path]) -> None:
    """Whatever comes of opening it, and of running what opens: what the fixture looks at stays as it was."""
    path, _ = made
    try:
        found = recognise(path)
    except FormatError:  # not even of its format
        return
    runner = next(one for one in runners_of(found.name) if not unavailable(one))
    with Pool(Limits(seconds=60.0), Confinement(files_of(path))) as pool:
        job = Job(runner.framework, runner.modules, _opened_and_run(program(runner, path, [])), {}, reads=(path,))
        (outcome,) = pool.run([job], confirm=False)
    assert outcome is not None


def _opened_and_run(text: str) -> str:
    """A program that opens the file and calls it with zeros of the shapes that it says."""
    zeros = "[np.zeros([d or 2 for d in shape or []], dtype or 'float32') for _, dtype, shape in inputs]"
    called = f"    inputs, _, call = open_model(PATH)\n    call(*{zeros})\n    return lambda: []\n"
    return text.rpartition("def load(")[0] + "def load(parameters):\n" + called


def test_the_files_of_a_model_are_those_that_it_declares(tmp_path: Path) -> None:
    path = onnx_files.HARMLESS["external"](tmp_path, tmp_path / "mark")
    path.with_name("model.onnx.data").write_bytes(b"of another one")
    assert files_of(path) == (path, tmp_path / "w.data")
    hidden = onnx_files.HOSTILE["data-in-branch"](tmp_path, tmp_path / "mark")
    assert files_of(hidden) == (hidden, tmp_path / "secret.txt")
    hidden.write_bytes(b"no protobuf")
    assert files_of(hidden) == (hidden,)
    network = tmp_path / "network.xml"
    assert files_of(network) == (network, tmp_path / "network.bin")
    assert files_of(tmp_path) == (tmp_path,)


@pytest.mark.parametrize("name", ["external_link", "soft_link", "external_data", "virtual", "huge", "cycle"])
def test_weights_pass_the_same_gate(name: str, tmp_path: Path) -> None:
    for build, refused in ((keras.HOSTILE[name], True), (keras.HARMLESS["good"], False)):
        path = tmp_path / "x.weights.h5"
        path.write_bytes(parts(build(tmp_path, tmp_path / "mark"))["model.weights.h5"])
        if refused:
            with pytest.raises(FormatError, match="is refused: ") as caught:
                admit_weights(path)
            assert len(str(caught.value).splitlines()) == 1
        else:
            admit_weights(path)


def test_weights_that_name_other_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.weights.json"
    path.write_text("{}")
    with pytest.raises(FormatError, match="names other files of weights"):
        admit_weights(path)
    with pytest.raises(FormatError, match="is no file"):
        admit_weights(tmp_path / "absent.h5")


@pytest.mark.slow
def test_a_check_that_fails_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes too long, needs too much, or has a fault itself: nothing of that lets a file in."""
    path = tmp_path / "model.onnx"
    path.write_bytes(b"x")
    gate = tmp_path / "gate"
    gate.mkdir()
    monkeypatch.setattr(admitting, "GATE", gate)
    monkeypatch.setattr(admitting, "LIMITS", Limits(seconds=5.0, memory=1 << 28))
    monkeypatch.setattr(admitting, "SECONDS", 1)
    for body, told in {
        "import time\n    time.sleep(60)": "to look through it takes more than 5 s",
        "while True: pass": "to look through it takes more than 1 s of the processor",
        "return 'x' * (1 << 30)": "it cannot be looked through: out of memory",
        "raise KeyError('x')": "it cannot be looked through: KeyError: 'x'",
        "import os\n    os._exit(3)": "it cannot be looked through: exit 3",
        "return 'a \\x07 name\\n of two lines'": "a \\x07 name of two lines",
    }.items():
        (gate / "onnx.py").write_text(f"def check(path):\n    {body}\n")
        with pytest.raises(FormatError) as caught:
            admit(path)
        assert str(caught.value) == f"{path} is refused unless it is trusted (--trust): {told}"
        assert isinstance(admit(path, trust=True), Format)


def test_a_link_to_a_model_is_looked_through(tmp_path: Path) -> None:
    """As caches of downloaded models have them; a link to a hostile one is refused for what that names."""
    for folder in ("blobs", "snapshot", "marks"):
        (tmp_path / folder).mkdir()
    good = onnx_files.HARMLESS["relu"](tmp_path / "blobs", tmp_path / "mark")
    (tmp_path / "snapshot/good.onnx").symlink_to(good)
    assert admit(tmp_path / "snapshot/good.onnx").name == "onnx"
    bad = onnx_files.HOSTILE["huge-constant"](tmp_path / "marks", tmp_path / "mark")
    (tmp_path / "snapshot/bad.onnx").symlink_to(bad)
    with pytest.raises(FormatError, match="is refused unless it is trusted"):
        admit(tmp_path / "snapshot/bad.onnx")
