"""What a folder of modules holds. Each file names its records in a tuple (`TARGETS`, `EDGES`, …), and the folder
collects them: a new file is all that an addition takes."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any


def modules_of(package: str, first: Sequence[str] = ()) -> list[ModuleType]:
    """The modules in a package's folder and in those below it, imported: those that `first` names (`tvm.levels`: a file
    of a folder) in this order, all others after them by name. Folders without `__init__.py` hold text. Raises
    ValueError where `first` names what is not there."""
    found = sorted(_names(package))
    missing = set(first) - set(found)
    if missing:
        raise ValueError(f"{package} has no module {', '.join(sorted(missing))}")
    return [import_module(f"{package}.{name}") for name in dict.fromkeys((*first, *found))]


def collected(package: str, records: str, first: Sequence[str] = ()) -> dict[str, Any]:
    """By name, what stands in the tuples that the modules of a package call `records`; a module without one helps the
    others. Raises ValueError for two of one name."""
    chosen: dict[str, Any] = {}
    homes: dict[str, str] = {}
    for module in modules_of(package, first):
        for record in getattr(module, records, ()):
            if record.name in chosen:
                where = f"{homes[record.name]} and of {module.__name__}"
                raise ValueError(f"{record.name!r} stands among the {records} of {where}")
            chosen[record.name], homes[record.name] = record, module.__name__
    return chosen


def _names(package: str) -> Iterator[str]:
    """Names of the modules below a package, which is imported or being imported."""
    for found in pkgutil.iter_modules(import_module(package).__path__):
        if found.ispkg:
            yield from (f"{found.name}.{name}" for name in _names(f"{package}.{found.name}"))
        else:
            yield found.name
