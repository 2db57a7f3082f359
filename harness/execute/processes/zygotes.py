"""Starts processes from zygotes (`zygote.py`): one for each beginning of the modules that were asked for, forked from
the one before it, so that each module is imported once, however many workers and ranks need it."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import re
import selectors
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from harness.execute.isolation import folders

LONGEST = 1 << 16
"""Bytes of a message."""
SCRIPT = Path(__file__).with_name("zygote.py")
_GLANCE = 0.5
"""Seconds after which it is looked whether there is time left."""
_NOWHERE = "/"
"""Where zygotes work, which write no files."""
_ENDS = 2.0
"""Seconds in which a process whose socket is closed has ended."""


class OutOfTime(Exception):
    """The time that something was given is over: whatever ran is abandoned, and says nothing."""


@dataclass(frozen=True)
class Patience:
    """seconds: for an import; until: when there is no time left (`time.monotonic`), which may change meanwhile."""

    seconds: float
    until: Callable[[], float]

    def check(self) -> None:
        """Raises OutOfTime."""
        if time.monotonic() >= self.until():
            raise OutOfTime


class ZygoteError(Exception):
    """A zygote does not start, or has ended; the message says why."""


def death_message(log: str) -> str:
    """The line that says why a process died: the last one that names a failed check, otherwise the last one that
    is not a frame of a stack trace. Empty where there is none."""
    lines = [line.strip() for line in log.splitlines()[-100:] if line.strip()]
    telling = [line for line in lines if re.search(r"[Cc]heck failed|Assertion|terminate called", line)]
    others = [line for line in lines if not re.match(r"@ +0x|#\d|\*\*\* ", line)]
    return (telling or others or [""])[-1][:300]


class Forked:
    """A process that a zygote has started. connection: to it; log: its standard error (None: it is its
    parent's)."""

    def __init__(self, pid: int, connection: socket.socket, log: Path | None, parent: Zygote) -> None:
        self.pid, self.connection, self.log, self._parent = pid, connection, log, parent
        self._status: int | None = None

    def kill(self) -> None:
        """End it, and everything that it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)

    def close(self) -> None:
        """End it, and let its parent forget it."""
        self.kill()
        self.connection.close()
        self._ended()

    def death(self) -> tuple[str, str]:
        """How it ended, and the line that says why."""
        status = self._ended()
        how = "of unknown cause" if status is None else f"exit {status}"
        if status is not None and status < 0:
            how = f"signal {signal.Signals(-status).name}"
        text = self.log.read_text(encoding="utf-8", errors="replace") if self.log else ""
        return how, death_message(text)

    def _ended(self) -> int | None:
        """Its exit status; its process id may be another's afterwards."""
        if self._status is None:
            with contextlib.suppress(ZygoteError, OSError):
                question = {"kind": "ended", "pid": self.pid, "seconds": _ENDS}
                self._status = self._parent.ask(question, (), 2 * _ENDS)["status"]
        return self._status


@dataclass(eq=False)
class Zygote:
    """One of them. control: where it takes orders; itself: where another one has forked it; loaded: has it said that it
    can fork?"""

    control: socket.socket
    itself: Forked | None
    loaded: bool
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def ask(self, message: Mapping, handles: Sequence[int], seconds: float) -> dict:
        """Its answer. Raises ZygoteError, and OSError where the machine lets it start nothing."""
        try:
            with self._lock:
                socket.send_fds(self.control, [json.dumps(message).encode()], list(handles))
                self.control.settimeout(seconds)
                text = self.control.recv(LONGEST)
        except BaseException as error:  # an answer under way would be taken for that to the next message
            self.control.close()
            if isinstance(error, OSError):
                raise ZygoteError(f"it does not answer ({error})") from error
            raise
        answer = json.loads(text) if text else {}
        if "errno" in answer:
            raise OSError(answer["errno"], os.strerror(answer["errno"]))
        if not answer:
            raise ZygoteError("it has ended")
        return answer

    def told(self) -> str | None:
        """Why what has its module cannot be forked, or None, once it has said so or ended."""
        try:
            text = self.control.recv(LONGEST)
        except OSError:
            text = b""
        return json.loads(text)["why"] if text else "it ended while importing it"


@dataclass
class Zygotes:
    """The zygotes of one interpreter. command: that runs a script of it; variables: of their environment; shared: do
    they import what they are asked for, and not each process that they fork? Their folder lives as long as they do, as
    those of pools do not: some modules keep what it was called when they were imported (torch/_inductor/codecache.py
    has headers there). Several threads may use them."""

    command: Sequence[str]
    variables: Mapping[str, str]
    shared: bool = True
    unfit: dict[str, str] = field(default_factory=dict)
    """Modules that no zygote can have, and why: whoever needs one imports it after all the others."""

    def __post_init__(self) -> None:
        self._found: dict[tuple[str, ...], Zygote] = {}
        self._root: subprocess.Popen[bytes] | None = None
        self._folder: folders.Folder | None = None
        self._log = TemporaryFile("a+b")  # noqa: SIM115
        self._lock = threading.RLock()

    def prepare(self, wanted: Iterable[Sequence[str]], patience: Patience) -> None:
        """Have zygotes for so many sets of modules, which import side by side. Raises ZygoteError, OSError and
        OutOfTime."""
        sets = [tuple(modules) for modules in wanted]
        with self._lock:
            started = True
            while started:
                started = False
                for modules in sets:
                    fit = self._fit(modules)
                    depth = next((n for n in range(len(fit) + 1) if fit[:n] not in self._found), None)
                    if depth is not None and (depth == 0 or self._found[fit[: depth - 1]].loaded):
                        patience.check()
                        self._start(fit[:depth], patience)
                        started = True
                self._settle(patience)

    def fork(self, order: Mapping, modules: Sequence[str], log: Path, patience: Patience) -> Forked:
        """Start a process that follows an order; it is told of the modules that it has to import by itself. What has
        been killed is started once more. Raises ZygoteError, OSError and OutOfTime."""
        with self._lock:
            try:
                return self._fork(order, modules, log, patience)
            except ZygoteError:
                patience.check()
                self.stop()
            try:
                return self._fork(order, modules, log, patience)
            except ZygoteError as error:
                self.stop()
                self._log.seek(0)
                text = self._log.read().decode(errors="replace")
                raise ZygoteError(f"{error}: {death_message(text)}".rstrip(": ")) from error

    def stop(self) -> None:
        """End them; the next fork starts new ones."""
        for zygote in self._found.values():
            zygote.control.close()
        self._found.clear()
        if self._root:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._root.pid, signal.SIGKILL)
            self._root.wait()
        self._root = None
        if self._folder:
            self._folder.close()
        self._folder = None

    def close(self) -> None:
        """End them for good."""
        self.stop()
        self._log.close()

    def _fit(self, modules: Sequence[str]) -> tuple[str, ...]:
        """Those of the modules that a zygote can have."""
        return tuple(module for module in modules if self.shared and module not in self.unfit)

    def _fork(self, order: Mapping, modules: Sequence[str], log: Path, patience: Patience) -> Forked:
        self.prepare([modules], patience)
        fit = self._fit(modules)
        zygote = self._found[fit]
        told = {**order, "modules": [module for module in modules if module not in fit]}
        ours, theirs = socket.socketpair()
        with theirs, log.open("ab") as file:
            return _asked(zygote, told, (ours, theirs), file, log, patience)

    def _start(self, modules: tuple[str, ...], patience: Patience) -> None:
        """Start the zygote of these modules, of which another one has all but the last."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        itself = None
        with theirs:
            if modules:
                parent = self._found[modules[:-1]]
                self._folder = self._folder or folders.make()
                variables = {"TMPDIR": str(self._folder.path)}
                order = {"kind": "zygote", "module": modules[-1], "folder": _NOWHERE, "variables": variables}
                itself = _asked(parent, order, (ours, theirs), self._log, None, patience)
            else:
                self._root = subprocess.Popen(
                    [*self.command, str(SCRIPT), str(theirs.fileno())],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=self._log,
                    env=dict(self.variables),
                    cwd=_NOWHERE,
                    pass_fds=(theirs.fileno(),),
                    start_new_session=True,
                )
        self._found[modules] = Zygote(ours, itself, loaded=not modules)

    def _settle(self, patience: Patience) -> None:
        """Wait until all have imported their module."""
        waiting = {modules: zygote for modules, zygote in self._found.items() if not zygote.loaded}
        deadline = time.monotonic() + patience.seconds
        while waiting:
            with selectors.DefaultSelector() as selector:
                for modules, zygote in waiting.items():
                    selector.register(zygote.control, selectors.EVENT_READ, modules)
                events = selector.select(_GLANCE)
            patience.check()
            late = time.monotonic() >= deadline
            for modules in [event[0].data for event in events] or (list(waiting) if late else ()):
                zygote = waiting.pop(modules)
                why = zygote.told() if events else f"not imported within {patience.seconds:g} s"
                zygote.loaded = why is None
                if why is not None and zygote.itself:
                    self.unfit[modules[-1]] = why
                    zygote.itself.close()
                    del self._found[modules]


def _asked(
    zygote: Zygote,
    order: Mapping,
    pair: tuple[socket.socket, socket.socket],
    log: IO[bytes],
    path: Path | None,
    patience: Patience,
) -> Forked:
    """What a zygote starts by an order. pair: the connection to it, and what it gets of that; log, path: its standard
    error."""
    ours, theirs = pair
    try:
        answer = zygote.ask(order, (theirs.fileno(), log.fileno()), patience.seconds)
    except BaseException:
        ours.close()
        raise
    return Forked(answer["pid"], ours, path, zygote)


def shared(interpreter: str, variables: Mapping[str, str]) -> Zygotes:
    """Those that all of this process share, for as long as it lives. variables: of the environment. Raises OSError."""
    kept = {name: value for name, value in variables.items() if name != "PYTEST_CURRENT_TEST"}  # another in each test
    return _shared(interpreter, tuple(sorted(kept.items())), os.getpid())


@cache
def _shared(interpreter: str, variables: tuple[tuple[str, str], ...], process: int) -> Zygotes:
    found = Zygotes([interpreter], dict(variables))

    def close() -> None:
        if os.getpid() == process:
            found.close()

    atexit.register(close)
    return found
