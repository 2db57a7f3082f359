"""What stands in a zip archive, without loading any of it."""

from __future__ import annotations

import zipfile
from pathlib import Path


def member(path: Path, *endings: str) -> str | None:
    """Why none of an archive's members has a name that ends so, or None where one has."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except zipfile.BadZipFile:
        return "it is not a zip archive"
    found = any(name.endswith(endings) for name in names)
    return None if found else f"{' or '.join(endings)} is not in the archive"
