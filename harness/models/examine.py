"""A given model from its path to its results: found or made, converted, run, judged."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path

import numpy as np

from harness.conversions.admit import admit, admit_weights, files_of, size_of
from harness.conversions.formats import runners_of
from harness.conversions.model_file import FormatError, Port, Signature, plain, recognise, signature, unavailable
from harness.execute.isolation.confinement import Confinement
from harness.execute.pool import HarnessError, Limits, Pool
from harness.execute.processes.worker import versions_of
from harness.findings.known.entry import FOLDER
from harness.models import known, reference
from harness.models.cache import CachingPool
from harness.models.convert import convert_all, variants_of
from harness.models.given import decoding, factories, inputs, media, takes
from harness.models.given.decoding import Course
from harness.models.given.factories import NAME
from harness.models.given.inputs import Sets
from harness.models.layer_errors import LayerErrors, can, layers_of
from harness.models.measure import Run, called, once, time
from harness.models.reference import SOURCES, Reference, emptied
from harness.models.results import Results, assemble, with_layers
from harness.models.rows import IN_DOUBT, Row, row_of
from harness.models.variants import ModelFile, Variant
from oracles.judge.outcome import Outcome, Rejected, Value

AGREEING = 60.0
"""Seconds that the layers of a variant may take that agrees: a look that nobody asked for."""
LIMITS = Limits(seconds=300.0, memory=24 << 30, recycle=6 << 30)
"""Whole networks are slower and larger than drawn graphs."""
ROOM = 4 << 30
"""Bytes that a stranger's model may allocate, with `TIMES` the bytes of its files."""
TIMES = 8


@dataclass(frozen=True)
class Options:
    """path: a file or folder, `module:function`, or digits; out: where files that are made go; inputs: an .npz file or
    a folder of images or recordings; depth: most conversions one after the other, 0 for none; edges: globs of their
    names; shapes, span: what inputs are drawn by; labels: a file with names of classes; known: a folder of what is
    known; again: nothing that is kept of earlier runs counts; steps: of decoding, where it has a cache; the others as
    the command says."""

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
    layers: bool = True
    shapes: Mapping[str, Sequence[int]] | None = None
    span: tuple[float, float] | None = None
    weights: Path | None = None
    seed: int = 0
    trust: bool = False
    limits: Limits = LIMITS
    labels: Path | None = None
    known: Path = FOLDER
    again: bool = False
    steps: int = 0


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
class _Done:
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
    with CachingPool(limits, allowed, tolerant=True, folder=options.out / "kept", refresh=options.again) as pool:
        given, own = (found, ()) if found else _make(pool, options)
        usual, told = _opened(pool, given, options)
        sets, drawn = _sets(pool, options, own, told, usual)
        sets, course, silent = _course(pool, options, sets, told, usual)
        truth = media.classes_of(options.inputs, labels) if options.inputs else None
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
        found = ((one, _derived(pool, source, one, told.outputs, sets, course, options)) for one in candidates)
        right, derived = next(found)
        if right and not derived.sound:  # another converter may make another function of it
            right, derived = next((pair for pair in found if pair[1].sound), (right, derived))
        done = _Done()
        try:
            for run in once(pool, variants, told, sets, options.trust, progress, course):
                done.runs.append(run)
                finished(run, row_of(run, derived.expected))
            extent = options.rounds, options.seed, options.warm_up, options.trust
            for number in time(pool, done.runs, told, sets, *extent, progress):
                done.rounds = number
        except KeyboardInterrupt as stop:
            if not done.runs:
                raise
            done.stop = stop
        results = assemble(
            given, told.inputs, told.outputs, derived, done.runs, [*refusals, *absent], options.seed, done.rounds,
            versions(variants), truth, drawn,
        )  # fmt: skip
        results = replace(results, decoding=results.decoding or silent)
        try:
            layers = () if done.stop else _layers(pool, options, results, right, sets, done.runs, progress)
            if results.doubted:
                results = replace(results, doubted=replace(results.doubted, where=_parting(layers)))
        except KeyboardInterrupt as stop:
            layers, done.stop = (), stop
        results = replace(with_layers(results, layers), labels=labels, unfinished=done.told(options, variants))
        nodes = known.nodes_of(pool, right.path) if right and results.deviating and not done.stop else []
        return Examined(known.explained(results, issues, nodes), done.runs, sets, pool.hits, pool.misses, done.stop)


def _layers(
    pool: Pool,
    options: Options,
    results: Results,
    right: ModelFile | None,
    sets: Sets,
    runs: Sequence[Run],
    progress: Callable[[str], None],
) -> tuple[LayerErrors, ...]:
    """Errors by layer of the variants that deviate and that can be looked at, on the inputs on which they deviate most;
    where the reference is in doubt of one that agrees with others, by names of values if it can be; unless
    `options.layers` is false one of each ONNX file that agrees, too, since its outputs may hide a layer that errs."""
    rows = [row for row in results.rows if can(row.variant)]
    chosen = [row for row in rows if row.status == "mismatch" and row.judged]
    if results.doubted:
        rows = [row for row in rows if row.status == IN_DOUBT]
        ours = [row for row in rows if row.variant.name in results.doubted.names] or rows
        chosen = sorted(ours, key=lambda row: right is None or row.variant.file.path != right.path)[:1]
    sound = reference.ANOTHER not in results.doubt
    if options.layers and sound:  # by files, since levels show much the same with all values as outputs
        agreeing = [row for row in rows if row.status == "agree" and row.variant.file.format == "onnx"]
        firsts = {row.variant.file.path: row for row in reversed(agreeing)}
        chosen += [row for path, row in firsts.items() if path not in {one.variant.file.path for one in chosen}]
    if right is None:
        return ()
    found = []
    for row in chosen:
        variant = row.variant
        if not sound:
            found.append(LayerErrors(variant.name, why=f"there is nothing to compare them with: {results.doubt}"))
            continue
        progress(f"layers of {variant.name}")
        ports = Signature(results.inputs, results.outputs)
        arrays = next(run for run in runs if run.variant == variant).given(sets, row.place)
        found.append(layers_of(pool, right.path, variant, arrays, ports, AGREEING if row.status == "agree" else inf))
    return tuple(found)


