"""What can come of running a program. A crash or a hang is an outcome like any other, never the end of a run."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True, eq=False)
class Value:
    """The program returned these arrays, after `cpu` seconds of processor time."""

    outputs: tuple[np.ndarray, ...]
    cpu: float = 0.0


@dataclass(frozen=True)
class Rejected:
    """The framework refused the program with an exception. kind: its class; message: its text; lines: of the program,
    through which it was raised."""

    kind: str
    message: str
    cpu: float = 0.0
    lines: tuple[str, ...] = field(default=(), compare=False, repr=False)


@dataclass(frozen=True)
class Crash:
    """The process died (how: e.g. "signal SIGSEGV", "exit 3", "out of memory"); detail: the end of its stderr."""

    how: str
    detail: str = ""
    cpu: float = 0.0


@dataclass(frozen=True)
class Timeout:
    """No answer within this many seconds of wall-clock time. missing: whose, where several processes were asked."""

    seconds: float
    cpu: float = 0.0
    missing: str = ""


@dataclass(frozen=True)
class Unsupported:
    """Somebody wrote down that this target cannot, so that it was never run, or refused in documented words.
    refusal: those, where it was run."""

    why: str
    cpu: float = 0.0
    refusal: Rejected | None = field(default=None, compare=False, repr=False)


Outcome = Value | Rejected | Crash | Timeout | Unsupported
