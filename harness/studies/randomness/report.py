"""What the study shows: a table for the terminal, CSV, JSON and a page."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from harness.execute.templates import render
from harness.models.report.words import short
from harness.studies.drawing.dots import Chart, Line, chart
from harness.studies.randomness.measures import Compared, GroupRates, Measured
from harness.studies.randomness.protocol import CONTROL, SETTINGS
from harness.studies.runs.plan import Plan
from oracles.spread import Estimate

COLUMNS = (
    "framework", "setting", "models", "accuracy", "accuracy_sd", "accuracy_sd_low", "accuracy_sd_high", "loss_sd",
    "churn", "churn_low", "churn_high", "l2", "l2_low", "l2_high", "zero", "cpu_seconds",
)  # fmt: skip
LIKELY = 0.05
"""Probability below which a difference is called one."""


@dataclass(frozen=True)
class Results:
    """All that is shown. named: first differences of models that ought to be bit for bit the same, to the element, by
    framework; wanted: how many models there are to be of each setting; versions: of what ran."""

    plan: Plan
    wanted: int
    threads: int
    seed: int
    measured: Sequence[Measured]
    compared: Sequence[Compared]
    named: Mapping[str, Sequence[str]]
    versions: Mapping[str, str]

    @property
    def frameworks(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(one.framework for one in self.measured))

    def of(self, framework: str) -> list[Measured]:
        """Its settings."""
        return [one for one in self.measured if one.framework == framework]

    @property
    def broken(self) -> list[Measured]:
        """Controls that are not exactly zero."""
        return [one for one in self.measured if one.setting == CONTROL and not one.zero]


def told(found: Estimate, times: float = 1.0, digits: int = 3) -> str:
    """A figure with its interval."""
    if found.low == found.value == found.high:
        return short(times * found.value, digits)
    if found.low != found.low:
        return short(times * found.value, digits)
    ends = (short(times * end, digits) for end in (found.low, found.high))
    return f"{short(times * found.value, digits)} ({' to '.join(ends)})"


def rows(results: Results) -> list[list[str]]:
    """Of the table: setting, models, accuracy, its spread, churn, L2, and whether all is zero."""
    return [
        [
            one.framework, one.setting, str(len(one.accuracies)), f"{100 * one.accuracy.value:.2f} %",
            told(one.accuracy_sd, 100), told(one.churn, 100), told(one.distance, digits=4),
            "yes" if one.zero else f"no: {len(one.differences)} differ" if one.differences else "no",
        ]
        for one in results.measured
    ]  # fmt: skip


def csv_of(results: Results) -> str:
    """A line a setting."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for one in results.measured:
        sd, c, d = one.accuracy_sd, one.churn, one.distance
        writer.writerow(
            [
                one.framework, one.setting, len(one.accuracies), one.accuracy.value, sd.value, sd.low, sd.high,
                one.loss_sd.value, c.value, c.low, c.high, d.value, d.low, d.high, one.zero, round(one.cpu, 3),
            ]
        )  # fmt: skip
    return out.getvalue()


def as_json(results: Results) -> dict[str, object]:
    """All of it."""
    settings = []
    for one in results.measured:
        fields = asdict(one)
        fields["differences"] = [str(difference) for difference in one.differences]
        settings.append(fields | {"zero": one.zero})
    return {
        "plan": results.plan.about,
        "models": results.wanted,
        "threads": results.threads,
        "seed": results.seed,
        "versions": dict(results.versions),
        "settings": settings,
        "comparisons": [asdict(one) for one in results.compared],
        "control_differs": {name: list(lines) for name, lines in results.named.items()},
    }


def charts(found: Sequence[Measured]) -> list[Chart]:
    """Of one framework: accuracies of all models, and the three spreads with their intervals."""
    accuracies = [
        Line(one.setting, tuple(100 * value for value in one.accuracies), float("nan"), float("nan"),
             f"{100 * one.accuracy.value:.2f} %")
        for one in found
    ]  # fmt: skip

    def spread(title: str, key: str, times: float) -> Chart:
        lines = []
        for one in found:
            e: Estimate = getattr(one, key)
            kind = "bad" if one.setting == CONTROL and e.value else "plain"
            word = short(times * e.value)
            lines.append(Line(one.setting, (times * e.value,), times * e.low, times * e.high, word, kind))
        return chart(title, lines)

    return [
        chart("Test accuracy of each model, %", accuracies, zero=False),
        spread("Standard deviation of test accuracy, percentage points", "accuracy_sd", 100),
        spread("Churn: % of test samples on which two models disagree", "churn", 100),
        spread("L2 between normalised weights of two models", "distance", 1),
    ]


def group_chart(found: Sequence[Measured], rate: str, title: str) -> Chart:
    """Standard deviations of a rate by class and subgroup, of the noisiest setting that there is."""
    noisiest = found[0]
    lines = []
    for group in noisiest.groups:
        sd: Estimate = getattr(group, f"{rate}_sd")
        word = "-" if sd.value != sd.value else short(100 * sd.value)
        lines.append(Line(f"{group.name} ({group.samples})", (100 * sd.value,), 100 * sd.low, 100 * sd.high, word))
    return chart(f"{title}, {noisiest.setting}", lines)


def worst(groups: Sequence[GroupRates], rate: str, whole: float) -> str:
    """The group with the greatest spread of a rate, and how many times the spread of the accuracy that is."""
    known = [group for group in groups if getattr(group, f"{rate}_sd").value == getattr(group, f"{rate}_sd").value]
    if not known:
        return "-"
    group = max(known, key=lambda one: getattr(one, f"{rate}_sd").value)
    value = getattr(group, f"{rate}_sd").value
    if not value:
        return "0"
    return f"{group.name}: {short(100 * value)}" + (f", {short(value / whole)} times" if whole else "")


def headline(results: Results) -> list[str]:
    """What a person reads first, a sentence a framework."""
    found = []
    for framework in results.frameworks:
        by = {one.setting: one for one in results.of(framework)}
        parts = []
        if CONTROL in by:
            parts.append("Control is exactly zero" if by[CONTROL].zero else "Control is NOT zero")
        for name in ("algo", "impl", "algo+impl"):
            if name in by:
                own = by[name]
                weights = f" (weights {short(own.distance.value)} apart)" if not own.churn.value else ""
                parts.append(f"{name.upper()} churn {short(100 * own.churn.value)} %{weights}")
        found.append(f"{framework}: {', '.join(parts)}.")
    return found


def page(results: Results) -> str:
    """The report as one file of HTML, without scripts and without a network."""
    drawn = {name: charts(results.of(name)) for name in results.frameworks}
    groups = {
        name: [
            group_chart(results.of(name), "fnr", "Standard deviation of the false-negative rate, percentage points"),
            group_chart(results.of(name), "fpr", "Standard deviation of the false-positive rate, percentage points"),
        ]
        for name in results.frameworks
    }
    return render(
        "studies/randomness/page.html.j2",
        title="Where the noise of training comes from",
        results=results,
        settings=SETTINGS,
        headline=headline(results),
        charts=drawn,
        groups=groups,
        told=told,
        short=short,
        worst=worst,
        likely=LIKELY,
    )
