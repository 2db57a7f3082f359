"""A given model from its path to its results: found or made, converted, run, judged."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from harness.formats import runners_of
from harness.formats.opening import FormatError, recognise, signature, unavailable
from harness.models import factories, inputs, reference
from harness.models.converting import convert_all, variants_of
from harness.models.inputs import PREPROCESSING, Sets
from harness.models.localising import Layers, can, layers_of
from harness.models.measuring import Run, measure
from harness.models.results import Results, assemble
from harness.models.variants import ModelFile, Variant
from harness.pool import Limits, Pool
from harness.worker import versions_of

LIMITS = Limits(seconds=300.0, memory=24 << 30, recycle=6 << 30)
"""Whole networks are slower and larger than drawn graphs."""


@dataclass(frozen=True)
class Options:
    """path: a file or folder, `module:function`, or digits; out: where files that are made go; inputs: an .npz file or
    a folder of images; depth: most conversions one after the other, 0 for none; edges: globs of their names; shapes,
    span: what inputs are drawn by; the others as the command says."""

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


def examine(options: Options, progress: Callable[[str], None] = lambda told: None) -> tuple[Results, list[Run], Sets]:
    """All of it. Raises FormatError, ValueError and HarnessError, each with one line."""
    with Pool(options.limits) as pool:
        progress(f"opening {options.path}")
        given, own = _given(pool, options)
        runner = next((r for r in runners_of(given.format) if not unavailable(r)), None)
        if runner is None:
            raise FormatError(f"{given.path}: {unavailable(runners_of(given.format)[0])}")
        told = signature(pool, runner, given.path, options.trust)
        sets = _sets(options, own, told.inputs)
        files, refusals = [given], []
        if options.depth:
            folder = options.out / "converted"
            files, refusals = convert_all(pool, given, folder, options.depth, options.edges, options.trust, progress)
        variants, absent = variants_of(files, options.targets)
        if not variants:
            raise FormatError(f"no runner that matches {options.targets!r} takes {given.format} files here")
        progress("float64 reference")
        derived = reference.derive(
            pool, (given.path, given.format), _onnx(files), told.outputs, sets, options.seed, options.trust
        )
        runs = measure(
            pool, variants, told, sets, options.rounds, options.seed, options.warm_up, options.trust, progress
        )
        results = assemble(
            given, told.inputs, told.outputs, derived, runs, [*refusals, *absent], options.seed, options.rounds,
            versions(variants),
        )  # fmt: skip
        results = replace(results, layers=_layers(pool, options, results, _onnx(files), sets[0], progress))
    return results, runs, sets


def _layers(
    pool: Pool,
    options: Options,
    results: Results,
    right: tuple[Path, str] | None,
    arrays: Sequence[np.ndarray],
    progress: Callable[[str], None],
) -> tuple[Layers, ...]:
    """Errors by layer of the variants that deviate and that can be looked at; where `options.layers` says so and none
    does, of the first one."""
    rows = [row for row in results.rows if can(row.variant)]
    chosen = [row.variant for row in rows if row.status == "mismatch"]
    if options.layers and not chosen:
        chosen = [row.variant for row in rows if row.status == "agree"][:1]
    found = []
    if right:
        for variant in chosen:
            progress(f"layers of {variant.name}")
            found.append(layers_of(pool, right[0], variant, arrays))
    return tuple(found)


def _given(pool: Pool, options: Options) -> tuple[ModelFile, Sequence]:
    """The file that is examined, and the arrays that came with what made it."""
    path = Path(options.path)
    if not path.exists() and (options.path == factories.DIGITS or factories.NAME.fullmatch(options.path)):
        stem = options.out / "converted" / options.path.replace(":", "-")
        stem.parent.mkdir(parents=True, exist_ok=True)
        shapes = list((options.shapes or {}).values())
        made = factories.make(pool, options.path, stem, options.seed, shapes, options.weights)
        return ModelFile(made.path, recognise(made.path).name), made.inputs
    if options.weights:
        raise FormatError(f"--weights are for what a function makes; {path} has its own")
    found = recognise(path, options.trust)
    (options.out / "converted").mkdir(parents=True, exist_ok=True)
    return ModelFile(path, found.name), ()


def _sets(options: Options, own: Sequence, ports: Sequence) -> Sets:
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
    return inputs.read_images(where, how, ports)


def _onnx(files: Sequence[ModelFile]) -> tuple[Path, str] | None:
    """The ONNX file that the fewest conversions made, and how."""
    found = [file for file in files if file.format == "onnx"]
    best = min(found, key=lambda file: len(file.edges), default=None)
    return None if best is None else (best.path, best.told)


def versions(variants: Sequence[Variant]) -> dict[str, str]:
    """Of Python and all packages that runners and converters need."""
    found = {"python": platform.python_version(), **versions_of(["numpy"])}
    for variant in variants:
        found |= {k.split("|")[0]: v for k, v in versions_of(list(variant.runner.packages)).items()}
        found |= dict(variant.file.versions)
    return found
