"""The records of operators, wherever a file below a package has them: nothing is registered by hand."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterable
from importlib import import_module

from generators.ops.spec import OpSpec


def records_below(paths: Iterable[str], prefix: str) -> dict[str, OpSpec]:
    """By name, the records in `OPERATORS` of every module below the folders `paths`, whose names begin with `prefix`.
    Modules without `OPERATORS` help the others. Two records of one name raise an error that names both modules."""
    found: dict[str, OpSpec] = {}
    homes: dict[str, str] = {}
    for name in sorted(info.name for info in pkgutil.walk_packages(paths, prefix)):
        for record in getattr(import_module(name), "OPERATORS", ()):
            if record.name in homes:
                raise ValueError(f"operator {record.name!r} stands in {homes[record.name]} and in {name}")
            found[record.name], homes[record.name] = record, name
    return found
