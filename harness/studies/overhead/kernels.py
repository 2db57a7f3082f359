"""Which kernels a training step runs, by the framework's own profiler: PyTorch's kineto, and the traces that TensorFlow
and JAX write (XSpace, of OpenXLA's profiler)."""

from __future__ import annotations

import json
from dataclasses import replace

from harness.execute.templates import render
from harness.studies.loops.loop import Loop
from harness.studies.loops.train import Trained

FOUND = "kernels"
"""The array in which a profiled loop leaves them: JSON text as bytes, name to nanoseconds of all its steps."""


def profiled(loop: Loop) -> Loop:
    """The loop under its framework's profiler; it leaves FOUND behind."""
    return replace(loop, stepping=render("studies/overhead/kernels.py.j2", framework=loop.framework), more=(FOUND,))


def read(trained: Trained) -> dict[str, int]:
    """Nanoseconds by kernel, of all steps of a profiled loop."""
    found: dict[str, int] = json.loads(trained.found[FOUND].astype("uint8").tobytes())
    return found
