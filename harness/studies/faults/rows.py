"""Dataclasses as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable
from dataclasses import fields
from typing import Any


def csv_of(kind: type, found: Iterable[Any], cell: Callable[[Any], Any] = lambda value: value) -> str:
    """A row each, below the names of the fields of their class. cell: what stands for a value."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    names = [field.name for field in fields(kind)]
    writer.writerow(names)
    writer.writerows([cell(getattr(one, name)) for name in names] for one in found)
    return out.getvalue()
