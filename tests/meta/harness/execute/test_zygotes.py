"""Zygotes: what they have imported is there at once, what they cannot have is imported by whoever needs it, and one
that is killed is started again."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from harness.conversions.route import target_of
from harness.execute.isolation import folders
from harness.execute.pool import Job, Limits, Pool
from harness.execute.processes.worker import read_message
from harness.execute.processes.zygotes import Forked, OutOfTime, Patience, ZygoteError, Zygotes
from harness.questions import QUESTIONS
from harness.search.hunting.plan import member
from harness.search.laboratory import Laboratory
from oracles.judge.outcome import Value

PATIENCE = Patience(20.0, lambda: float("inf"))
COUNTED = """
import os, pathlib, threading, time
with (pathlib.Path(__file__).with_name("imported")).open("a") as file:
    file.write(pathlib.Path(__file__).stem)
{more}
"""


@pytest.fixture
def zygotes(tmp_path: Path) -> Iterator[Zygotes]:
    """Of this interpreter, with modules a, b and d that say when they are imported, c, which starts a thread, and e,
    which cannot be imported."""
    made = {"a": "", "b": "", "c": "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()", "d": ""}
    for name, more in {**made, "e": "raise ValueError('broken')"}.items():
        (tmp_path / f"{name}.py").write_text(COUNTED.format(more=more))
    variables = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    found = Zygotes([sys.executable], variables)
    yield found
    found.close()


def folder_of(zygotes: Zygotes) -> Path:
    """Where their modules are."""
    return Path(zygotes.variables["PYTHONPATH"])


def fork(zygotes: Zygotes, *modules: str) -> tuple[Forked, dict]:
    """A worker, and what it says first."""
    order = {"kind": "worker", "memory": 0, "recycle": 0, "folder": str(folder_of(zygotes)), "variables": {}}
    process = zygotes.fork(order, modules, folder_of(zygotes) / "log", PATIENCE)
    with process.connection.makefile("rb") as replies:
        return process, read_message(replies)[0]


def imported(zygotes: Zygotes) -> str:
    path = folder_of(zygotes) / "imported"
    return "".join(sorted(path.read_text())) if path.exists() else ""


def test_each_module_is_imported_once(zygotes: Zygotes) -> None:
    for modules in (("a", "b"), ("a", "b"), ("a", "d"), ("a",), ()):
        process, first = fork(zygotes, *modules)
        assert first["outcome"] == "ready"
        process.close()
    assert imported(zygotes) == "abd"


def test_temporary_files_of_an_import_are_there_as_long_as_what_has_it(zygotes: Zygotes) -> None:
    """torch/_inductor/codecache.py keeps the folder's name as it is imported, and has headers there later."""
    told = folder_of(zygotes) / "told"
    lines = f"import pathlib, tempfile\npathlib.Path({str(told)!r}).write_text(tempfile.mkdtemp())"
    (folder_of(zygotes) / "f.py").write_text(lines)
    process, _ = fork(zygotes, "f")
    process.close()
    folders.remove_stale()
    assert Path(told.read_text()).is_dir()
    zygotes.close()
    assert not Path(told.read_text()).parent.exists()


def test_what_starts_threads_is_imported_by_each_process_after_the_others(zygotes: Zygotes) -> None:
    for _ in range(2):
        process, first = fork(zygotes, "c", "a")
        assert first["outcome"] == "ready"
        process.close()
    assert zygotes.unfit == {"c": "it starts threads"}
    assert imported(zygotes) == "accc"


def test_what_cannot_be_imported_is_said_by_whoever_needs_it(zygotes: Zygotes) -> None:
    process, first = fork(zygotes, "a", "e")
    process.close()
    assert (first["outcome"], first["message"]) == ("unavailable", "ValueError: broken")
    assert zygotes.unfit == {"e": "ValueError: broken"}


def test_where_nothing_is_shared_each_process_imports_all(tmp_path: Path, zygotes: Zygotes) -> None:
    alone = Zygotes(zygotes.command, zygotes.variables, shared=False)
    for _ in range(2):
        fork(alone, "a", "b")[0].close()
    alone.close()
    assert imported(zygotes) == "aabb"


def test_one_that_was_killed_is_started_again(zygotes: Zygotes) -> None:
    fork(zygotes, "a", "b")[0].close()
    assert zygotes._root
    family = psutil.Process(zygotes._root.pid).children(recursive=True)
    os.kill(zygotes._root.pid, signal.SIGKILL)
    psutil.wait_procs(family, timeout=5)
    process, first = fork(zygotes, "a", "b")
    assert first["outcome"] == "ready"
    process.close()
    assert imported(zygotes) == "aabb"


def test_an_answer_that_nobody_waited_for_is_not_taken_for_another_one(zygotes: Zygotes) -> None:
    living, _ = fork(zygotes)
    with pytest.raises(ZygoteError):
        zygotes._found[()].ask({"kind": "ended", "pid": living.pid, "seconds": 1}, (), 0.01)
    living.close()
    process, first = fork(zygotes)
    assert first["outcome"] == "ready"
    process.close()


