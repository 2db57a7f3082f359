"""Does each target compute what the graph says?"""

from __future__ import annotations

import pytest

from harness.backends import Target
from harness.search.trial import Trial


@pytest.mark.slow(one_in=5, ci=2)
def test_forward(target: Target, trial: Trial) -> None:
    """Each drawn case on one target, against the float64 reference and its error bound."""
    trial.run([target], trial.examine_on(target))
