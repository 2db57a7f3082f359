"""Faults of ours that a hunt meets: a case or a step ends, and the hunt goes on without it, as a night has to."""

from __future__ import annotations

import traceback
from pathlib import Path

from harness.execute.files import locked

FILE = "faults.txt"
MOST = 20
"""So many in one job are no accident: the last of them ends the hunt."""


def keep(folder: Path, error: Exception) -> str:
    """Append the traceback to the file in `folder`; one line that says what it was, where in the source, and (by its
    notes) in which case or step. Raises OSError."""
    with locked(folder / ".faults.lock"), (folder / FILE).open("a", encoding="utf-8") as file:
        file.write("".join(traceback.format_exception(error)) + "\n")
    last = traceback.extract_tb(error.__traceback__)[-1]
    said = " ".join(str(error).split())[:160]
    where = "; ".join(getattr(error, "__notes__", []))[:160]
    return f"fault of ours: {type(error).__name__}: {said} ({Path(last.filename).name}:{last.lineno}) {where}".rstrip()
