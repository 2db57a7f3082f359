"""Does each operator alone compute what its record says, at the edges of its dtypes, shapes, attributes and values?"""

from __future__ import annotations

import pytest
from hypothesis import settings

from generators.graphs import WIDE
from generators.ops import DRAWN, OPS
from generators.sweep import sweep
from harness.backends import Target
from harness.search.campaign import operators_for
from harness.search.profiles import nightly
from harness.search.trial import Trial

NIGHT = nightly()


@pytest.mark.parametrize("operator", OPS if NIGHT else DRAWN)
def test_operator(swept: Target, operator: str, trial: Trial) -> None:
    """The whole sweep in the nightly profile; otherwise so many of it as the profile has examples, evenly spaced, of
    operators that are drawn and dtypes that are not rare."""
    if not operators_for(swept, (operator,)):
        pytest.skip(f"{operator}: {getattr(OPS[operator], swept.dialect.name).why}")
    cases = list(sweep(operator) if NIGHT else sweep(operator, settings().max_examples, WIDE.favoured))
    assert cases
    trial.over(cases, trial.alone(swept))
