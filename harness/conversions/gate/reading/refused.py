"""How a gate says no: one line that names the spot and quotes the text, shortened."""

from __future__ import annotations

import json
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

DEEPEST = 120
"""Levels of nesting of a JSON text; torch.export and Keras write fewer than 40."""
LONGEST_TEXT = 64 << 20
"""Bytes of a JSON text: parsed, it takes about ten times as much memory."""


class Refused(ValueError):
    """A file that is refused unless it is trusted; the message is one line."""


def quoted(text: object) -> str:
    """A text as it is quoted in a refusal: ASCII, without line breaks, at most 80 characters."""
    told = ascii(text[:200] if isinstance(text, str | bytes) else text)
    return told if len(told) <= 80 else told[:77] + "..."


def reason(find: Callable[[Path], None], path: Path) -> str | None:
    """The line of the Refused that `find` raises for a file, None where it raises none. A file that cannot be parsed
    is refused."""
    try:
        find(path)
    except Refused as refused:
        return " ".join(str(refused).split())
    except RecursionError:
        return "it is nested too deeply"
    except MemoryError:
        return "it takes too much memory"
    except (
        ArithmeticError,
        AttributeError,
        EOFError,
        LookupError,
        NotImplementedError,
        OSError,
        RuntimeError,
        SyntaxError,
        TypeError,
        ValueError,
        struct.error,
        zipfile.BadZipFile,
        zlib.error,
    ) as error:
        return f"it cannot be parsed: {type(error).__name__}: {quoted(str(error))}"
    return None


def parsed(text: bytes | str, spot: str) -> Any:
    """A JSON text. Raises Refused where it is too long, too deep, or names a key twice: two readers would differ."""
    if len(text) > LONGEST_TEXT:
        raise Refused(f"{spot} has {len(text)} bytes of JSON, more than {LONGEST_TEXT}")
    if isinstance(text, bytes):
        try:
            text = text.decode("utf-8")
        except UnicodeDecodeError as error:
            raise Refused(f"{spot} is not UTF-8") from error
    _shallow(text, spot)

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            names = [name for name, _ in pairs]
            raise Refused(f"{spot} names a key twice: {quoted(next(n for n in names if names.count(n) > 1))}")
        return found

    try:
        return json.loads(text, object_pairs_hook=once)
    except Refused:
        raise
    except ValueError as error:
        raise Refused(f"{spot} is not JSON: {quoted(str(error))}") from error


def _shallow(text: str, spot: str) -> None:
    """Counted before json parses it, without the brackets that stand in strings."""
    if text.count("[") + text.count("{") <= DEEPEST:
        return
    depth, place, inside = 0, 0, False
    for char in text:
        if place:
            place = 0
        elif inside:
            if char == "\\":
                place = 1
            elif char == '"':
                inside = False
        elif char == '"':
            inside = True
        elif char in "[{":
            depth += 1
            if depth > DEEPEST:
                raise Refused(f"{spot} is nested deeper than {DEEPEST} levels")
        elif char in "]}":
            depth -= 1
