"""What a correct evaluation returns, and how far from it a result may be, as a small table."""

from __future__ import annotations

from dataclasses import dataclass

import ml_dtypes
import numpy as np

from harness.findings.written import Written

ROWS = 8
"""Elements that a page shows of an output."""


@dataclass(frozen=True)
class Values:
    """One output: its type, so many elements as there are, and the first of them that are determined: (index, value,
    allowed error, the same in ulps)."""

    name: str
    type: str
    size: int
    rows: tuple[tuple[str, str, str, str], ...]


def ulp(value: float, dtype: str) -> float | None:
    """The distance from a finite number to the next greater one in size, of a floating dtype; None of others."""
    if "float" not in dtype or not np.isfinite(value):
        return None
    info = ml_dtypes.finfo(dtype)
    largest = max(abs(value), float(info.smallest_normal))
    return float(2.0 ** (np.floor(np.log2(largest)) - info.nmant)) if largest < np.inf else None


def in_ulps(value: float, error: float, dtype: str) -> str:
    """An allowed error in ulps of the value, for people; "" where that has no meaning."""
    unit = ulp(value, dtype)
    return f"{error / unit:.3g}" if unit and np.isfinite(error) and error > 0 else ""


def values_of(written: Written) -> list[Values]:
    """The outputs that a reproducer has in it."""
    expected, allowed = written.named.get("EXPECTED", {}), written.named.get("ALLOWED", {})
    types = written.named.get("OUTPUTS")
    found = []
    for number, key in enumerate(expected if isinstance(expected, dict) else range(len(expected))):
        value, error = np.asarray(expected[key]), np.asarray(allowed[key])
        dtype = types[number][0] if isinstance(types, list) and number < len(types) else str(value.dtype)
        rows = tuple(
            (
                str(tuple(int(i) for i in index)),
                _number(value[index]),
                "anything" if np.isposinf(error[index]) else f"{float(error[index]):.3g}",
                "" if np.iscomplexobj(value) else in_ulps(float(value[index]), float(error[index]), dtype),
            )
            for index in (np.unravel_index(place, value.shape) for place in _chosen(error))
        )
        name = f"output {number}" if isinstance(key, int) else str(key)
        found.append(Values(name, f"{dtype}{list(value.shape)}", value.size, rows))
    return found


def _chosen(error: np.ndarray) -> list[int]:
    """Places, counted row by row, of the first elements that are determined; of the first of all where none is."""
    determined = np.flatnonzero(~np.isposinf(error))[:ROWS]
    return [int(place) for place in determined] or list(range(min(error.size, ROWS)))


def _number(value: object) -> str:
    return f"{value:.17g}" if isinstance(value, float | np.floating) else str(value)
