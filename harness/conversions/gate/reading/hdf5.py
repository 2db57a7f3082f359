"""Weights as HDF5: arrays of numbers that stand in the file itself."""

from __future__ import annotations

from pathlib import Path
from typing import IO, Any

from harness.conversions.gate.reading.archives import LARGE, RATIO
from harness.conversions.gate.reading.refused import Refused, quoted, reason

MEMBERS = 200_000
_FILTERS = frozenset({1, 2, 3})
"""deflate, shuffle, fletcher32: those that HDF5 has built in; others are loaded from libraries."""


def check(path: Path) -> str | None:
    """Why a file of weights (.h5) is refused, in one line, or None."""

    def find(path: Path) -> None:
        with path.open("rb") as file:
            weights(file, path.name)

    return reason(find, path)


def weights(file: IO[bytes], spot: str) -> None:
    """An open HDF5 file. Raises Refused; h5py raises OSError, RuntimeError or ValueError where it cannot be parsed."""
    import h5py

    with h5py.File(file, "r") as found:
        declared, stored = _total(found, spot)
    if declared > LARGE and declared > RATIO * stored:
        raise Refused(f"{spot} unpacks from {stored} to {declared} bytes")


def _total(found: Any, spot: str) -> tuple[int, int]:
    """Bytes of all arrays, in memory and in the file."""
    import h5py

    declared, stored, seen, waiting = 0, 0, 0, [("", found)]
    while waiting:
        path, group = waiting.pop()
        for name in group:
            here = f"{spot}{quoted(path + '/' + name)}"
            seen += 1
            if seen > MEMBERS or path.count("/") > 100:
                raise Refused(f"{spot} has too many members or is nested too deeply")
            link = group.get(name, getlink=True)
            if not isinstance(link, h5py.HardLink):
                raise Refused(f"{here} is a {type(link).__name__}")
            one = group[name]
            if isinstance(one, h5py.Group):
                waiting.append((f"{path}/{name}", one))
            elif isinstance(one, h5py.Dataset):
                _array(one, here)
                declared += one.size * one.dtype.itemsize
                stored += one.id.get_storage_size()
            else:
                raise Refused(f"{here} is a {type(one).__name__}")
    return declared, stored


def _array(one: Any, here: str) -> None:
    if one.external:
        raise Refused(f"{here} stands in another file: {quoted(one.external[0][0])}")
    if one.is_virtual:
        raise Refused(f"{here} is a virtual dataset")
    numbers = one.dtype.kind in "fiubc" or (one.dtype.kind == "V" and one.dtype.fields is None)
    if not numbers or one.dtype.hasobject or one.dtype.itemsize > 16:
        raise Refused(f"{here} holds {quoted(str(one.dtype))}")
    settings = one.id.get_create_plist()
    used = {settings.get_filter(number)[0] for number in range(settings.get_nfilters())}
    if used - _FILTERS:
        raise Refused(f"{here} is packed by filter {min(used - _FILTERS)}")
