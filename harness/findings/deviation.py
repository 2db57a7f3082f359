"""What the folder of a training run that deviates keeps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Deviation:
    """One inconsistency of a strategy, as its folder's `finding.json` keeps it. world: ranks of the smallest run; twin:
    the status of the same run in float64, which tells a wrong algorithm from rounding (None: it is one)."""

    fingerprint: str
    symptom: str
    strategy: str
    world: int
    part: str
    message: str
    twin: str | None
    layers: tuple[str, ...]
    versions: Mapping[str, str]
    path: str = ""
