"""Workers that the tests of this folder share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harness.execute.pool import Limits, Pool


@pytest.fixture(scope="module")
def quick() -> Iterator[Pool]:
    with Pool(Limits(seconds=5)) as pool:
        yield pool
