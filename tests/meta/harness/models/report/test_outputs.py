"""Errors of single elements as shares of what is allowed."""

from __future__ import annotations

import numpy as np

from generators.bounds.bounded import Bounded
from harness.models.report.outputs import share_of


def test_shares_of_what_is_allowed() -> None:
    value = np.array([1.0, 2.0, 3.0, np.nan, np.inf, 4.0])
    bound = Bounded(value, np.array([0.1, 0.0, np.inf, 0.0, 0.0, 0.0]), "float32")
    got = np.array([1.2, 2.0, 9.0, np.nan, np.inf, 4.5])
    np.testing.assert_allclose(share_of(bound, got), [2.0, 0.0, np.nan, 0.0, 0.0, np.inf])
    odd = np.array([np.nan, np.inf, 9.0, 0.0, -np.inf, 4.0])
    np.testing.assert_array_equal(share_of(bound, odd), [np.inf, np.inf, np.nan, np.inf, np.inf, 0.0])


def test_what_is_demanded_exactly() -> None:
    whole = Bounded(np.array([3, 4]), np.zeros(2), "int64")
    np.testing.assert_array_equal(share_of(whole, np.array([3, 5])), [0.0, np.inf])
    turning = Bounded(np.array([1 + 1j]), np.array([0.5]), "complex64")
    np.testing.assert_allclose(share_of(turning, np.array([1 + 2j], np.complex64)), [2.0])
