"""Does each operator compute what its record says: alone, at the edges of its dtypes, shapes, attributes and values,
and on the results of every other? Neighbours are what optimisers rewrite."""

from __future__ import annotations

import random
from itertools import islice

import pytest
from hypothesis import settings

from generators.graphs import PLAIN, WIDE
from generators.ops import DRAWN, OPS
from generators.sweep import successors, sweep
from harness.backends import Target
from harness.search.campaign import operators_for
from harness.search.hypothesis_profiles import nightly
from harness.search.trial import Trial

NIGHT = nightly()
PAIRED = tuple(OPS) if NIGHT else DRAWN


@pytest.mark.slow(one_in=13, ci=5)
@pytest.mark.parametrize("operator", OPS if NIGHT else DRAWN)
def test_operator(swept: Target, operator: str, trial: Trial) -> None:
    """The whole sweep in the nightly profile; otherwise so many of it as the profile has examples, evenly spaced, of
    operators that are drawn and dtypes that are not rare."""
    if not operators_for(swept, (operator,)):
        pytest.skip(f"{operator}: {getattr(OPS[operator], swept.dialect.name).why}")
    cases = list(sweep(operator) if NIGHT else sweep(operator, settings().max_examples, WIDE.favoured))
    assert cases
    trial.run_listed(cases, trial.examine_on(swept))


@pytest.mark.slow(one_in=9, ci=5)
@pytest.mark.parametrize("first", PAIRED)
def test_pairs(swept: Target, first: str, trial: Trial) -> None:
    """In the nightly profile fast targets get every pair and the others one in `stride`; otherwise each operator is
    followed by one other for every eight examples, in the dtypes that are drawn most."""
    names = operators_for(swept, PAIRED)
    if first not in names:
        pytest.skip(f"{first}: {getattr(OPS[first], swept.dialect.name).why}")
    random.Random(first).shuffle(names)
    most = max(1, len(names) // swept.sample_every if NIGHT else settings().max_examples // 8)
    cases = [case for _, case in islice(successors(first, names, style=PLAIN if NIGHT else WIDE), most)]
    assert cases, f"no operator takes a result of {first}"
    trial.run_listed(cases, trial.examine_on(swept))
