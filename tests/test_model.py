"""A model of your own (`--model PATH`): does each runner return what a correct evaluation may return?"""

from __future__ import annotations

import pytest

from harness.models.results import Results


@pytest.mark.slow
def test_the_reference_is_beyond_doubt(examined: Results) -> None:
    assert not examined.how.startswith("no reference"), examined.how
    assert not examined.doubt
    assert not examined.doubted, examined.headline
    assert not examined.refused, examined.refused


def test_runner(examined: Results, runner: str) -> None:
    """On the given file, and on all that conversions made of it for this runner."""
    rows = [row for row in examined.rows if row.variant.runner.name == runner]
    if not rows:
        why = next((one.why for one in examined.refusals if one.what == runner), "")
        pytest.skip(
            f"{runner}: " + (why or f"it was not asked, or has no file to run that was made of {examined.model.format}")
        )
    if not any(row.judged or row.deviates for row in rows):
        pytest.skip(f"nothing judged: {rows[0].status}: {rows[0].message or examined.headline}")
    assert not [f"{row.variant.name} {row.status}: {row.message}" for row in rows if row.deviates and not row.known]
