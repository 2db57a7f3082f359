"""A given model in all formats that conversions reach: each file with how it was made, each refusal with its
message."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from harness.conversions.edges import EDGES, Edge
from harness.conversions.formats import FORMATS, RUNNERS, runners_of
from harness.conversions.model_file import plain, unavailable, why_not
from harness.conversions.route import availability
from harness.execute.globs import matching
from harness.execute.pool import HarnessError, Job, Pool
from harness.models.variants import ModelFile, Refusal, Variant
from oracles.judge.outcome import Value

DEPTH = 2
"""Most edges of a path. The second and later ones lead to formats only that no shorter path reaches."""


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
    try:
        (outcome,) = pool.run([job])
    except HarnessError as error:
        return f"a fault of Dissent: {plain(str(error).splitlines()[0])}"
    if isinstance(outcome, Value):
        return None if target.exists() else "it wrote nothing"
    return why_not(outcome)


def convert_all(
    pool: Pool,
    given: ModelFile,
    folder: Path,
    depth: int = DEPTH,
    edges: str = "*",
    trust: bool = False,
    progress: Callable[[str], None] = lambda name: None,
) -> tuple[list[ModelFile], list[Refusal]]:
    """All files that are made of the given one by conversions whose names match (`*`: but for those that say it in
    another form), the given one first; and what makes none, with the reason. Raises ValueError for a glob that matches
    no conversion."""
    chosen = [
        edge
        for edge in map(EDGES.__getitem__, matching(edges, EDGES, "conversion"))
        # a file that executes code needs the tool where it is opened
        if (edges != "*" or not (edge.form or edge.on_request))
        and not (edge.environment and FORMATS[edge.target].executes)
    ]
    files, refusals = [given], []
    reached = {given.format}
    ends = [given]
    for length in range(1, depth + 1):
        made = []
        for edge in chosen:  # one after the other, so that each has its worker still
            for end in ends:
                if edge.source != end.format or (length > 1 and edge.target in reached):
                    continue
                progress(f"{end.conversion} > {edge.name}" if end.edges else edge.name)
                found = _converted(pool, end, edge, folder, trust)
                (made if isinstance(found, ModelFile) else refusals).append(found)
        files += made
        reached |= {one.format for one in made}
        ends = made
    for edge in chosen:
        pool.restart_worker(edge.name, edge.environment)  # each has frameworks in memory that no other needs
    return files, refusals


def _converted(pool: Pool, source: ModelFile, edge: Edge, folder: Path, trust: bool) -> ModelFile | Refusal:
    what = " > ".join((*source.edges, edge.name))
    target = folder / f"{'--'.join((*source.edges, edge.name))}{FORMATS[edge.target].suffix}"
    why = convert(pool, edge, source.path, target, trust)
    if why:
        return Refusal(what, why)
    version = availability(edge)[0] or "of unknown version"
    versions = {**dict(source.versions), edge.tool.split("|")[0]: version}
    return ModelFile(target, edge.target, (*source.edges, edge.name), tuple(versions.items()))


def variants_of(files: Sequence[ModelFile], globs: str) -> tuple[list[Variant], list[Refusal]]:
    """All runners of all files whose names match, and those that are not available; the slow ones of the first file of
    a format only. Raises ValueError for a glob that matches no runner."""
    names = set(matching(globs, RUNNERS, "runner"))
    variants, refusals = [], {}
    for file in files:
        first = next(other for other in files if other.format == file.format) is file
        for runner in runners_of(file.format, slow=first):
            if runner.name not in names:
                continue
            why = unavailable(runner)
            if why:
                refusals[runner.name] = Refusal(runner.name, why)
            else:
                variants.append(Variant(file, runner))
    return variants, list(refusals.values())


def unbuilt(refusals: Sequence[Refusal]) -> tuple[list[Refusal], str]:
    """All but those whose environment has to be made first, and one line on these (empty: there are none)."""
    names = {
        one: match[1] for one in refusals if (match := re.search(r"\(python -m harness env create (\S+)\)$", one.why))
    }
    if not names:
        return list(refusals), ""
    those = (
        f"{len(names)} paths need environments that are" if len(names) > 1 else "1 path needs an environment that is"
    )
    made = ", ".join(dict.fromkeys(names.values()))
    line = f"{those} not built: {made} (python -m harness env create NAME)"
    return [one for one in refusals if one not in names], line
