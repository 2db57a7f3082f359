"""The page on what came of the tests of onnx: one file of HTML that needs no network."""

from __future__ import annotations

from collections.abc import Sequence

from harness.execute.templates import render
from harness.studies.conformance.examine import STATUSES, Judged
from harness.studies.conformance.results import by_operator, counts


def html_of(results: Sequence[Judged], versions: str) -> str:
    """The whole page. versions: of the tools, in one line."""
    told = [
        (title, [one for one in results if chosen(one)])
        for title, chosen in (
            ("Wrong, crashed or hung", lambda one: one.status in ("wrong", "crash", "hang")),
            ("In doubt, or not judged", lambda one: one.status == "not judged"),
        )
    ]
    return render(
        "studies/conformance/page.html.j2", statuses=STATUSES, counts=counts(results), operators=by_operator(results),
        told=told, versions=versions, tests=len({one.test for one in results}),
    )  # fmt: skip
