"""A given model in all formats that conversions reach: each file with how it was made, each refusal with its
message."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from harness.conversions import EDGES, Edge
from harness.formats import FORMATS, runners_of
from harness.formats.opening import missing, unavailable, why_not
from harness.globs import matching
from harness.models.variants import ModelFile, Refusal, Variant
from harness.pool import Job, Pool
from harness.worker import versions_of
from oracles.outcome import Value

DEPTH = 2
"""Most edges of a path. The second and later ones lead to formats only that no shorter path reaches."""

_CONVERT = """
def load(parameters):
    def run():
        convert(SOURCE, TARGET)
        return [np.zeros(1)]

    return run
"""


def program(edge: Edge, source: Path, target: Path, trust: bool) -> str:
    """The text that converts one file."""
    settings = f"SOURCE = {str(source.resolve())!r}\nTARGET = {str(target.resolve())!r}\nTRUST = {trust!r}\n"
    return f"import numpy as np\n\n{settings}INPUTS = []\nPARAMETERS = []\n{edge.convert}\n{_CONVERT}"


def convert_all(
    pool: Pool,
    given: ModelFile,
    folder: Path,
    depth: int = DEPTH,
    edges: str = "*",
    trust: bool = False,
    progress: Callable[[str], None] = lambda name: None,
) -> tuple[list[ModelFile], list[Refusal]]:
    """All files that are made of the given one by conversions whose names match, the given one first; and what makes
    none, with the reason. Raises ValueError for a glob that matches no conversion."""
    chosen = [EDGES[name] for name in matching(edges, EDGES, "conversion")]
    files, refusals = [given], []
    reached = {given.format}
    ends = [given]
    for length in range(1, depth + 1):
        made = []
        for end in ends:
            for edge in chosen:
                if edge.source != end.format or (length > 1 and edge.target in reached):
                    continue
                progress(f"{end.conversion} > {edge.name}" if end.edges else edge.name)
                found = _converted(pool, end, edge, folder, trust)
                (made if isinstance(found, ModelFile) else refusals).append(found)
        files += made
        reached |= {one.format for one in made}
        ends = made
    return files, refusals


def _converted(pool: Pool, source: ModelFile, edge: Edge, folder: Path, trust: bool) -> ModelFile | Refusal:
    what = " > ".join((*source.edges, edge.name))
    why = missing(tuple(edge.packages.items()))
    if edge.environment:
        why = f"it runs in the environment {edge.environment}"
    if why:
        return Refusal(what, why)
    target = folder / f"{'--'.join((*source.edges, edge.name))}{FORMATS[edge.target].suffix}"
    worker = f"convert-{edge.tool.split('|')[0]}"
    job = Job(worker, edge.modules, program(edge, source.path, target, trust), {})
    (outcome,) = pool.run([job], confirm=False)
    pool.fresh(worker)  # converters set options of the whole process
    if not isinstance(outcome, Value):
        return Refusal(what, why_not(outcome))
    if not target.exists():
        return Refusal(what, "it wrote no file")
    versions = {**dict(source.versions), **versions_of([edge.tool])}
    told = tuple((name.split("|")[0], version) for name, version in versions.items())
    return ModelFile(target, edge.target, (*source.edges, edge.name), told)


def variants_of(files: Sequence[ModelFile], globs: str) -> tuple[list[Variant], list[Refusal]]:
    """All runners of all files whose names match, and those that are not available. Raises ValueError for a glob that
    matches no runner."""
    names = set(matching(globs, [runner.name for f in FORMATS for runner in runners_of(f)], "runner"))
    variants, refusals = [], {}
    for file in files:
        for runner in runners_of(file.format):
            if runner.name not in names:
                continue
            why = unavailable(runner)
            if why:
                refusals[runner.name] = Refusal(runner.name, why)
            else:
                variants.append(Variant(file, runner))
    return variants, list(refusals.values())
