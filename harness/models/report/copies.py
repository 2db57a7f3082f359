"""Large files that were converted from a given model: they are not kept where nothing is wrong with them."""

from __future__ import annotations

import shutil
from pathlib import Path

from harness.conversions.admit import files_of, size_of
from harness.models.results import Results

LARGE = 64 << 20
"""Bytes above which a copy goes: a model of 100 MB and four conversions of it would take half a gigabyte for good."""


def drop(results: Results, folder: Path) -> int:
    """Remove converted files in this folder that take more than LARGE bytes and that no variant with something to show
    reads (its reproducer opens them); the next run of the same command makes them again. Returns the bytes gone."""
    needed = {row.variant.file.path for row in results.rows if row.status not in ("agree", "unsupported")}
    gone = 0
    for path in {row.variant.file.path for row in results.rows} - needed - {results.model.path}:
        parts = files_of(path)
        size = sum(map(size_of, parts))
        if path.is_relative_to(folder) and size > LARGE:
            for part in parts:
                if part.is_dir():
                    shutil.rmtree(part)
                else:
                    part.unlink(missing_ok=True)
            gone += size
    return gone
