"""The machine that everything runs on, as far as results depend on it."""

from __future__ import annotations

import platform
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


@cache
def processor() -> str:
    """Its kind, and the widest vectors that kernels are chosen by: x86_64 avx2."""
    widest = next((f for f in ("avx512f", "avx2", "avx", "sve", "asimd") if f in features()), "")
    return f"{platform.machine()} {widest}".strip()


def has(feature: str) -> bool:
    """Does the processor have a feature, or with a ! before its name: lack it?"""
    return (feature.removeprefix("!") in features()) != feature.startswith("!")
