"""Whether a model file that somebody gave may be opened: its format's gate reads it in a confined worker, before any
framework does. docs/security.md says what that promises."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from harness.conversions import external
from harness.conversions.formats import Format
from harness.conversions.model_file import FormatError, plain, recognise, why_not
from harness.execute.isolation.confinement import Confinement
from harness.execute.pool import Job, Limits, Pool
from oracles.judge.outcome import Crash, Timeout, Value

GATE = Path(__file__).absolute().parent / "gate"
SECONDS = 10
"""Of the processor, that a check may take."""
LIMITS = Limits(seconds=3.0 * SECONDS, memory=2 << 30)
"""Of the check itself: by the clock longer, since what else runs on a machine makes no file a bad one."""

_PROGRAM = """import importlib
import resource
import sys
import types

import numpy as np

FOLDER, PATH = {folder!r}, {path!r}
INPUTS, PARAMETERS = [], []


def load(parameters):
    from pathlib import Path

    resource.setrlimit(resource.RLIMIT_CPU, ({seconds}, {seconds} + 5))
    for package in ("harness", "harness.conversions", "harness.conversions.gate"):
        sys.modules[package] = types.ModuleType(package)  # the folders above are not to be read
    sys.modules[package].__path__ = [FOLDER]
    check = importlib.import_module(package + {name!r}).check

    def run():
        return [np.frombuffer((check(Path(PATH)) or "").encode("utf-8", "backslashreplace"), np.uint8)]

    return run
"""
"""Modules of the gate import each other by their full names."""


def files_of(path: Path) -> tuple[Path, ...]:
    """The files and folders that a model consists of, as its format keeps them, with data that it declares."""
    if path.is_dir():
        return (path,)
    match path.suffix.lower():
        case ".onnx":
            return path, *external.declared(path)
        case ".xml":  # of OpenVINO
            return path, path.with_suffix(".bin")
        case ".so":  # of TVM
            return path, path.with_suffix(".json")
    return (path,)


def size_of(path: Path) -> int:
    """Bytes of a file, or of all files of a folder; 0 where nothing is there."""
    files = path.rglob("*") if path.is_dir() else (path,)
    return sum(file.stat().st_size for file in files if file.is_file())


def admit(path: Path, trust: bool = False) -> Format:
    """The format of a file that may be opened. Raises FormatError, with one line: it is no model, or it names what a
    model needs no right to, or what its gate cannot read; the latter two not where it is trusted."""
    found = recognise(path, trust)
    if trust:
        return found
    reason = _refusal(found.name, path)
    if reason:
        raise FormatError(f"{path} is refused unless it is trusted (--trust): {reason}")
    return found


def admit_weights(path: Path) -> None:
    """A file of weights alone, for a model that a function makes. Raises FormatError, with one line."""
    gates = {".h5": "reading.hdf5", ".hdf5": "reading.hdf5", ".keras": "keras"}  # of others torch takes plain types
    if not path.is_file():
        raise FormatError(f"{path} is no file")
    if path.suffix.lower() == ".json":
        raise FormatError(f"{path} is refused: it names other files of weights")
    gate = gates.get(path.suffix.lower())
    if gate and (reason := _refusal(gate, path)):
        raise FormatError(f"{path} is refused: {reason}")


def _refusal(gate: str, path: Path) -> str | None:
    """Why a gate does not let a file pass, or None."""
    with pool_for(path) as pool:
        return refusal(gate, path, pool)


def pool_for(path: Path) -> Pool:
    """Whose worker may read the gates and a model, and write nothing."""
    return Pool(LIMITS, Confinement((GATE, path.parent, path.resolve())))  # a link leads out of the folder


def refusal(gate: str, path: Path, pool: Pool) -> str | None:
    """Why a gate, a module of that folder, does not let a file pass, or None. What its parsers take no end of, or die
    of, is refused, too: those of HDF5 and of MLIR are native."""
    text = _PROGRAM.format(folder=str(GATE), path=str(path.absolute()), name=f".{gate}", seconds=SECONDS)
    outcome = pool.run([Job("gate", (), text, {})], confirm=False)[0]
    if isinstance(outcome, Value):
        return plain(np.asarray(outcome.outputs[0]).tobytes().decode()) or None
    if isinstance(outcome, Timeout):
        return f"to look through it takes more than {LIMITS.seconds:g} s"
    if isinstance(outcome, Crash) and "SIGXCPU" in outcome.how:
        return f"to look through it takes more than {SECONDS} s of the processor"
    return f"it cannot be looked through: {why_not(outcome)}"
