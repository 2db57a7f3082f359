"""A worker: a process that executes the programs it is sent and returns their arrays. Standalone: it imports
nothing but the standard library and numpy (and ml_dtypes where there is a bfloat16), so that any interpreter with
a framework can run it; `zygote.py` forks it.

Messages are a 4-byte length, a JSON header and the raw bytes of the arrays that the header lists; no pickle.
They travel over a socket; standard input and output of programs are /dev/null, standard error is a file."""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
import importlib.util
import json
import os
import re
import resource
import socket
import struct
import sys
import traceback
from pathlib import Path
from typing import IO

import numpy as np

KEPT = 2000
"""Characters of an error message, at its beginning and at its end: what stands between is where it was called from."""


_LOST_DEVICE = re.compile(
    r"illegal memory access|misaligned address|illegal instruction|invalid program counter|device-side assert"
    r"|hardware stack error|(operation not supported on|invalid) global/shared address space"
    r"|unspecified launch failure|CUDA_ERROR_(ILLEGAL_ADDRESS|MISALIGNED_ADDRESS|ILLEGAL_INSTRUCTION|INVALID_PC|ASSERT"
    r"|HARDWARE_STACK_ERROR|INVALID_ADDRESS_SPACE|LAUNCH_FAILED)"
)
"""Errors of CUDA that "leave the process in an inconsistent state and any further CUDA work will return the same
error. To continue using CUDA, the process must be terminated and relaunched" (CUDA Runtime API, cudaError)."""


def loses_device(message: str) -> bool:
    """Does an error say that its process can do nothing more on the GPU?"""
    return bool(_LOST_DEVICE.search(message))


def write_message(stream: IO[bytes], header: dict, arrays: dict[str, np.ndarray]) -> None:
    """Send a header (JSON) and named arrays of plain dtypes."""
    buffers = [np.ascontiguousarray(a) for a in arrays.values()]
    described = [
        {"name": name, "dtype": str(b.dtype), "shape": list(np.shape(arrays[name]))}
        for name, b in zip(arrays, buffers, strict=True)
    ]
    text = json.dumps({**header, "arrays": described}).encode()
    stream.write(struct.pack(">I", len(text)) + text + b"".join(b.tobytes() for b in buffers))
    stream.flush()


def read_message(stream: IO[bytes]) -> tuple[dict, dict[str, np.ndarray]]:
    """Receive what `write_message` sent. Raises EOFError where the stream ends first."""
    header = json.loads(_exactly(stream, struct.unpack(">I", _exactly(stream, 4))[0]))
    arrays = {}
    for item in header.pop("arrays"):
        dtype = dtype_of(item["dtype"])
        count = int(np.prod(item["shape"], dtype=np.int64))
        data = bytearray(_exactly(stream, count * dtype.itemsize))
        arrays[item["name"]] = np.frombuffer(data, dtype, count).reshape(item["shape"])
    return header, arrays


def dtype_of(name: str) -> np.dtype:
    """numpy knows bfloat16 once ml_dtypes is imported."""
    if name == "bfloat16":
        importlib.import_module("ml_dtypes")
    return np.dtype(name)


def _exactly(stream: IO[bytes], count: int) -> bytes:
    data = stream.read(count)
    if len(data) < count:
        raise EOFError(f"{count} bytes expected, {len(data)} received")
    return data


def cpu_seconds() -> float:
    """Processor time of this process and of the children it has waited for (compilers)."""
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def execute(path: str, arrays: dict[str, np.ndarray]) -> tuple[dict, dict[str, np.ndarray]]:
    """Run the program file: its `load` gets the parameters, what that returns gets the inputs."""
    started = cpu_seconds()
    namespace: dict = {"__name__": "program"}
    try:
        exec(compile(Path(path).read_text(encoding="utf-8"), path, "exec"), namespace)
        run = namespace["load"]({name: arrays[name] for name in namespace["PARAMETERS"]})
        outputs = run(*[arrays[name] for name in namespace["INPUTS"]])
        results = {str(i): np.asarray(output) for i, output in enumerate(outputs)}
        for result in results.values():
            if result.dtype.kind not in "biufcU" and str(result.dtype) != "bfloat16":
                raise TypeError(f"an output is not a plain array but {result.dtype}")
    except MemoryError as error:
        return {"outcome": "memory", "message": said(error), "cpu": cpu_seconds() - started}, {}
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.line for frame in frames if frame.filename == path and frame.line]
        own = (bool(frames) and frames[-1].filename == path) or isinstance(error, SyntaxError)
        if isinstance(error, AttributeError) and error.name:  # TensorFlow takes its own frames out of a traceback
            own &= error.name in Path(path).read_text(encoding="utf-8")
        header = {
            "outcome": "rejected",
            "kind": type(error).__name__,
            "message": "\n".join([said(error), *steps_of(error)]),
            # raised by the program's own text, not by a framework that it called
            "own": own and isinstance(error, NameError | AttributeError | SyntaxError | ImportError),
            "cpu": cpu_seconds() - started,
            "lines": lines,
        }
        return header, {}
    return {"outcome": "value", "cpu": cpu_seconds() - started}, results


