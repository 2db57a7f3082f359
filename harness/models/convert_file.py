"""A model file of one format made a file of another, in a worker of the tool that does it."""

from __future__ import annotations

from pathlib import Path

from harness.conversions.edges import Edge
from harness.conversions.model_file import why_not
from harness.conversions.route import availability
from harness.execute.pool import Job, Pool
from oracles.judge.outcome import Value


def program(edge: Edge, source: Path, target: Path, trust: bool = False) -> str:
    """The text of a standalone program whose `load({})` converts one file to the other."""
    return f"""import numpy as np

SOURCE, TARGET = {str(source.resolve())!r}, {str(target.resolve())!r}
TRUST = {trust!r}  # may code that the file carries be executed?
INPUTS, PARAMETERS = [], []

{edge.convert}

def load(parameters):
    convert(SOURCE, TARGET)
    return lambda: []
"""


def convert(pool: Pool, edge: Edge, source: Path, target: Path, trust: bool = False) -> str | None:
    """Convert one file by one edge, in a worker of that edge; why it did not work, in one line, or None."""
    _, reason = availability(edge)
    if reason:
        return reason
    text = program(edge, source, target, trust)
    job = Job(edge.name, edge.modules, text, {}, edge.environment, reads=(source,), writes=(target,))
    (outcome,) = pool.run([job])
    pool.restart_worker(edge.name, edge.environment)  # each has frameworks in memory that no other needs
    if isinstance(outcome, Value):
        return None if target.exists() else "it wrote nothing"
    return why_not(outcome)
