"""What the study of seeds shows: lines as Morin and Willetts print them, CSV, JSON and a page."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from harness.execute.templates import render
from harness.models.report.words import short
from harness.studies.drawing.dots import Chart, Line, chart
from harness.studies.runs.plan import Plan
from harness.studies.seeds.protocol import GROUPS, Group, Share
from oracles.spread import Estimate

COLUMNS = ("framework", "group", "run", "accuracy", "loss", "first_difference")


@dataclass(frozen=True)
class Results:
    """groups: of each framework; shares: by framework; named: first differences to the element, by framework and
    group; wanted: runs of a group; versions: of what ran."""

    plan: Plan
    wanted: int
    threads: int
    deterministic: bool
    seed: int
    groups: Sequence[Group]
    shares: Mapping[str, Sequence[Share]]
    named: Mapping[tuple[str, str], Sequence[str]]
    versions: Mapping[str, str]

    @property
    def frameworks(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(one.framework for one in self.groups))

    def of(self, framework: str) -> list[Group]:
        """Its groups."""
        return [one for one in self.groups if one.framework == framework]


def told(found: Estimate | None, times: float = 1.0) -> str:
    """A figure with its interval."""
    if found is None:
        return "-"
    ends = [short(times * end) for end in (found.low, found.high)]
    plain = found.low == found.value == found.high or found.low != found.low
    return short(times * found.value) + ("" if plain else f" ({ends[0]} to {ends[1]})")


def lines(results: Results) -> list[str]:
    """What the terminal shows, group by group."""
    found = []
    for group in results.groups:
        count = len(group.accuracies)
        found.append(f"{group.framework}, {GROUPS[group.name]} ({count} of {results.wanted} runs):")
        for one in group.checked:
            found.append(f"  {one.what} all the same: {one.same}" + (f"; {one.first}" if one.first else ""))
        found.append(f"  bit for bit run 0: {count - 1 - len(group.differences)} of {count - 1} other runs")
        found += [f"  {line}" for line in results.named.get((group.framework, group.name), ())]
        found.append(
            f"  standard deviations: accuracy {told(group.accuracy_sd)}, loss {told(group.loss_sd)}"
        )  # fmt: skip
    for framework, shares in results.shares.items():
        each = [f"{told(one.ratio, 100)} % of {one.measure}'s (p {short(one.test.p)})" for one in shares]
        if each:
            found.append(f"{framework}: runs of one seed show {' and '.join(each)} spread between seeds")
    return found


def csv_of(results: Results) -> str:
    """A line a run."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for group in results.groups:
        first = {one.run: str(one) for one in group.differences}
        for run, (accuracy, loss) in enumerate(zip(group.accuracies, group.losses, strict=True)):
            writer.writerow([group.framework, group.name, run, accuracy, loss, first.get(run, "")])
    return out.getvalue()


def as_json(results: Results) -> dict[str, object]:
    """All of it."""
    groups = []
    for one in results.groups:
        checked = [{"what": c.what, "same": c.same, "first": c.first and str(c.first)} for c in one.checked]
        named = list(results.named.get((one.framework, one.name), ()))
        fields = asdict(one) | {"checked": checked, "differences": [str(d) for d in one.differences]}
        groups.append(fields | {"named": named})
    return {
        "plan": results.plan.about,
        "runs": results.wanted,
        "threads": results.threads,
        "deterministic": results.deterministic,
        "seed": results.seed,
        "versions": dict(results.versions),
        "groups": groups,
        "shares": {name: [asdict(one) for one in found] for name, found in results.shares.items()},
    }


def charts(found: Sequence[Group]) -> list[Chart]:
    """Of one framework: all runs, and standard deviations with their intervals."""
    nan = float("nan")

    def runs(title: str, key: str, times: float) -> Chart:
        each = [(group, [times * value for value in getattr(group, key)]) for group in found]
        return chart(
            title, [Line(g.name, tuple(v), nan, nan, short(sum(v) / len(v), 4)) for g, v in each], zero=False
        )  # fmt: skip

    def spread(title: str, key: str, times: float) -> Chart:
        each: list[tuple[Group, Estimate]] = [(group, getattr(group, key)) for group in found]
        return chart(
            title,
            [Line(g.name, (times * e.value,), times * e.low, times * e.high, short(times * e.value)) for g, e in each],
        )

    return [
        runs("Test accuracy of each run, %", "accuracies", 100),
        runs("Test loss of each run", "losses", 1),
        spread("Standard deviation of test accuracy, percentage points", "accuracy_sd", 100),
        spread("Standard deviation of test loss", "loss_sd", 1),
    ]


def page(results: Results) -> str:
    """The report as one file of HTML, without scripts and without a network."""
    return render(
        "studies/seeds/page.html.j2",
        title="The same seed, and different seeds",
        results=results,
        groups=GROUPS,
        charts={name: charts(results.of(name)) for name in results.frameworks},
        told=told,
        short=short,
    )
