"""The machine that everything runs on, as far as results depend on it."""

from __future__ import annotations

import errno
import os
import shutil
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


LITTLE = 64 << 20
"""Bytes of disk, or of memory, below which a failure may be the machine's."""
_WORDS = {
    name: os.strerror(number)
    for name, number in (
        ("disk", errno.ENOSPC),
        ("quota", errno.EDQUOT),
        ("files", errno.EMFILE),
        ("all files", errno.ENFILE),
        ("processes", errno.EAGAIN),
        ("memory", errno.ENOMEM),
    )
}


def free_disk(folder: Path) -> int:
    """Bytes that are free where a folder is, or will be. Raises OSError."""
    return shutil.disk_usage(next(one for one in (folder, *folder.parents) if one.exists())).free


def free_memory() -> int:
    """Bytes that processes may still take without swapping, as the kernel estimates."""
    (line,) = [one for one in Path("/proc/meminfo").read_text().splitlines() if one.startswith("MemAvailable")]
    return int(line.split()[1]) << 10


def is_stopped(process: int) -> bool:
    """Has somebody stopped it (SIGSTOP, a debugger)? No, where it has ended."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2][:1] in ("T", "t")
    except OSError:
        return False


def trouble(message: str, *folders: Path) -> str | None:
    """Why a failure with this message may be the machine's and nobody else's, or None."""
    told = next((words for words in _WORDS.values() if words.lower() in message.lower()), None)
    if told:
        return f"the machine says {told!r}"
    for folder in folders:
        if free_disk(folder) < LITTLE:
            return f"the disk of {folder} is full"
    return "the machine has no memory left" if free_memory() < LITTLE else None


def has(feature: str) -> bool:
    """Does the processor have a feature, or with a ! before its name: lack it?"""
    return (feature.removeprefix("!") in features()) != feature.startswith("!")
