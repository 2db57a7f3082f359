"""A process that has imported what is slow and forks ranks: processes that run one program together. Standalone, as
`worker.py` is, whose messages it speaks: the standard library and numpy only.

It reads lines of JSON from its standard input, each of which starts one rank, and answers with a line for each rank
that ends. A rank connects to the socket that it is told of, and takes programs from there."""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import gc
import importlib
import json
import os
import signal
import socket
import sys
import traceback
import warnings
from pathlib import Path

import numpy as np
from worker import MESSAGE_LIMIT, address, cpu_seconds, read_message, write_message  # beside this file


def execute(path: str, rank: int, world: int, arrays: dict[str, np.ndarray]) -> tuple[dict, dict[str, np.ndarray]]:
    """Run the program file's `train`. `own`: an error of the program's own text, not of a framework."""
    started = cpu_seconds()
    namespace: dict = {"__name__": "program"}
    try:
        exec(compile(Path(path).read_text(encoding="utf-8"), path, "exec"), namespace)
        results = namespace["train"](rank, world, arrays)
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        inside = bool(frames) and frames[-1].filename == path
        own = (inside and isinstance(error, NameError | AttributeError | KeyError)) or isinstance(error, SyntaxError)
        message = str(error)[:MESSAGE_LIMIT]
        header = {"outcome": "rejected", "kind": type(error).__name__, "message": message, "own": own}
        return {**header, "cpu": cpu_seconds() - started}, {}
    return {"outcome": "value", "cpu": cpu_seconds() - started}, results


def serve(order: dict) -> None:
    """The life of one rank."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: do not outlive the zygote
    os.environ.update(order["environment"])
    log = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 2)
    with socket.socket(socket.AF_UNIX) as connection:
        with address(order["socket"]) as near:
            connection.connect(near)
        requests, replies = connection.makefile("rb"), connection.makefile("wb")
        rank, world = order["rank"], order["world"]
        write_message(replies, {"outcome": "ready", "rank": rank, "pid": os.getpid()}, {})
        while True:
            try:
                header, arrays = read_message(requests)
            except EOFError:
                os._exit(0)
            reply, results = execute(header["program"], rank, world, arrays)
            write_message(replies, reply, results)
            del arrays, results
            gc.collect()


def say(message: dict) -> None:
    """A line, in one piece: while it is written the signal may come that says another one."""
    os.write(1, (json.dumps(message) + "\n").encode())


def _reap() -> None:
    """Say which ranks have ended."""
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            say({"pid": pid, "status": os.waitstatus_to_exitcode(status)})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--modules", nargs="*", default=[], help="imported before the first rank is forked")
    options = parser.parse_args()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides when to stop
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    warnings.filterwarnings("ignore")
    try:
        for module in options.modules:
            importlib.import_module(module)
    except Exception as error:  # any failure to import is the reason why its strategies are off
        say({"unavailable": f"{type(error).__name__}: {error}"})
        return
    say({"ready": cpu_seconds()})
    signal.signal(signal.SIGCHLD, lambda *_: _reap())
    for line in sys.stdin:
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, 0)
            os.dup2(null, 1)
            serve(json.loads(line))


if __name__ == "__main__":
    main()
