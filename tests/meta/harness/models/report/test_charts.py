"""Places on logarithmic scales, bins of histograms, maps of errors."""

from __future__ import annotations

import math

import numpy as np
import pytest

from harness.models.layer_errors import Layer
from harness.models.report import charts
from harness.models.report.charts import (
    EDGE,
    HIGHEST,
    LOWEST,
    Scale,
    error_map,
    histogram,
    layer_points,
    scale_of,
    shade,
)


def test_a_scale_goes_in_powers_of_ten() -> None:
    scale = scale_of([0.02, 30.0])
    assert scale == Scale(-2, 2)
    places = [scale.place(10.0**power) for power in range(-2, 3)]
    assert np.diff(places) == pytest.approx([24.0] * 4)
    assert (places[0], places[-1]) == (EDGE, 100 - EDGE)
    assert scale.place(1e-9) == scale.place(0.0) == EDGE
    assert scale.place(math.inf) == 100 - EDGE
    assert scale_of([1e-300, 1e300]) == Scale(LOWEST, HIGHEST)
    assert scale_of([]) == Scale(0, 1)
    assert scale_of([1.0]).high > scale_of([1.0]).low
    assert (scale.place(1.0), "1") in scale.ticks


def test_every_element_is_in_one_bin() -> None:
    worst = np.array([0.0, 0.02, 0.02, 5.0, np.inf, np.nan])
    found = histogram(worst, np.array([0.3] * 4))
    assert found.exact == (1 / 5, 0.0)
    assert found.beyond == (1 / 5, 0.0)
    assert found.top == 1.0  # all of the others in one bin
    wrong = [bar for bar in found.bars if bar[0] >= found.limit]
    assert [bar[2] for bar in wrong] == [20.0]
    assert sum(bar[2] for bar in found.bars) == pytest.approx(60.0)
    assert [bar[3] for bar in found.bars if bar[3]] == [100.0]


def test_one_wrong_element_of_many_can_be_seen() -> None:
    found = histogram(np.r_[np.full(100_000, 0.1), 7.0], np.empty(0))
    (height,) = [bar[2] for bar in found.bars if bar[0] >= found.limit]
    assert height == charts.SEEN


def test_a_map_shows_the_worst_of_each_square() -> None:
    share = np.full((1, 100, 200), 0.01)
    share[0, 50, 70] = 400.0
    found = error_map(share)
    assert found is not None
    assert found.block == (5, 4)
    assert (found.width, found.height) == (50, 20)
    assert found.paths[shade(400.0)] == "M17 10h1v1h-1z"
    assert set(found.paths) == {shade(0.01), shade(400.0)}
    share[0, 50, 70] = math.nan  # nothing is known of one element, something of its neighbours
    assert set(error_map(share).paths) == {shade(0.01)}  # type: ignore[union-attr]


def test_maps_of_any_shape() -> None:
    assert error_map(np.zeros(1)) is None
    flat = error_map(np.zeros(1000))
    assert flat is not None
    assert (flat.width, flat.height) == (32, 16)
    column = error_map(np.zeros((30, 1)))
    assert column is not None
    assert (column.width, column.height) == (30, 1)
    assert error_map(np.full((2, 2), np.inf)).paths == {shade(math.inf): "M0 0h2v1h-2zM0 1h2v1h-2z"}  # type: ignore[union-attr]


def test_shades_change_at_one() -> None:
    assert shade(1.0) < shade(1.0001) == 5
    assert shade(0.0) == 0
    assert shade(math.nan) == -1


def test_of_many_layers_the_wrong_one_stays() -> None:
    layers = [Layer(i, f"n{i}", "Relu", f"v{i}", 0.0, 9.0 if i == 777 else 0.1, 0.0) for i in range(1000)]
    found = layer_points(layers)
    assert found is not None
    assert found.thinned
    assert len(found.points) == charts.POINTS
    (wrong,) = [point for point in found.points if point[3]]
    assert wrong[2].startswith("n777 (Relu)")
    assert wrong[1] < found.limit  # above the line
    assert layer_points([Layer(0, "a", "Relu", "v", math.nan, math.nan, math.nan)]) is None
