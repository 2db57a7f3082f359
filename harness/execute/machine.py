"""The machine that everything runs on, as far as results depend on it."""

from __future__ import annotations

from functools import cache
from pathlib import Path

CPUINFO = Path("/proc/cpuinfo")


@cache
def features() -> frozenset[str]:
    """What the processor can do, in the kernel's words (avx2, avx512f, asimd); empty where the kernel does not tell."""
    if not CPUINFO.exists():
        return frozenset()
    for line in CPUINFO.read_text(encoding="utf-8").splitlines():
        name, _, words = line.partition(":")
        if name.strip() in ("flags", "Features"):
            return frozenset(words.split())
    return frozenset()


def has(feature: str) -> bool:
    """Does the processor have a feature, or with a ! before its name: lack it?"""
    return (feature.removeprefix("!") in features()) != feature.startswith("!")
