"""Zip archives, taken apart and put together again."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

Build = Callable[[Path, Path], Path]
"""Writes a file into a folder and returns its path. The second path is what the attack would create."""


def parts(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def joined(path: Path, members: Mapping[str, bytes], method: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path
