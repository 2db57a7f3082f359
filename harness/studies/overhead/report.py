"""What the study of overhead shows: CSV, JSON and a page."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import asdict

import numpy as np

from harness.execute.templates import render
from harness.models.report.words import short
from harness.studies.drawing.dots import Line, chart
from harness.studies.overhead.measure import Timed

COLUMNS = ("framework", "network", "steps", "batch", "default_seconds", "deterministic_seconds", "ratio", "low", "high")


def csv_of(timed: Sequence[Timed]) -> str:
    """A line a network; seconds are medians of a round."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for one in timed:
        medians = (float(np.median(one.default)), float(np.median(one.deterministic)))
        writer.writerow([one.framework, one.network, one.steps, one.batch, *medians, one.ratio, *one.ends])
    return out.getvalue()


KERNEL_COLUMNS = ("framework", "network", "kernel", "default_ms", "deterministic_ms")
SHOWN = 8
"""Kernels of a network on the page; the CSV has all."""


def kernels_csv(timed: Sequence[Timed]) -> str:
    """A line a kernel of each network; milliseconds of one step."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(KERNEL_COLUMNS)
    for one in timed:
        for name, *times in one.kernels:
            writer.writerow(
                [one.framework, one.network, name, *(nanoseconds / one.profiled / 1e6 for nanoseconds in times)]
            )
    return out.getvalue()


def as_json(timed: Sequence[Timed], versions: Mapping[str, str]) -> dict[str, object]:
    """All of it."""
    return {"versions": dict(versions), "networks": [asdict(one) | {"ratio": one.ratio} for one in timed]}


def milliseconds(one: Timed, seconds: Sequence[float]) -> float:
    """Of a step, the median of the rounds."""
    return float(1000 * np.median(seconds) / one.steps)


def together(one: Timed) -> tuple[float, float]:
    """Milliseconds of all kernels of a step, without the deterministic mode and with it."""
    default, deterministic = (sum(times) for times in zip(*(row[1:] for row in one.kernels), strict=True))
    return default / one.profiled / 1e6, deterministic / one.profiled / 1e6


def page(timed: Sequence[Timed], versions: Mapping[str, str], device: str) -> str:
    """The report as one file of HTML, without scripts and without a network."""
    frameworks = list(dict.fromkeys(one.framework for one in timed))
    own = {name: [one for one in timed if one.framework == name] for name in frameworks}
    charts = [
        chart(
            f"{name}: time with determinism over time without",
            [Line(one.network, (one.ratio,), *one.ends, f"{one.ratio:.3f}") for one in found],
            zero=False,
        )
        for name, found in own.items()
    ]
    worst = {name: max(found, key=lambda one: one.ratio) for name, found in own.items()}
    return render(
        "studies/overhead/page.html.j2",
        title="The price of determinism",
        headline=[f"{name}: at most {one.ratio:.2f} times ({one.network})." for name, one in worst.items()],
        timed=timed,
        shown=SHOWN,
        charts=charts,
        steps=timed[0].steps,
        rounds=len(timed[0].default),
        batch=timed[0].batch,
        versions=versions,
        device=device,
        short=short,
        milliseconds=milliseconds,
        together=together,
    )