def said(error: Exception) -> str:
    """Its message, shortened in the middle, of which lines that name an error are kept, as far as there is room."""
    text = str(error)
    if len(text) <= 2 * KEPT:
        return text
    middle = "\n".join(errors_of(text[KEPT:-KEPT]))
    between = f" ... \n{middle[:KEPT]}\n ... " if middle else " ... "
    return f"{text[:KEPT]}{between}{text[-KEPT:]}"


def errors_of(text: str) -> list[str]:
    """Lines by which a compiler of MLIR or C++ says one error of several; notes and the whole program stand around."""
    return [line for line in text.splitlines() if " error: " in line]


def steps_of(error: Exception) -> list[str]:
    """Notes by which a program says in which of its steps an exception was raised."""
    return [note for note in getattr(error, "__notes__", ()) if note.startswith("in step ")]


def _memory_used() -> int:
    """Resident bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def _limit_memory(allowance: int) -> None:
    """Let private writable memory grow by `allowance` bytes from now on. Not the address space: CUDA reserves
    more of that than any limit, and uses little."""
    size = int(Path("/proc/self/statm").read_text().split()[5]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_DATA, (size + allowance, size + allowance))


def versions_of(packages: list[str]) -> dict[str, str]:
    """Installed versions of distributions; "a|b" means either."""
    found = {}
    for names in packages:
        for name in names.split("|"):
            try:
                found[names] = importlib.metadata.version(name)
                break
            except importlib.metadata.PackageNotFoundError:
                continue
    return found


def _after_program() -> None:
    """Forget compiled code of the last program where the framework keeps it for ever, and nothing needs it again; close
    the level of forward mode that PyTorch leaves open where it compiles one and its backend raises."""
    dynamo = sys.modules.get("torch._dynamo")
    if dynamo is not None and "opened_models" not in sys.modules:
        dynamo.reset()
    if "torch" in sys.modules:
        with contextlib.suppress(RuntimeError):  # none is open
            sys.modules["torch"]._C._exit_dual_level(level=0)


def load(modules: list[str], replies: IO[bytes]) -> bool:
    """Import them. Where one fails, say so: any failure is the reason why nothing of that framework runs."""
    try:
        for module in modules:
            importlib.import_module(module)
    except Exception as error:
        write_message(replies, {"outcome": "unavailable", "message": f"{type(error).__name__}: {error}"}, {})
        return False
    return True


def serve(order: dict, connection: socket.socket) -> None:
    """Import what is left of the modules, and execute programs until there are no more. order: modules, memory (bytes
    that programs may allocate; 0: no limit), recycle (leave when resident memory has grown by so many; 0: never)."""
    requests, replies = connection.makefile("rb"), connection.makefile("wb")
    started = cpu_seconds()
    if not load(order["modules"], replies):
        return
    if order["memory"]:
        _limit_memory(order["memory"])
    baseline = _memory_used()
    write_message(replies, {"outcome": "ready", "cpu": cpu_seconds() - started}, {})
    while True:
        try:
            header, arrays = read_message(requests)
        except EOFError:
            return
        os.ftruncate(2, 0)
        reply, results = execute(header["program"], arrays)
        del arrays
        leave = reply["outcome"] == "memory" or loses_device(reply.get("message", ""))
        leave |= bool(order["recycle"]) and _memory_used() - baseline > order["recycle"]
        write_message(replies, {**reply, "leaving": leave}, results)
        if leave:
            os._exit(0)
        _after_program()
