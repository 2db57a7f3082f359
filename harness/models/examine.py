"""A given model from its path to its results: found or made, converted, run, judged."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from harness.conversions.admit import admit, files_of, size_of
from harness.conversions.formats import runners_of
from harness.conversions.model_file import FormatError, Signature, recognise, signature, unavailable
from harness.execute.isolation.confinement import Confinement
from harness.execute.pool import Limits, Pool
from harness.execute.worker import versions_of
from harness.findings.known.entry import FOLDER
from harness.models import known, reference
from harness.models.cache import CachingPool
from harness.models.convert import convert_all, variants_of
from harness.models.given import factories, inputs
from harness.models.given.factories import NAME
from harness.models.given.inputs import PREPROCESSING, Sets
from harness.models.layer_errors import LayerErrors, can, layers_of
from harness.models.measure import Run, once, time
from harness.models.results import Results, Row, assemble, row_of
from harness.models.variants import ModelFile, Variant

LIMITS = Limits(seconds=300.0, memory=24 << 30, recycle=6 << 30)
"""Whole networks are slower and larger than drawn graphs."""
ROOM = 4 << 30
"""Bytes that a stranger's model may allocate, with `TIMES` the bytes of its files."""
TIMES = 8


@dataclass(frozen=True)
class Options:
    """path: a file or folder, `module:function`, or digits; out: where files that are made go; inputs: an .npz file or
    a folder of images; depth: most conversions one after the other, 0 for none; edges: globs of their names; shapes,
    span: what inputs are drawn by; labels: a file with names of classes; known: a folder of what is known; again:
    nothing that is kept of earlier runs counts; the others as the command says."""

    path: str
    out: Path
    inputs: Path | None = None
    preprocess: Path | None = None
    targets: str = "*"
    depth: int = 0
    edges: str = "*"
    rounds: int = 0
    warm_up: int = 1
    iterations: int = 1
    layers: bool = False
    shapes: Mapping[str, Sequence[int]] | None = None
    span: tuple[float, float] | None = None
    weights: Path | None = None
    seed: int = 0
    trust: bool = False
    limits: Limits = LIMITS
    labels: Path | None = None
    known: Path = FOLDER
    again: bool = False


@dataclass
class Examined:
    """results; runs: in the order of their rows; sets: what they were run on; hits, misses: so many programs had run
    before, and had not; stop: what ended the command early."""

    results: Results
    runs: list[Run]
    sets: Sets
    hits: int = 0
    misses: int = 0
    stop: KeyboardInterrupt | None = None


@dataclass
class _Course:
    """How far it has come."""

    runs: list[Run] = field(default_factory=list)
    rounds: int = 0
    stop: KeyboardInterrupt | None = None

    def told(self, options: Options, variants: Sequence[Variant]) -> str:
        """What an interruption left out."""
        if self.stop is None:
            return ""
        left = f"{len(self.runs)} of {len(variants)} variants and {self.rounds} of {options.rounds} rounds were run"
        return f"Interrupted: {left}; layers were not looked at."


def examine(
    options: Options,
    progress: Callable[[str], None] = lambda told: None,
    finished: Callable[[Run, Row], None] = lambda run, row: None,
) -> Examined:
    """All of it; what was done before for the same options is not done again. progress: told what is under way;
    finished: given each variant when it has run. An interruption ends it with what there is; one that comes before any
    variant has run is raised again. Raises FormatError, ValueError, OSError and HarnessError, each with one line."""
    issues = known.load(options.known)
    labels = inputs.labels_of(options.labels) if options.labels else ()
    progress(f"opening {options.path}")
    found = None if _made(options) else _found(options)
    allowed, limits = _confined(options, found)
    with CachingPool(limits, allowed, folder=options.out / "kept", refresh=options.again) as pool:
        given, own = (found, ()) if found else _make(pool, options)
        runner = next((r for r in runners_of(given.format) if not unavailable(r)), None)
        if runner is None:
            raise FormatError(f"{given.path}: {unavailable(runners_of(given.format)[0])}")
        told = signature(pool, runner, given.path, options.trust)
        sets = _sets(pool, options, own, told.inputs)
        truth = inputs.classes_of(options.inputs, labels) if options.inputs else None
        files, refusals = [given], []
        if options.depth:
            folder = options.out / "converted"
            files, refusals = convert_all(pool, given, folder, options.depth, options.edges, options.trust, progress)
        variants, absent = variants_of(files, options.targets)
        if not variants:
            raise FormatError(f"no runner that matches {options.targets!r} takes {given.format} files here")
        progress("float64 reference")
        source = given.path, given.format
        candidates = _onnx(files) or [None]
        found = (
            (one, reference.derive(pool, source, one, told.outputs, sets, options.seed, options.trust))
            for one in candidates
        )
        right, derived = next(found)
        if right and not derived.sound:  # another converter may make another function of it
            right, derived = next((pair for pair in found if pair[1].sound), (right, derived))
        course = _Course()
        try:
            for run in once(pool, variants, told, sets, options.trust, progress):
                course.runs.append(run)
                finished(run, row_of(run, derived.expected))
            extent = options.rounds, options.seed, options.warm_up, options.trust
            for number in time(pool, course.runs, told, sets, *extent, progress):
                course.rounds = number
        except KeyboardInterrupt as stop:
            if not course.runs:
                raise
            course.stop = stop
        results = assemble(
            given, told.inputs, told.outputs, derived, course.runs, [*refusals, *absent], options.seed, course.rounds,
            versions(variants), truth,
        )  # fmt: skip
        try:
            layers = () if course.stop else _layers(pool, options, results, right, sets, progress)
        except KeyboardInterrupt as stop:
            layers, course.stop = (), stop
        results = replace(results, layers=layers, labels=labels, unfinished=course.told(options, variants))
        return Examined(known.explained(results, issues), course.runs, sets, pool.hits, pool.misses, course.stop)


