"""Does each operator alone compute what its record says, at the edges of its dtypes, shapes, attributes and values?"""

from __future__ import annotations

import pytest
from hypothesis import settings

from generators.ops import OPS
from generators.sweep import sweep
from harness.backends import Target
from harness.campaign import operators_for
from harness.trial import Trial


@pytest.mark.parametrize("operator", OPS)
def test_operator(swept: Target, operator: str, trial: Trial) -> None:
    """The whole sweep in the nightly profile, otherwise so many of it as the profile has examples, evenly spaced."""
    if not operators_for(swept, (operator,)):
        pytest.skip(f"{operator}: {getattr(OPS[operator], swept.dialect.name).why}")
    cases = list(sweep(operator))
    assert cases
    step = max(1, len(cases) // settings().max_examples)
    trial.over(cases[::step], trial.alone(swept))