def _parting(layers: Sequence[LayerErrors]) -> str:
    """Where the reference, if it is in doubt, and those who agree with each other part."""
    where = next((one.where for one in layers if one.where), "")
    if where:
        return f"they part at {where}"
    why = next((one.why for one in layers), "") or "no node of the ONNX model adds the difference by itself"
    return f"where they part is not known: {why}" if layers else "where they part is not known: nobody shows values"


def _opened(pool: Pool, given: ModelFile, options: Options) -> tuple[Variant, Signature]:
    """The first runner that opens the given file, and what it says of inputs and outputs. Raises FormatError, by the
    usual one, where none does."""
    runners = runners_of(given.format)
    here = [runner for runner in runners if not unavailable(runner)]
    if not here:
        raise FormatError(f"{given.path}: {unavailable(runners[0])}")
    first: FormatError | None = None
    for runner in here:
        try:
            return Variant(given, runner), signature(pool, runner, given.path, options.trust)
        except FormatError as error:
            first = first or error
    assert first
    raise first


def _derived(
    pool: Pool,
    source: tuple[Path, str],
    file: ModelFile | None,
    outputs: Sequence[Port],
    sets: Sets,
    course: Course | None,
    options: Options,
) -> Reference:
    """The reference by one ONNX file."""
    onnx = (file.path, file.told) if file else None
    try:
        found = reference.derive(pool, source, onnx, outputs, sets, options.seed, options.trust, course)
    except HarnessError as error:  # what the variants return can still be shown
        return Reference(None, f"no reference: a fault of Dissent: {plain(str(error).splitlines()[0])}")
    return found if found.own or file is None else replace(found, through=file.edges)


def _made(options: Options) -> bool:
    """Does a function make the model?"""
    return not Path(options.path).exists() and (options.path == factories.DIGITS or bool(NAME.fullmatch(options.path)))


def _make(pool: Pool, options: Options) -> tuple[ModelFile, Sequence]:
    """The file of a model that a function makes, and the arrays that came with it."""
    stem = _converted(options) / options.path.replace(":", "-")
    shapes = list((options.shapes or {}).values())
    if options.weights and not options.trust:
        admit_weights(options.weights)
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
    return Confinement((*files, *images, SOURCES), (folder,)), replace(options.limits, memory=memory)


def _sets(
    pool: Pool, options: Options, own: Sequence, told: Signature, usual: Variant
) -> tuple[Sets, takes.Drawn | None]:
    """What it is run on, and how that was drawn (None: it was given)."""
    where, ports = options.inputs, told.inputs
    if where is None:
        shapes = {ports[0].name if name == "" else name: shape for name, shape in (options.shapes or {}).items()}
        if own:
            return inputs.arranged(own, ports), None
        what = takes.takes_of(pool, usual.file)
        shapes, settle = decoding.drawing(told, shapes, takes.tops_of(ports, what))
        sized = any(None in port.shape[1:] for port in ports if port.shape)  # a batch alone leaves no window empty

        def call(arrays: Sequence[np.ndarray]) -> Outcome:
            arrays = settle(arrays)
            outcome = called(pool, usual, told, arrays, options.trust)
            if sized and isinstance(outcome, Value) and usual.file.format == "onnx":
                node = emptied(pool, usual.file.path, arrays)
                return Rejected("ValueError", f"{node} has no elements") if node else outcome
            return outcome

        sets, drawn = takes.draw(ports, what, options.seed, options.iterations, shapes, options.span, call)
        fitted = f"{drawn.told}; {decoding.FITTED}" if decoding.cache_of(told) else drawn.told
        return tuple(map(settle, sets)), replace(drawn, told=fitted.removeprefix("; "))
    if not where.exists():
        raise FormatError(f"{where} does not exist")
    if not where.is_dir():
        return inputs.read_arrays(where, ports), None
    return media.read_folder(pool, where, options.preprocess, ports), None


def _course(
    pool: Pool, options: Options, sets: Sets, told: Signature, usual: Variant
) -> tuple[Sets, Course | None, str]:
    """With the calls by which a model with a cache decodes; why they are missing, where it has one."""
    if not options.steps or decoding.cache_of(told) is None:
        return sets, None, ""
    tops = takes.tops_of(told.inputs, takes.takes_of(pool, usual.file))

    def call(arrays: Sequence[np.ndarray]) -> Outcome:
        return called(pool, usual, told, arrays, options.trust)

    return decoding.course_of(told, sets, options.steps, options.seed, tops, options.span, call)


TRIED = 3
"""So many ONNX files are tried as the model that noise is measured on."""


def _onnx(files: Sequence[ModelFile]) -> list[ModelFile]:
    """The ONNX files that the fewest conversions made."""
    return sorted((file for file in files if file.format == "onnx"), key=lambda file: len(file.edges))[:TRIED]


def versions(variants: Sequence[Variant]) -> dict[str, str]:
    """Of Python and all packages that runners and converters need."""
    found = {"python": platform.python_version(), **versions_of(["numpy"])}
    for variant in variants:
        found |= {k.split("|")[0]: v for k, v in versions_of(list(variant.runner.packages)).items()}
        found |= dict(variant.file.versions)
    return found