def _layers(
    pool: Pool,
    options: Options,
    results: Results,
    right: tuple[Path, str] | None,
    sets: Sets,
    progress: Callable[[str], None],
) -> tuple[LayerErrors, ...]:
    """Errors by layer of the variants that deviate and that can be looked at, on the inputs on which they deviate most;
    where `options.layers` says so and none does, of the first one."""
    rows = [row for row in results.rows if can(row.variant)]
    chosen = [row for row in rows if row.status == "mismatch"]
    if options.layers and not chosen:
        chosen = [row for row in rows if row.status == "agree"][:1]
    if right is None:
        return ()
    sound = reference.ANOTHER not in results.doubt
    found = []
    for row in chosen:
        variant = row.variant
        if not sound:
            found.append(LayerErrors(variant.name, why=f"there is nothing to compare them with: {results.doubt}"))
            continue
        progress(f"layers of {variant.name}")
        ports = Signature(results.inputs, results.outputs)
        found.append(layers_of(pool, right[0], variant, sets[row.place], ports))
    return tuple(found)


def _made(options: Options) -> bool:
    """Does a function make the model?"""
    return not Path(options.path).exists() and (options.path == factories.DIGITS or bool(NAME.fullmatch(options.path)))


def _make(pool: Pool, options: Options) -> tuple[ModelFile, Sequence]:
    """The file of a model that a function makes, and the arrays that came with it."""
    stem = _converted(options) / options.path.replace(":", "-")
    shapes = list((options.shapes or {}).values())
    made = factories.make(pool, options.path, stem, options.seed, shapes, options.weights)
    return ModelFile(made.path, recognise(made.path).name), made.inputs


def _found(options: Options) -> ModelFile:
    """The file that is given."""
    path = Path(options.path)
    if options.weights:
        raise FormatError(f"--weights are for what a function makes; {path} has its own")
    return ModelFile(path, admit(path, options.trust).name)


def _converted(options: Options) -> Path:
    """Where files that are made of the model go; it is there."""
    folder = options.out / "converted"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _confined(options: Options, given: ModelFile | None) -> tuple[Confinement | None, Limits]:
    """What workers may reach, and take: everything where the model is trusted."""
    folder = _converted(options)
    if options.trust:
        return None, options.limits
    files = files_of(given.path) if given else ()
    memory = min(options.limits.memory, ROOM + TIMES * sum(map(size_of, files))) if given else options.limits.memory
    images = (options.inputs,) if options.inputs else ()
    return Confinement((*files, *images), (folder,)), replace(options.limits, memory=memory)


def _sets(pool: Pool, options: Options, own: Sequence, ports: Sequence) -> Sets:
    """What it is run on."""
    where = options.inputs
    if where is None:
        shapes = {ports[0].name if name == "" else name: shape for name, shape in (options.shapes or {}).items()}
        if own:
            return inputs.arranged(own, ports)
        return inputs.drawn(ports, options.seed, options.iterations, shapes, options.span)
    if not where.exists():
        raise FormatError(f"{where} does not exist")
    if not where.is_dir():
        return inputs.read_arrays(where, ports)
    how = inputs.read_preprocessing(options.preprocess or where / PREPROCESSING)
    return inputs.read_images(pool, where, how, ports)


TRIED = 3
"""So many ONNX files are tried as the model that noise is measured on."""


def _onnx(files: Sequence[ModelFile]) -> list[tuple[Path, str]]:
    """The ONNX files that the fewest conversions made, and how."""
    found = sorted((file for file in files if file.format == "onnx"), key=lambda file: len(file.edges))
    return [(file.path, file.told) for file in found[:TRIED]]


def versions(variants: Sequence[Variant]) -> dict[str, str]:
    """Of Python and all packages that runners and converters need."""
    found = {"python": platform.python_version(), **versions_of(["numpy"])}
    for variant in variants:
        found |= {k.split("|")[0]: v for k, v in versions_of(list(variant.runner.packages)).items()}
        found |= dict(variant.file.versions)
    return found
