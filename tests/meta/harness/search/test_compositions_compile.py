"""Spellings of several calls compile: what they compute of shapes alone is no array that a tracer would follow."""

from __future__ import annotations

import numpy as np
import pytest
from examples.one_node import applied

from generators.graphs import Case
from harness.backends import TARGETS
from harness.execute.pool import Pool
from harness.search.laboratory import Laboratory

_X = np.arange(9, dtype=np.float32).reshape(3, 3)


@pytest.mark.parametrize(
    "case",
    [applied("tensor_diag_part", _X), applied("tensor_diag", _X[0])],
    ids=["without a filling", "with a filling"],
)
def test_places_of_diagonals_are_no_tensor(case: Case, pool: Pool) -> None:
    verdicts = Laboratory(pool).judge(case, [TARGETS["torch-aot-eager"]], confirm=False).verdicts
    assert verdicts["torch-aot-eager"].status == "agree"
