"""A given model in all formats that conversions reach: each file with how it was made, each refusal with its
message."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from harness.conversions.edges import EDGES, Edge
from harness.conversions.formats import FORMATS, RUNNERS, runners_of
from harness.conversions.model_file import unavailable
from harness.conversions.route import availability
from harness.execute.globs import matching
from harness.execute.pool import Pool
from harness.models.convert_file import convert
from harness.models.variants import ModelFile, Refusal, Variant

DEPTH = 2
"""Most edges of a path. The second and later ones lead to formats only that no shorter path reaches."""


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
    chosen = [
        edge
        for edge in map(EDGES.__getitem__, matching(edges, EDGES, "conversion"))
        if not (edge.environment and FORMATS[edge.target].executes)  # such a file needs the tool where it is opened
    ]
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
