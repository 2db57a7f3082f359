"""What is kept of a model on disk: `<optimisation>/<device>/<library>/` with the results and times of each variant, and
errors beside them; the inputs; everything as JSON; all pairs as CSV."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np

from harness.conversions.admit import files_of
from harness.execute.isolation.confinement import Confinement
from harness.execute.pool import Pool
from harness.models.given.inputs import Sets, saved
from harness.models.measure import Run
from harness.models.report import reproducer
from harness.models.results import Results
from harness.models.rows import LAYER, Row
from harness.models.variants import Variant
from oracles.judge.outcome import Value
from oracles.models.agreement import Agreement, Failure

MEASURES = tuple(field.name for field in fields(Agreement))


def place_of(folder: Path, variant: Variant) -> Path:
    """Where files of a variant are, without their suffix."""
    title = re.sub(r"[^\w.-]+", "_", f"{variant.runner.name} {variant.file.conversion}").strip("_")
    return folder / variant.optimisation / variant.device / variant.library / title


def write(folder: Path, results: Results, runs: Sequence[Run], sets: Sets, trust: bool = False) -> list[str]:
    """Everything but the page; a line for each reproducer. Raises OSError."""
    told = []
    folder.mkdir(parents=True, exist_ok=True)
    single = sets[: len(runs[0].single)]
    if all(len({one[place].shape for one in single}) == 1 for place in range(len(single[0]))):
        np.savez(folder / "inputs.npz", allow_pickle=False, **saved(single, results.inputs))
    for run, row in zip(runs, results.rows, strict=True):
        place = write_variant(folder, run, row)
        if row.deviates and row.status != LAYER:  # of which the layer's own program shows it
            told.append(f"{run.variant.name}: {reproducer.write(folder, place, results, run, row, sets, trust)}")
    _write(folder / "results.json", to_json(results))
    (folder / "pairs.csv").write_text(csv_of(results), encoding="utf-8")
    return told if results.doubted else told + _culprits(folder, results, runs, sets, trust)


def write_variant(folder: Path, run: Run, row: Row) -> Path:
    """What a variant returned, how long it took and what is wrong with it; where that is. Raises OSError."""
    place = place_of(folder, run.variant)
    place.parent.mkdir(parents=True, exist_ok=True)
    arrays = {
        f"set{number}.output{index}": array
        for number, outcome in enumerate(run.outcomes)
        if isinstance(outcome, Value)
        for index, array in enumerate(outcome.outputs)
    }
    error = place.with_name(place.name + ".error.txt")
    error.unlink(missing_ok=True)
    if arrays:
        np.savez(place.with_name(place.name + ".npz"), allow_pickle=False, **arrays)
    _write(place.with_name(place.name + ".json"), {**row_json(row), "seconds_of_rounds": run.seconds})
    if row.deviates:
        error.write_text(f"{run.variant.name}: {row.status}\n{row.message}\n", encoding="utf-8")
    return place


def _culprits(folder: Path, results: Results, runs: Sequence[Run], sets: Sets, trust: bool) -> list[str]:
    """The layers to blame as models of their own."""
    cases = {layers.variant: layers for layers in results.layers if layers.case}
    chosen = [row.variant for row in results.rows if row.variant.name in cases]
    at = {row.variant.name: run.given(sets, row.place) for run, row in zip(runs, results.rows, strict=True)}
    if not chosen:
        return []
    allowed = None if trust else Confinement(files_of(results.model.path), (folder,))
    with Pool(confined=allowed) as pool:
        places = [place_of(folder, variant) / reproducer.CULPRIT for variant in chosen]
        found = [
            reproducer.write_culprit(pool, place, variant, cases[variant.name], at[variant.name], results)
            for place, variant in zip(places, chosen, strict=True)
        ]
    return [f"{variant.name}: {line}" for variant, line in zip(chosen, found, strict=True) if line]


def outputs_of(runs: Sequence[Run]) -> dict[str, np.ndarray]:
    """What each variant returned, by its name, the set of inputs and the output."""
    return {
        f"{run.variant.name}.set{number}.output{index}": array
        for run in runs
        for number, outcome in enumerate(run.outcomes)
        if isinstance(outcome, Value)
        for index, array in enumerate(outcome.outputs)
    }


def _write(path: Path, data: object) -> None:
    path.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


def row_json(row: Row) -> dict[str, Any]:
    """A variant and what came of it, with plain types; infinities as text."""
    variant = row.variant
    return {
        "name": variant.name,
        "runner": variant.runner.name,
        "format": variant.file.format,
        "conversion": list(variant.file.edges),
        "versions": dict(variant.file.versions),
        "device": variant.device,
        "library": variant.library,
        "optimisation": variant.optimisation,
        "status": row.status,
        "message": row.message,
        "ratio": _plain(row.ratio),
        "undetermined": row.undetermined,
        "seconds": row.seconds,
        "slowdown": asdict(row.slowdown) if row.slowdown else None,
        "spread": _plain(row.spread),
        "known": row.known,
        "accuracy": dict(zip(("top1", "top5"), row.accuracy, strict=True)) if row.accuracy else None,
    }


def to_json(results: Results) -> dict[str, Any]:
    """All of it."""
    return {
        "model": str(results.model.path),
        "format": results.model.format,
        "seed": results.seed,
        "inputs": [str(port) for port in results.inputs],
        "outputs": [str(port) for port in results.outputs],
        "sets": results.sets,
        "rounds": results.rounds,
        "headline": results.headline,
        "exit_status": results.exit_status,
        "judged": sum(row.judged for row in results.rows),
        "doubted": asdict(results.doubted) if results.doubted else None,
        "drawn": results.drawn,
        "decoding": results.decoding,
        "unfinished": results.unfinished,
        "reference": {"how": results.how, "doubt": results.doubt},
        "measured": results.measured,
        "decided": results.decided,
        "variants": [row_json(row) for row in results.rows],
        "refusals": [asdict(one) for one in results.refusals],
        "pairs": [{"first": a, "second": b, **_pair(pair)} for (a, b), pair in results.pairs.items()],
        "layers": [
            {
                "variant": one.variant,
                "why": one.why,
                "errors": [{k: _plain(v) for k, v in asdict(e).items()} for e in one.errors],
            }
            for one in results.layers
        ],
        "regressions": [
            {"kind": r.kind, "slower": r.slower.name, "faster": r.faster.name, **asdict(r.ratio)}
            for r in results.regressions
        ],
        "times": asdict(results.difference) if results.difference else None,
        "versions": dict(results.versions),
    }


def _pair(pair: Agreement | Failure) -> dict[str, Any]:
    if isinstance(pair, Failure):
        return {"failure": pair.why}
    return {key: _plain(value) for key, value in asdict(pair).items()}


def _plain(value: Any) -> Any:
    """JSON has no infinities."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def csv_of(results: Results) -> str:
    """Every pair of variants with all measures."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["first", "second", *MEASURES, "failure"])
    for (first, second), pair in results.pairs.items():
        told = _pair(pair)
        writer.writerow([first, second, *(told.get(name, "") for name in MEASURES), told.get("failure", "")])
    return out.getvalue()
