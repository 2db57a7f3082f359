"""A rank: one of the processes that run a training program together. Standalone, as `worker.py` is, whose messages it
speaks: the standard library and numpy only."""

from __future__ import annotations

import gc
import os
import socket
import traceback
from pathlib import Path

import numpy as np
from worker import cpu_seconds, load, read_message, said, write_message  # beside this file


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
        header = {"outcome": "rejected", "kind": type(error).__name__, "message": said(error), "own": own}
        return {**header, "cpu": cpu_seconds() - started}, {}
    return {"outcome": "value", "cpu": cpu_seconds() - started}, results


def serve(order: dict, connection: socket.socket) -> None:
    """Import what is left of the modules, and run programs until there are no more. order: rank, world, modules."""
    requests, replies = connection.makefile("rb"), connection.makefile("wb")
    if not load(order["modules"], replies):
        return
    write_message(replies, {"outcome": "ready"}, {})
    while True:
        try:
            header, arrays = read_message(requests)
        except EOFError:
            os._exit(0)
        reply, results = execute(header["program"], order["rank"], order["world"], arrays)
        write_message(replies, reply, results)
        del arrays, results
        gc.collect()
