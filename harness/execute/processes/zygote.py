"""A process that has imported what is slow and forks others, which have it at once: workers, ranks, and zygotes that
import more. Standalone, as `worker.py` is: the standard library and numpy only.

    python zygote.py HANDLE

HANDLE is a Unix socket that keeps messages apart (SOCK_SEQPACKET). Each order is JSON; what it starts gets the two
file handles that come with it, a socket of its own and a file for its standard error. An order is answered by the
process id, a question of how a process ended by its exit status."""

from __future__ import annotations

import contextlib
import copy
import ctypes
import gc
import importlib
import importlib.util
import json
import os
import signal
import socket
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import rank  # beside this file, as worker is
import worker

LONGEST = 1 << 16
"""Bytes of a message."""
LATER = {"torch": ("sympy", "torch._inductor.compile_fx", "torch._export", "torch.utils.cpp_extension")}
"""What a framework imports with the first program that needs it. What is forked has it from the start, so that what it
grows by afterwards is a leak."""

TELLING = ("openvino_telemetry",)
"""Modules that tell the makers of a framework over the network what it is used for, and leave a number of the user in
the home folder. Programs do not find them; the frameworks do without."""


def say(control: socket.socket, message: dict) -> None:
    """A message, in one piece."""
    control.sendall(json.dumps(message).encode())


def serve(control: socket.socket) -> None:
    """Follow orders until nobody gives them any more."""
    while True:
        text, handles, _, _ = socket.recv_fds(control, LONGEST, 2)
        if not text:
            return
        order = json.loads(text)
        if order["kind"] == "ended":
            say(control, {"status": ended(order["pid"], order["seconds"])})
            continue
        parent = os.getpid()
        try:
            child = os.fork()
        except OSError as error:
            child = -1
            say(control, {"errno": error.errno})
        if child == 0:
            control.close()
            begin(order, parent, handles[1])
            live(order, socket.socket(fileno=handles[0]))
            return
        for handle in handles:
            os.close(handle)
        if child > 0:
            _lead(child)
            say(control, {"pid": child})


def begin(order: dict, parent: int, log: int) -> None:
    """What every process does that was forked: it ends with its parent, leads its own group, works in a folder of its
    own, where its temporary files are, too, and has more environment variables."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if os.getppid() != parent:
        os._exit(1)
    _lead(0)
    name_process(order["kind"])
    os.dup2(log, 2)
    os.close(log)
    os.chdir(order["folder"])
    os.environ.update(order["variables"])
    tempfile.tempdir = None


def name_process(name: str) -> None:
    """As lists of processes have it."""
    ctypes.CDLL(None).prctl(15, name.encode())  # PR_SET_NAME


def _lead(process: int) -> None:
    """Done on both sides, so that neither has to wait for the other."""
    with contextlib.suppress(OSError):
        os.setpgid(process, process)


def live(order: dict, connection: socket.socket) -> None:
    """The life of a process that was forked."""
    match order["kind"]:
        case "zygote":
            why = prepared(order["module"])
            say(connection, {"why": why})
            if why is None:
                serve(connection)
        case "worker":
            worker.serve(order, connection)
        case "rank":
            rank.serve(order, connection)


def prepared(module: str) -> str | None:
    """Import it, and what it would import later. Why what has it cannot be forked, or None: a fork has the thread that
    made it, and no other."""
    try:
        importlib.import_module(module)
        for late in LATER.get(module, ()):
            if importlib.util.find_spec(late):
                importlib.import_module(late)
        make_registry_once()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    gc.collect()
    gc.freeze()  # what is never looked at by the collector is shared by all that are forked
    return None if len(list(Path("/proc/self/task").iterdir())) == 1 else "it starts threads"


def make_registry_once() -> None:
    """PyTorch's exporter to ONNX parses the sources of 497 functions of onnxscript for each model, 0.3 of the 0.5
    processor seconds of a small one (PyTorch 2.13). They are the same for all, as long as no operator is registered:
    whoever asks gets a copy of the first registry."""
    if not {"torch", "onnxscript"} <= sys.modules.keys():
        return
    try:
        registration = importlib.import_module("torch.onnx._internal.exporter._registration")
    except ImportError:  # before PyTorch 2.5
        return
    registry, torch = registration.ONNXRegistry, sys.modules["torch"]
    if isinstance(registry.from_torchlib, Copies):
        return
    names = torch._C._dispatch_get_all_op_names
    registry.from_torchlib = Copies(registry.from_torchlib, registry().opset_version, lambda: len(names()))
    registry.from_torchlib()


class Copies:
    """A registry for an opset, made once for each: a copy for whoever asks, with lists of its own. make: it; opset:
    where none is named; state: what it depends on beside."""

    def __init__(self, make: Callable[[int], Any], opset: int, state: Callable[[], int]) -> None:
        self.make, self.opset, self.state = make, opset, state
        self.made: dict[tuple[int, int], Any] = {}

    def __call__(self, opset_version: int | None = None) -> Any:
        key = (self.opset if opset_version is None else opset_version, self.state())
        if key not in self.made:
            self.made[key] = self.make(key[0])
        copied = copy.copy(self.made[key])
        copied.functions = {target: list(functions) for target, functions in copied.functions.items()}
        return copied


def ended(process: int, seconds: float) -> int | None:
    """The exit status of a process that was forked (negative: by a signal); None where it lives on for so long."""
    until = time.monotonic() + seconds
    while True:
        try:
            found, status = os.waitpid(process, os.WNOHANG)
        except ChildProcessError:
            return None
        if found:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() >= until:
            return None
        time.sleep(0.002)


def main() -> None:
    control = socket.socket(fileno=int(sys.argv[1]))
    control.set_inheritable(False)
    name_process("zygote")
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides when to stop; where it ends, so does its socket
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    warnings.filterwarnings("ignore")
    for name in TELLING:
        sys.modules[name] = None  # type: ignore[assignment] # as Python says it (reference 5.3.1): it is not found
    serve(control)


if __name__ == "__main__":
    main()
