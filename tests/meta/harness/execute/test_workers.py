"""Whatever a program does to its worker becomes a classified outcome, in time, and the run goes on."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psutil
import pytest

from harness.execute.isolation.folders import PREFIX
from harness.execute.pool import HarnessError, Job, Limits, Pool, ProgramError, Unavailable
from harness.execute.processes.worker import loses_device
from oracles.judge.outcome import Crash, Outcome, Rejected, Timeout, Value

HEADER = "import ctypes, os, signal, sys, time\nimport numpy as np\nINPUTS = {}\nPARAMETERS = {}\n"
LIMITS = Limits(seconds=3.0, memory=1 << 30)


def job(body: str, framework: str = "one") -> Job:
    """A program whose `load` runs `body`."""
    lines = "\n".join("    " + line for line in body.splitlines())
    return Job(framework, ("json",), f"{HEADER}def load(parameters):\n{lines}\n", {})


GOOD = job("return lambda: [np.ones(3)]")


@pytest.fixture
def pool() -> Iterator[Pool]:
    with Pool(LIMITS) as pool:
        yield pool


def outcome(pool: Pool, body: str) -> Outcome:
    """What comes of `body`; the worker must still serve the next program."""
    bad, good = pool.run([job(body), GOOD])
    assert isinstance(good, Value)
    assert good.outputs[0].tolist() == [1.0, 1.0, 1.0]
    return bad


@pytest.mark.parametrize(
    ("body", "how"),
    [
        ("ctypes.string_at(0)", "signal SIGSEGV"),
        ("os.abort()", "signal SIGABRT"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "signal SIGKILL"),
        ("sys.exit(3)", "exit 3"),
        ("os._exit(0)", "exit 0"),
        ("np.ones(100 << 30, np.uint8)", "out of memory"),
        ("kept = []\nwhile True: kept.append(np.empty(1 << 24, np.uint8))", "out of memory"),
    ],
)
def test_death_is_a_crash(pool: Pool, body: str, how: str) -> None:
    got = outcome(pool, body)
    assert isinstance(got, Crash)
    assert got.how == how


def test_stderr_of_a_crash_is_kept(pool: Pool) -> None:
    got = outcome(pool, "sys.stderr.write('free(): invalid pointer')\nsys.stderr.flush()\nos.abort()")
    assert got == Crash("signal SIGABRT", "free(): invalid pointer")


def test_a_stack_trace_does_not_hide_why_a_process_died(pool: Pool) -> None:
    log = "F1121 simplifier.cc:586] Check failed: ok\n  shape: f32[1]\n*** stack trace: ***\n  @  0x7f4a run()\n"
    got = outcome(pool, f"sys.stderr.write({log!r})\nsys.stderr.flush()\nos.abort()")
    assert got == Crash("signal SIGABRT", "F1121 simplifier.cc:586] Check failed: ok")


@pytest.mark.parametrize("body", ["time.sleep(60)", "while True: pass", "signal.pause()"])
def test_hang_is_a_timeout(pool: Pool, body: str) -> None:
    started = time.monotonic()
    assert outcome(pool, body) == Timeout(3.0)
    assert time.monotonic() - started < 10


def test_garbage_on_stdout_is_harmless(pool: Pool) -> None:
    got = outcome(pool, "print('x' * 10**6, flush=True)\nos.write(1, b'y' * 10**5)\nreturn lambda: [np.zeros((0, 2))]")
    assert isinstance(got, Value)
    assert got.outputs[0].shape == (0, 2)


def test_exception_is_a_rejection(pool: Pool) -> None:
    got = outcome(pool, "raise ValueError('kernel too large')")
    assert isinstance(got, Rejected)
    assert (got.kind, got.message) == ("ValueError", "kernel too large")


def test_a_long_message_keeps_its_end(pool: Pool) -> None:
    """Where its reason may stand, behind the places that it was called from."""
    got = outcome(pool, "raise ValueError('at one place' + ', at another' * 9999 + ': no kernel')")
    assert isinstance(got, Rejected)
    assert got.message.startswith("at one place, at another")
    assert got.message.endswith("at another: no kernel")
    assert len(got.message) < 4100


def test_a_long_message_keeps_the_errors_of_its_middle(pool: Pool) -> None:
    got = outcome(pool, "raise ValueError('note\\n' * 999 + 'x: error: no kernel for A\\n' + 'note\\n' * 999)")
    assert isinstance(got, Rejected)
    assert got.message.count("x: error: no kernel for A") == 1
    assert len(got.message) < 4100


def test_a_name_that_the_program_does_not_say_is_not_its_fault(pool: Pool) -> None:
    """An exception of a framework that takes its own frames out of the traceback."""
    got = outcome(pool, "raise AttributeError('no such attribute', name='as' + 'type', obj=3)")
    assert isinstance(got, Rejected)


@pytest.mark.parametrize("body", ["return undefined_name", "import no_such_module", "return sys.no_such_name"])
def test_a_wrong_program_is_a_bug_of_ours(pool: Pool, body: str) -> None:
    with pytest.raises(ProgramError):
        pool.run([job(body)])


def test_missing_framework_is_named(pool: Pool) -> None:
    with pytest.raises(Unavailable, match="absent: ModuleNotFoundError: No module named 'no_such_framework'"):
        pool.run([Job("absent", ("no_such_framework",), "", {})])


def test_unknown_outcome_is_an_error() -> None:
    assert issubclass(Unavailable, HarnessError)


@pytest.mark.parametrize(
    "array",
    [
        np.array(1.5, np.float32),
        np.zeros((0, 3), np.int64),
        np.array([[True], [False]]),
        np.array([np.nan, np.inf, -0.0]),
        np.arange(24, dtype=np.int32).reshape(2, 3, 4).transpose(2, 0, 1),
    ],
    ids=["scalar", "empty", "bool", "special", "transposed"],
)
def test_arrays_travel_bit_for_bit(pool: Pool, array: np.ndarray) -> None:
    program = "INPUTS = {'x': 0}\nPARAMETERS = {'w': 0}\ndef load(p):\n    return lambda x: [x, p['w']]\n"
    (got,) = pool.run([Job("one", ("json",), program, {"x": array, "w": array})])
    assert isinstance(got, Value)
    for result in got.outputs:
        assert result.dtype == array.dtype
        assert result.shape == array.shape
        assert result.tobytes() == np.ascontiguousarray(array).tobytes()


def test_crash_by_an_earlier_program_is_not_blamed_on_the_next(pool: Pool) -> None:
    delayed = "import threading\nthreading.Timer(0.3, os.abort).start()\nreturn lambda: [np.ones(1)]"
    first, second = pool.run([job(delayed), job("time.sleep(1)\nreturn lambda: [np.ones(2)]")])
    assert isinstance(first, Value)
    assert isinstance(second, Value)
    assert dict(pool.unconfirmed) == {"a crash, and a fresh worker did not repeat it": 1}


LOST = "CUDA error: an illegal memory access was encountered"
"""As PyTorch says it."""


def _touching(size: int, breaks: bool) -> Job:
    """A program that finds the GPU lost where one before it has lost it, or loses it."""
    found = f"if os.environ.get('LOST') or {breaks}:\n    os.environ['LOST'] = '1'\n    raise RuntimeError({LOST!r})"
    return job(f"{found}\nreturn lambda: [np.ones({size})]")


def test_a_lost_gpu_is_blamed_on_the_program_that_lost_it_alone(pool: Pool) -> None:
    lost, after, last = pool.run([_touching(1, breaks=True), _touching(2, breaks=False), _touching(3, breaks=False)])
    assert isinstance(lost, Rejected)
    assert lost.message == LOST
    assert [type(after), type(last)] == [Value, Value]  # it left, and they ran in others
    assert not pool.unconfirmed  # a fresh worker said the same of the first


def test_a_gpu_that_an_earlier_program_lost_unnoticed_is_not_blamed_on_the_next(pool: Pool) -> None:
    silent = job("os.environ['LOST'] = '1'\nreturn lambda: [np.ones(1)]")
    first, second = pool.run([silent, _touching(2, breaks=False)])
    assert [type(first), type(second)] == [Value, Value]
    assert dict(pool.unconfirmed) == {"a lost GPU, and a fresh worker did not repeat it": 1}


@pytest.mark.parametrize(
    ("message", "lost"),
    [
        ("CUDA Runtime Error: cudaErrorIllegalAddress (700): an illegal memory access was encountered", True),
        ("CUDA error: device-side assert triggered", True),
        ("INTERNAL: CUDA_ERROR_LAUNCH_FAILED: unspecified launch failure", True),
        ("CUDA out of memory. Tried to allocate 2.00 GiB", False),
        ("cuFFT error: CUFFT_INVALID_SIZE", False),
        ("NotImplementedError: \"dot\" not implemented for 'Long'", False),
    ],
)
def test_which_errors_cost_a_process_its_gpu(message: str, lost: bool) -> None:
    assert loses_device(message) is lost


def test_a_level_of_forward_mode_that_is_left_open_is_closed_behind_a_program() -> None:
    """PyTorch refuses a second one, so that each later program would be refused."""
    left = "import torch\ntorch._C._enter_dual_level()\nraise RuntimeError"
    pushed = "import torch\nx = torch.ones(1)\nreturn lambda: [torch.func.jvp(torch.neg, (x,), (x,))[1].numpy()]"
    with Pool(Limits()) as pool:
        bad, good = pool.run([job(left), job(pushed)])
    assert isinstance(bad, Rejected)
    assert isinstance(good, Value)
    assert good.outputs[0].tolist() == [-1.0]


def test_frameworks_run_side_by_side(pool: Pool) -> None:
    started = time.monotonic()
    pool.run([job("time.sleep(1.5)\nreturn lambda: [np.ones(1)]", name) for name in ("one", "two")])
    assert time.monotonic() - started < 2.9


def mine() -> set[Path]:
    """Folders of this process's pools: other processes come and go."""
    return set(Path(tempfile.gettempdir()).glob(f"{PREFIX}{os.getpid()}-*"))


def test_nothing_outlives_the_pool() -> None:
    with Pool(LIMITS) as pool:
        pool.run([GOOD])  # what all pools share stays
    folders, others = mine(), set(psutil.Process().children(recursive=True))
    with Pool(LIMITS) as pool:
        pool.run([job("import subprocess\nsubprocess.Popen(['sleep', '61'])\nreturn lambda: [np.ones(1)]")])
        started = set(psutil.Process().children(recursive=True)) - others
        assert "sleep" in {process.name() for process in started}
        assert len(mine()) == len(folders) + 1
    _, alive = psutil.wait_procs(started, timeout=5)
    assert not alive
    assert mine() == folders