def test_what_a_zygote_forked_ends_with_it(zygotes: Zygotes) -> None:
    process, _ = fork(zygotes, "a")
    zygotes.stop()
    until = time.monotonic() + 5
    while Path(f"/proc/{process.pid}").exists() and time.monotonic() < until:
        time.sleep(0.01)
    assert not Path(f"/proc/{process.pid}").exists()
    process.close()


def test_how_a_process_ended_is_known(zygotes: Zygotes) -> None:
    process, _ = fork(zygotes)
    process.kill()
    assert process.death() == ("signal SIGKILL", "")
    process.close()
    assert process.death() == ("signal SIGKILL", "")


def test_an_interpreter_that_cannot_run_it_is_named(tmp_path: Path) -> None:
    """It has no numpy."""
    found = Zygotes([sys.executable, "-S", "-I"], dict(os.environ))
    with pytest.raises(ZygoteError, match="No module named"):
        found.fork({"kind": "worker", "folder": str(tmp_path), "variables": {}}, (), tmp_path / "log", PATIENCE)
    found.close()


def test_an_import_ends_with_the_time_that_is_left(zygotes: Zygotes) -> None:
    (folder_of(zygotes) / "slow.py").write_text("import time\ntime.sleep(60)\n")
    until = time.monotonic() + 1
    with pytest.raises(OutOfTime):
        zygotes.prepare([("slow",)], Patience(20.0, lambda: until))
    assert time.monotonic() < until + 5


def test_an_import_that_takes_too_long_is_left_to_whoever_needs_it(zygotes: Zygotes) -> None:
    (folder_of(zygotes) / "slow.py").write_text("import time\ntime.sleep(60)\n")
    zygotes.prepare([("slow",)], Patience(1.0, lambda: float("inf")))
    assert zygotes.unfit == {"slow": "not imported within 1 s"}


PLACE = "INPUTS = {}\nPARAMETERS = {}\ndef load(p):\n    return lambda: [np.asarray([id(np), os.getpid()])]\n"


@pytest.mark.parametrize("shared", [True, False])
def test_what_shares_nothing_has_a_memory_layout_of_its_own(shared: bool) -> None:
    """Six processes whose layout is random have not all the same address, but once in a long time."""
    job = Job("one", ("json",), f"import os\nimport numpy as np\n{PLACE}", {})
    found = []
    with Pool(Limits(), shared=shared) as pool:
        for _ in range(6):
            (outcome,) = pool.run([job])
            assert isinstance(outcome, Value)
            found.append(outcome.outputs[0].tolist())
            pool.restart_worker("one")
    assert len({process for _, process in found}) == 6
    assert (len({place for place, _ in found}) == 1) == shared


def test_frameworks_tell_nobody_what_they_are_used_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """openvino.convert_model sends what it converts to Google Analytics, and numbers the user in the home folder."""
    pytest.importorskip("openvino_telemetry")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    question, target = QUESTIONS["conversion"], target_of("onnx/openvino-onnx/openvino")
    with Pool(Limits(seconds=60), shared=False) as pool:
        case = member(question, "tanh", 0).case(0)
        judged = Laboratory(pool, question).judge(case, [target]).verdicts[target.name]
    assert judged.status == "agree"
    assert not list((tmp_path / "home").iterdir())


REGISTRY = """
import numpy as np
import torch
from torch.onnx._internal.exporter import _registration

INPUTS, PARAMETERS, OUTPUTS = {}, {}, []


def load(parameters):
    def run():
        parse, _registration.onnxscript_apis.get_torchlib_ops = _registration.onnxscript_apis.get_torchlib_ops, None
        first = _registration.ONNXRegistry.from_torchlib(opset_version=18)
        known = len(first.functions)
        for functions in first.functions.values():
            functions.clear()
        first.functions.clear()
        second = _registration.ONNXRegistry.from_torchlib()
        empty = sum(not functions for functions in second.functions.values())
        torch.library.define("dissent::registered_later", "(Tensor x) -> Tensor")
        try:
            _registration.ONNXRegistry.from_torchlib()
            again = 0
        except TypeError:  # None is called
            again = 1
        _registration.onnxscript_apis.get_torchlib_ops = parse
        return [np.array([known == len(second.functions) > 400, empty, second.opset_version, again])]

    return run
"""


@pytest.mark.slow
def test_functions_of_the_exporter_to_onnx_are_parsed_once() -> None:
    """Each export has a registry of its own, and what one does to it no other sees; one is made anew once an operator
    is registered."""
    with Pool() as pool:
        (outcome,) = pool.run([Job("torch", ("torch", "onnxscript"), REGISTRY, {})])
    assert isinstance(outcome, Value), outcome
    assert outcome.outputs[0].tolist() == [1, 0, 18, 1]
