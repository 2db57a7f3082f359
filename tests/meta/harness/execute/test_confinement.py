"""What a confined worker can reach, and what it cannot, nor the processes that it starts."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from harness.execute.isolation import confine, confinement
from harness.execute.isolation.confinement import Confinement
from harness.execute.pool import Job, Limits, Pool
from oracles.judge.outcome import Outcome, Rejected, Value

pytestmark = pytest.mark.skipif(confinement.missing() is not None, reason=str(confinement.missing()))

HEADER = "import ctypes, os, socket, subprocess, sys\nimport numpy as np\nINPUTS, PARAMETERS = [], []\n"


def job(body: str, framework: str = "one", own: bool = False) -> Job:
    """A program whose `load` runs `body`."""
    lines = "\n".join("    " + line for line in body.splitlines())
    text = f"{HEADER}def load(parameters):\n{lines}\n    return lambda: [np.ones(1)]\n"
    return Job(framework, ("json",), text, {}, own=own)


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder that is not granted, with a secret in it."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret").write_text("nobody else is to read it")
    return folder


@pytest.fixture
def confined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pool]:
    """A pool whose workers may read `given` and write `made`."""
    monkeypatch.setenv("PASSWORD", "nobody else is to know it")
    (tmp_path / "made").mkdir()
    (tmp_path / "given").write_text("a model")
    allowed = Confinement((tmp_path / "given", tmp_path / "nowhere"), (tmp_path / "made",))
    with Pool(Limits(seconds=20.0), allowed) as pool:
        yield pool


def run(pool: Pool, body: str, own: bool = False) -> Outcome:
    return pool.run([job(body, "own" if own else "one", own)])[0]


ALLOWED = {
    "read what is given": "assert open({tmp!r} + '/given').read() == 'a model'",
    "write where it may": "open({tmp!r} + '/made/file', 'w').write('x')",
    "make and remove a folder": "os.mkdir({tmp!r} + '/made/new')\nos.rmdir({tmp!r} + '/made/new')",
    "write into its own folder": "open('scratch', 'w').write('x')",
    "write temporary files": "import tempfile\ntempfile.TemporaryFile().write(b'x')",
    "import what is installed": "import packaging, sqlite3",
    "run a program": "subprocess.run(['/bin/true'], check=True)",
    "run Python": "subprocess.run([sys.executable, '-c', 'import numpy'], check=True)",
    "talk to its own children": "a, b = socket.socketpair()\na.send(b'x')\nassert b.recv(1) == b'x'",
    "kill its own children": "child = subprocess.Popen(['/bin/sleep', '60'])\nchild.kill()\nchild.wait()",
}


@pytest.mark.parametrize("what", ALLOWED)
def test_what_it_may(what: str, confined: Pool, tmp_path: Path) -> None:
    assert isinstance(run(confined, ALLOWED[what].format(tmp=str(tmp_path))), Value)


REFUSED = {
    "read": "open({out!r} + '/secret').read()",
    "read by another name of it": "open('/proc/self/root' + {out!r} + '/secret').read()",
    "list": "os.listdir({out!r})",
    "write": "open({out!r} + '/mark', 'w')",
    "append": "open({out!r} + '/secret', 'a')",
    "cut short": "os.truncate({out!r} + '/secret', 0)",
    "remove": "os.remove({out!r} + '/secret')",
    "make a folder": "os.mkdir({out!r} + '/mark')",
    "move in": "open('file', 'w').close()\nos.rename('file', {out!r} + '/mark')",
    "move out": "os.rename({out!r} + '/secret', 'secret')",
    "link to a file": "os.link({out!r} + '/secret', 'secret')",
    "a link that leads out": "os.symlink({out!r} + '/secret', {tmp!r} + '/made/link')",
    "write what is only given to be read": "open({tmp!r} + '/given', 'a')",
    "its home": "os.listdir({home!r})",
    "users of the machine": "open('/etc/passwd').read()",
    "an internet socket": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM)",
    "a TCP connection": "socket.create_connection(('127.0.0.1', {port}))",
    "a socket of another program": "socket.socket(socket.AF_UNIX)",
    "a signal to who started it": "os.kill({pid}, 0)",
    "variables of another process": "open('/proc/{pid}/environ').read()",
    "memory of another process": "open('/proc/{pid}/mem', 'rb').read(1)",
    "another name space": "if ctypes.CDLL(None).unshare(0x10000000):\n    raise PermissionError",
    "input and output rings": (
        "if ctypes.CDLL(None).syscall(425, 1, ctypes.create_string_buffer(120)) < 0:\n    raise PermissionError"
    ),
    "all that by another program": "subprocess.run(['/bin/cat', {out!r} + '/secret'], check=True, capture_output=True)",
    "and from a session of its own": (
        "subprocess.run(['/bin/cat', {out!r} + '/secret'], check=True, capture_output=True, start_new_session=True)"
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_it_may_not(what: str, confined: Pool, tmp_path: Path, outside: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        body = REFUSED[what].format(
            tmp=str(tmp_path), out=str(outside), pid=os.getpid(), port=port, home=str(Path.home())
        )
        refused = run(confined, body)
        free = run(confined, body, own=True)
    assert isinstance(refused, Rejected)
    assert refused.kind in ("PermissionError", "OSError", "CalledProcessError"), refused
    if what not in ("another name space", "input and output rings", "memory of another process"):  # not everybody may
        assert isinstance(free, Value), f"the attempt itself is wrong: {free}"
    if not isinstance(free, Value):
        assert (outside / "secret").read_text() == "nobody else is to read it"


def test_it_knows_no_variables_of_the_user(confined: Pool) -> None:
    assert isinstance(run(confined, "assert 'PASSWORD' not in os.environ"), Value)
    assert isinstance(run(confined, "assert os.environ['HOME'] == os.getcwd()"), Value)
    assert isinstance(run(confined, "assert 'PASSWORD' in os.environ", own=True), Value)


def test_no_file_grows_for_ever(confined: Pool) -> None:
    outcome = run(confined, f"with open('long', 'wb') as file:\n    file.truncate({confinement.LARGEST + 1})")
    assert isinstance(outcome, Rejected)
    assert "File too large" in outcome.message


def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confine, "landlock_version", lambda: 0)
    assert str(confinement.missing()).startswith("this kernel has no Landlock")
    monkeypatch.setattr(confine.platform, "machine", lambda: "pdp11")
    assert str(confinement.missing()).startswith("no filter of system calls on ")


def test_without_landlock_sockets_are_refused_still(tmp_path: Path) -> None:
    script = (
        "import sys, socket\nsys.path.insert(0, sys.argv[1])\nimport confine\nconfine.limit_calls()\nsocket.socket()"
    )
    command = [sys.executable, "-c", script, str(Path(confine.__file__).parent)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stderr.splitlines()[-1].startswith("PermissionError")


def test_arrays_come_back(confined: Pool) -> None:
    outcome = run(confined, "pass")
    assert isinstance(outcome, Value)
    assert np.array_equal(outcome.outputs[0], np.ones(1))
