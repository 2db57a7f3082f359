"""Does each target differentiate what it computes?"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import settings

from generators.graphs import Case
from generators.ops import OPS
from generators.ops.spec import Unsupported
from generators.sweep import sweep
from harness.backends import Target
from harness.questions.derivatives.gradient import GRADIENT
from harness.search.campaign import operators_for
from harness.search.hypothesis_profiles import nightly
from harness.search.trial import Trial
from oracles.derivatives.gradient import differentiable_leaves


def _skip_without(target: Target) -> None:
    if isinstance(target.gradient, Unsupported):
        pytest.skip(f"{target.name}: {target.gradient.why}")


@pytest.mark.slow(one_in=9, ci=2)
def test_gradients(target: Target, trial: Trial) -> None:
    """The gradients of each drawn case on one target, against those of the references."""
    _skip_without(target)
    trial = trial.with_question(GRADIENT)
    trial.run([target], trial.examine_on(target))


NIGHT = nightly()
SWEPT = tuple(filter(GRADIENT.concerns, OPS)) if NIGHT else GRADIENT.drawn
"""Gradients of operators that are not drawn are swept in the nightly profile only."""


def _sweep(operator: str) -> Iterator[Case]:
    return sweep(operator) if NIGHT else sweep(operator, 2 * settings().max_examples, GRADIENT.style.favoured)


@pytest.mark.slow(one_in=7, ci=3)
@pytest.mark.parametrize("operator", SWEPT)
def test_operator(swept: Target, operator: str, trial: Trial) -> None:
    """The sweep of one operator: all of it in the nightly profile, otherwise a fifth as many cases as the profile has
    examples."""
    _skip_without(swept)
    if not operators_for(swept, (operator,)):
        pytest.skip(f"{operator}: {getattr(OPS[operator], swept.dialect.name).why}")
    cases = [case for case in _sweep(operator) if differentiable_leaves(case.graph)]
    if not cases:
        pytest.skip(f"{operator}: no case of its sweep has a derivative")
    step = 1 if NIGHT else max(1, 5 * len(cases) // settings().max_examples)
    trial = trial.with_question(GRADIENT)
    trial.run_listed(cases[::step], trial.examine_on(swept))
