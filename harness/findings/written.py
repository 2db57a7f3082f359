"""A reproducer that was written, read back: its parts, and the arrays that stand in it. Nothing of it is executed."""

from __future__ import annotations

import ast
import contextlib
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import ml_dtypes  # noqa: F401  # numpy knows bfloat16 by it
import numpy as np

from harness.execute.reading import FileError, read_text

_PROGRAM = "# ---- the program that ran ----\n"
_DATA = re.compile(r"^# ---- its (inputs|arrays), and what a correct .*$", re.MULTILINE)
_CHECK = re.compile(r"^def wrong\(", re.MULTILINE)
FILE, ARRAYS = "reproducer.py", "data.npz"
_ASSIGNED = re.compile(r"^([A-Z][A-Z_0-9]*) = (.*(?:\n[ \t\])}].*)*)", re.MULTILINE)
"""A name at the top and what it is given, up to the next line that begins at the margin. The rest is not parsed, which
is most of the time that reading takes: programs of conversions have a thousand lines."""


@dataclass(frozen=True)
class Written:
    """head: what looks for the modules; program: the text that ran; data: inputs and what is expected, as text; check:
    the rest. A program that was written by hand is all head."""

    path: Path
    head: str
    program: str = ""
    data: str = ""
    check: str = ""

    @property
    def text(self) -> str:
        """All of it."""
        return self.head + self.program + self.data + self.check

    @cached_property
    def named(self) -> dict[str, Any]:
        """What the program and its data give a name at their top, as far as that is written out: INPUTS, PARAMETERS,
        OUTPUTS, SYMPTOM, ARRAYS, EXPECTED, ALLOWED among them. Arrays come from `data.npz` where they stand there."""
        found: dict[str, Any] = {}
        for name, node in _assigned(self.program + self.data):
            value = _value(node)
            if value is not _UNREADABLE:
                found[name] = value
        stored = self.path.with_name(ARRAYS)
        if "DATA" in self.data and stored.is_file():
            found |= _stored(stored, found)
        return found

    @property
    def versions(self) -> str:
        """With which it ran ("": it does not say so)."""
        match = re.search(r"^ran with (.+)$", self.head, re.MULTILINE)
        return match[1] if match else ""

    @property
    def environment(self) -> str:
        """The name of the environment of its own in which it ran, empty where it was the one that Dissent runs in."""
        match = re.search(r"\(environment ([\w.-]+)\)$", self.versions)
        return match[1] if match else ""


def read(folder: Path) -> Written | None:
    """The reproducer of an entry or a finding, where it has one. Raises FileError."""
    path = folder / FILE
    if not path.is_file():
        return None
    text = read_text(path)
    head, found, rest = text.partition(_PROGRAM)
    if not found:
        return Written(path, text)
    data, check = _DATA.search(rest), _CHECK.search(rest)
    if not data or not check:
        return Written(path, head + found, rest)
    first, second = data.start(), check.start()
    return Written(path, head + found, rest[:first], rest[first:second], rest[second:])


@dataclass(frozen=True)
class _Unreadable:
    """Stands for what is computed when the program runs."""

    why: str = field(default="")


_UNREADABLE = _Unreadable()


def _assigned(text: str) -> list[tuple[str, ast.expr]]:
    """Names at the top and what they are given. Where a line at the margin belongs to what stands above it (a text of
    several lines), all is parsed. Raises FileError."""
    try:
        with contextlib.suppress(SyntaxError):
            return [(name, ast.parse(value, mode="eval").body) for name, value in _ASSIGNED.findall(text)]
        body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError) as error:
        raise FileError(f"a reproducer cannot be read: {error}") from error
    pairs = [(node.targets[0], node.value) for node in body if isinstance(node, ast.Assign)]
    return [(target.id, value) for target, value in pairs if isinstance(target, ast.Name)]


def _value(node: ast.expr) -> Any:
    """A literal, in which `array(...)`, `inf` and `nan` may stand."""
    try:
        return _literal(node)
    except (LookupError, TypeError, ValueError, AttributeError):
        return _UNREADABLE


def _literal(node: ast.expr) -> Any:
    match node:
        case ast.Constant(value):
            return value
        case ast.Name(id="inf" | "nan" as name):
            return math.inf if name == "inf" else math.nan
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_literal(operand)
        case ast.List(elts=items):
            return [_literal(item) for item in items]
        case ast.Tuple(elts=items):
            return tuple(_literal(item) for item in items)
        case ast.Dict(keys=keys, values=values):
            return {_literal(key): _literal(value) for key, value in zip(keys, values, strict=True) if key}
        case ast.Call(func=ast.Name(id="array"), args=[items, *rest], keywords=words):
            dtype = _literal(words[0].value) if words else _literal(rest[0])
            return np.array(_literal(items), dtype=dtype)
        case ast.Call(func=ast.Attribute(value=of, attr="reshape" | "view" as method), args=[argument]):
            changed: Callable[[Any], Any] = getattr(_literal(of), method)
            return changed(_literal(argument))
    raise ValueError("computed")


def _stored(path: Path, found: dict[str, Any]) -> dict[str, Any]:
    """The arrays of `data.npz`, as the program names them. bfloat16 is stored as two bytes."""
    types = {**found.get("INPUTS", {}), **found.get("PARAMETERS", {})}
    try:
        with np.load(path) as data:
            arrays = {name: data[name] for name in data.files}
    except (OSError, ValueError) as error:
        raise FileError(f"{path}: {error}") from error
    count = sum(name.startswith("EXPECTED_") for name in arrays)
    return {
        "ARRAYS": {n: arrays[f"ARRAYS_{n}"].view(types[n][0]) for n in types if f"ARRAYS_{n}" in arrays},
        "EXPECTED": [arrays[f"EXPECTED_{i}"] for i in range(count) if f"EXPECTED_{i}" in arrays],
        "ALLOWED": [arrays[f"ALLOWED_{i}"] for i in range(count) if f"ALLOWED_{i}" in arrays],
    }
