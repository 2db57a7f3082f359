"""A model file that is given: recognised on disk, opened in a worker, its signature read, its program printed."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from harness.backends import probe
from harness.conversions.formats import FORMATS, Format, Runner
from harness.execute.pool import Job, Pool
from oracles.judge.outcome import Crash, Outcome, Rejected, Timeout, Value


class FormatError(ValueError):
    """A file that cannot be used as a model; the message is one line that names it."""


@dataclass(frozen=True)
class Port:
    """An input or output of a model. A dimension that varies is None; dtype and shape are None where the file does not
    tell them."""

    name: str
    dtype: str | None
    shape: tuple[int | None, ...] | None

    def __str__(self) -> str:
        dims = "?" if self.shape is None else ",".join("?" if dim is None else str(dim) for dim in self.shape)
        return f"{self.name}: {self.dtype or '?'}[{dims}]"


@dataclass(frozen=True)
class Signature:
    """Inputs and outputs of a model, in its own order."""

    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]


def recognise(path: Path, trust: bool = False) -> Format:
    """The format of a file or folder, by its name and first bytes; nothing is loaded. Raises FormatError, also for a
    format that executes code unless `trust`."""
    if not path.exists():
        raise FormatError(f"{path} does not exist")
    if path.is_dir():
        candidates = [one for one in FORMATS.values() if not one.suffixes]
    else:
        candidates = [one for one in FORMATS.values() if path.suffix.lower() in one.suffixes]
    if not candidates:
        known = ", ".join(suffix for one in FORMATS.values() for suffix in one.suffixes)
        raise FormatError(f"{path}: no format of model has the suffix {path.suffix!r}; there are {known}")
    found = candidates[0]
    try:
        why = found.check(path)
    except OSError as error:
        raise FormatError(f"{path}: {error.strerror}") from error
    if why:
        raise FormatError(f"{path} is not of format {found.name}: {why}")
    if found.executes and not trust:
        raise FormatError(f"{path} is refused unless it is trusted (--trust): {found.executes}")
    return found


def unavailable(runner: Runner) -> str | None:
    """Why a runner is not usable here, or None."""
    return probe.installed(runner.packages)[1]


def program(runner: Runner, path: Path, inputs: Sequence[str], trust: bool = False) -> str:
    """The text of a standalone program that opens the file: `load({})` returns `run(*inputs) -> outputs`, in the order
    of the model's signature. inputs: names of the arrays that it is given, in that order."""
    return f"""import numpy as np

PATH = {str(path.resolve())!r}
TRUST = {trust!r}  # may code that the file carries be executed?
INPUTS = {list(inputs)!r}
PARAMETERS = []

{runner.open}

def load(parameters):
    return open_model(PATH)[2]
"""


OPENED = """
def opened_model():
    \"\"\"As open_model(PATH), once in a worker: it keeps what it has opened.\"\"\"
    import sys
    import types

    kept = sys.modules.setdefault("opened_models", types.ModuleType("opened_models")).__dict__
    if KEY not in kept:
        kept[KEY] = open_model(PATH)
    return kept[KEY]
"""
"""A function of a program, behind KEY."""
_SIGNATURE = """

def load(parameters):
    import json

    def run():
        inputs, outputs, _ = opened_model()
        told = json.dumps([inputs, outputs])
        return [np.frombuffer(told.encode(), np.uint8)]

    return run
"""


def opening(runner: Runner, path: Path, inputs: Sequence[str], trust: bool = False) -> str:
    """The text of a program up to its `load`, with `opened_model()`."""
    opened = program(runner, path, inputs, trust).rpartition("\ndef load(")[0]
    return f"{opened}KEY = {runner.name + ' ' + str(path.resolve())!r}\n{OPENED}"


def signature(pool: Pool, runner: Runner, path: Path, trust: bool = False) -> Signature:
    """What the model takes and returns, as the runner that opens it says. Raises FormatError with the runner's first
    line where it does not open."""
    text = f"{opening(runner, path, [], trust)}{_SIGNATURE}"
    outcome = pool.run([Job(runner.framework, runner.modules, text, {}, reads=(path,))], confirm=False)[0]
    if not isinstance(outcome, Value):
        raise FormatError(f"{path} does not open with {runner.name}: {why_not(outcome)}")
    sides = json.loads(np.asarray(outcome.outputs[0]).tobytes().decode())
    inputs, outputs = (
        tuple(Port(name, dtype, None if shape is None else tuple(shape)) for name, dtype, shape in side)
        for side in sides
    )
    for port in (*inputs, *outputs):
        if not port.name.isprintable():
            raise FormatError(f"{path}: the name {port.name[:80]!r} of an input or output cannot be printed")
    return Signature(inputs, outputs)


def why_not(outcome: Outcome) -> str:
    """What came instead of a value, in one line."""
    match outcome:
        case Rejected(kind, message):
            said = plain(message)
            return f"{kind}: {said[:300]}" if said else kind
        case Crash(how, detail):
            return how + (f": {plain(detail)}" if detail else "")
        case Timeout(seconds):
            return f"no answer within {seconds:g} s"
        case _:
            return f"nothing but {outcome}"


def plain(message: str) -> str:
    """In one line, without what a terminal would obey: a message may quote the file."""
    words = re.sub(r"\x1b\[\d*m", "", message).split()
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in " ".join(words))
