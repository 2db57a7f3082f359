"""What a worker may reach that opens files of strangers: the interpreter, the system's libraries, a few files that are
named, and its own folder. `confine.py` is the process that gives up the rest."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.execute.isolation import confine

_LAUNCHER = Path(confine.__file__).absolute()
LARGEST = 16 << 30
"""Bytes of the longest file that such a worker may write."""

_SYSTEM = (
    "/usr",
    "/lib",
    "/lib64",
    "/bin",
    "/sbin",
    "/opt",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/alternatives",
    "/etc/localtime",
    "/etc/ssl",
    "/etc/OpenCL",
    "/proc",
    "/sys",
)
"""Programs, libraries and what the kernel tells of the machine. Nothing of other processes is in it: Landlock refuses
to read their part of /proc."""
_OF_INTERPRETERS = ("bin", "lib", "lib64", "include", "share", "pyvenv.cfg")
_VARIABLES = ("PATH", "LANG", "LANGUAGE", "TZ", "LD_LIBRARY_PATH", "TMPDIR", "PYTHONHASHSEED")
_PREFIXES = (
    *("LC_", "OMP_", "MKL_", "OPENBLAS_", "TVM_", "TF_", "XLA_", "TORCH", "ONEDNN_", "CUDA_", "NVIDIA_"),
    *("DISSENT_", "PYTHONDONTWRITE"),
)
"""Of the variables that a worker keeps."""


@dataclass(frozen=True)
class Confinement:
    """reads, writes: files and folders that a worker may read, or read and write, beside what every worker needs; what
    a folder holds goes with it. What is not there when the worker starts is not granted."""

    reads: tuple[Path, ...] = ()
    writes: tuple[Path, ...] = ()


def missing() -> str | None:
    """Why workers cannot be confined here, or None."""
    return confine.missing()


def command(allowed: Confinement, folder: Path, interpreter: str, scripts: Path) -> list[str]:
    """What runs a script and its arguments, which follow, confined. folder: of the worker, where it may write; scripts:
    where the script is."""
    python = Path(interpreter)
    homes = {python.absolute().parents[1], python.resolve().parents[1]}
    own = [str(home / part) for home in sorted(homes) for part in _OF_INTERPRETERS]
    reads = [*_SYSTEM, *own, str(scripts), *(str(path.resolve()) for path in allowed.reads)]
    writes = [str(folder), *(str(path.resolve()) for path in allowed.writes)]
    told = json.dumps({"reads": reads, "writes": writes, "bytes": LARGEST})
    return [sys.executable, "-I", "-S", str(_LAUNCHER), told, interpreter]


def environment(variables: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Those of a worker's variables that it needs, since others may hold what nobody else is to know; its home is its
    own folder."""
    kept = {name: value for name, value in variables.items() if name in _VARIABLES or name.startswith(_PREFIXES)}
    return {**kept, "HOME": str(folder), "USER": "dissent", "LOGNAME": "dissent"}
