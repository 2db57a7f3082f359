"""The seven outcomes, each by curves that are built to show it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from oracles import outcomes
from oracles.outcomes import Curves, band_of, classify

STEPS, BATCH, TESTED = 200, 64, 400


def run(seed: int, level: float = 0.9, test: float = 0.88, steps: int = STEPS) -> Curves:
    """Fault-free training that rises slowly, with the noise of batches."""
    rng = np.random.default_rng(seed)
    expected = level + 0.04 * np.linspace(0, 1, steps) + rng.normal(0, 0.005)
    accuracy = rng.binomial(BATCH, expected) / BATCH
    return Curves(
        1 - accuracy, accuracy, np.ones(steps, bool), rng.binomial(TESTED, test) / TESTED,
        rng.uniform(0.1, 0.2, steps), rng.uniform(1.0, 2.0, steps), BATCH, TESTED,
    )  # fmt: skip


BAND = band_of([run(seed) for seed in range(8)])


def lowered(curve: Curves, by: np.ndarray | float) -> Curves:
    return replace(curve, accuracy=np.clip(curve.accuracy - by, 0, 1))


T = np.arange(STEPS)


def broken(curve: Curves, step: int, state: bool) -> Curves:
    finite, loss = curve.finite.copy(), curve.loss.copy()
    finite[step:] = False
    if not state:
        finite[:] = True
        loss[step:] = np.inf
    return replace(curve, finite=finite, loss=loss)


@pytest.mark.parametrize(
    ("curve", "outcome"),
    [
        (run(50), outcomes.MASKED),
        (broken(run(50), 0, state=True), outcomes.IMMEDIATE),
        (broken(run(50), 0, state=False), outcomes.IMMEDIATE),
        (broken(run(50), 3, state=False), outcomes.SHORT_TERM),
        (broken(run(50), 199, state=True), outcomes.SHORT_TERM),
        (lowered(run(50), 0.5 * T / STEPS), outcomes.SLOW),
        (lowered(run(50), 0.6), outcomes.SHARP_SLOW),
        (lowered(run(50), 0.6 - 0.4 * T / STEPS), outcomes.SHARP_SLOW),  # on its way back, slowly
        (lowered(run(50), 0.6 * np.exp(-T / 20)), outcomes.SHARP_ONLY),
        (lowered(run(50), np.where((T > 60) & (T < 100), 0.4, 0)), outcomes.SHARP_ONLY),
        (replace(run(50), test=0.5), outcomes.LOW_TEST),
    ],
)
def test_each_outcome(curve: Curves, outcome: str) -> None:
    found = classify(curve, BAND)
    assert found.outcome == outcome
    assert (found.gaps is None) == (outcome in (outcomes.IMMEDIATE, outcomes.SHORT_TERM))


def test_all_seven_are_shown() -> None:
    mark = next(mark for mark in test_each_outcome.pytestmark if mark.name == "parametrize")  # type: ignore[attr-defined]
    assert {outcome for _, outcome in mark.args[1]} == set(outcomes.OUTCOMES)


def test_further_fault_free_runs_are_masked() -> None:
    found = [classify(run(seed), BAND).outcome for seed in range(100, 500)]
    assert found.count(outcomes.MASKED) >= 396  # four rules, each wrong once in a thousand


def test_thresholds_come_from_the_band() -> None:
    """A wider band excuses more: the same curve is degraded beside runs that are alike, and masked beside others."""
    wide = band_of([run(seed, level=0.5 + 0.05 * seed) for seed in range(9)])
    curve = lowered(run(60, level=0.7), 0.1)
    assert classify(curve, band_of([run(seed, level=0.7) for seed in range(9)])).outcome == outcomes.SHARP_SLOW
    assert classify(curve, wide).outcome == outcomes.MASKED


def test_what_a_fault_free_run_showed_is_ordinary() -> None:
    """One run of nine has a dip such as no normal distribution of the others would have."""
    runs = [replace(run(seed), accuracy=np.full(STEPS, 0.9 + seed / 1e4)) for seed in range(8)]
    dip = lowered(run(0), np.where((T > 60) & (T < 80), 0.5, 0))
    dipped = replace(dip, accuracy=np.where((T > 60) & (T < 80), 0.4, 0.9))
    assert classify(dipped, band_of(runs)).outcome == outcomes.SHARP_ONLY
    assert classify(dipped, band_of([*runs, dipped])).outcome == outcomes.MASKED


def test_one_sample_is_ordinary_where_all_runs_are_perfect() -> None:
    perfect = [replace(run(seed), accuracy=np.ones(STEPS), test=1.0) for seed in range(5)]
    band = band_of(perfect)
    assert band.ordinary.end == 1 / (BATCH * 20)
    assert band.ordinary.test == 1 / TESTED
    one = np.zeros(STEPS)
    one[-1] = 1 / BATCH
    assert classify(lowered(perfect[0], one), band).outcome == outcomes.MASKED
    assert classify(lowered(perfect[0], 10 * one), band).outcome != outcomes.MASKED
    assert classify(replace(perfect[0], test=1 - 3 / TESTED), band).outcome == outcomes.LOW_TEST


def test_necessary_conditions_are_told() -> None:
    history = run(50).history.copy()
    history[1] = 1e17
    found = classify(replace(run(50), history=history), BAND)
    assert found.history > 1e17
    assert found.variance < 2
    late = run(50).history.copy()
    late[5] = 1e17
    assert classify(replace(run(50), history=late), BAND).history < 2
    assert classify(replace(run(50), variance=np.full(STEPS, np.nan)), BAND).variance == np.inf


def test_prediction_bound_by_hand() -> None:
    # of 1 and 3: mean 2, s = sqrt(2), t of one degree of freedom at 0.75 is 1, sqrt(1 + 1/2)
    assert outcomes.further([1.0, 3.0], 0.75) == pytest.approx(2 + np.sqrt(2) * np.sqrt(1.5))


def test_bands_that_say_nothing() -> None:
    with pytest.raises(ValueError, match="2 fault-free runs"):
        band_of([run(0), run(1)])
    with pytest.raises(ValueError, match="different lengths"):
        band_of([run(0), run(1), run(2, steps=100)])
    with pytest.raises(ValueError, match="not finite"):
        band_of([run(0), run(1), broken(run(2), 4, state=True)])
    with pytest.raises(ValueError, match="5 parts, not 10"):
        classify(run(1, steps=5), BAND)
    with pytest.raises(ValueError, match="curves of"):
        replace(run(1), loss=np.zeros(3))
