"""The files that an ONNX file declares to hold data of its tensors."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from harness.conversions.gate.reading.protobuf import Reader, Refused, mapped, message, name_of

_PARTS: Mapping[str, Mapping[int, str]] = {
    "model": {7: "graph", 25: "function"},
    "function": {7: "node", 11: "attribute"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    "sparse": {1: "tensor", 2: "tensor"},
    "tensor": {13: "entry"},
}
"""Where tensors stand, by the numbers of onnx.proto."""


def declared(path: Path) -> tuple[Path, ...]:
    """The files in their order, wherever they lie; none where the file cannot be read. Data itself is not read."""
    try:
        about = path.stat()
        names = _locations(path, about.st_mtime_ns, about.st_size)
    except (OSError, ValueError):
        return ()
    return tuple(path.parent / name for name in names)


@lru_cache(maxsize=64)
def _locations(path: Path, changed: int, size: int) -> tuple[str, ...]:
    reader, found = Reader(), {}
    waiting = [("model", mapped(path))]
    while waiting:
        kind, data = waiting.pop()
        if kind == "entry":
            texts = {1: "", 2: ""}
            for number, value in reader.fields(data, kind):
                if number in texts:
                    texts[number] = name_of(message(value, kind), kind)
            if texts[1] == "location" and texts[2]:
                found[texts[2]] = None
            continue
        parts = _PARTS[kind]
        for number, value in reader.fields(data, kind):
            if number in parts:
                if isinstance(value, int):
                    raise Refused(f"{kind}: a number where a message belongs")
                waiting.append((parts[number], value))
    return tuple(sorted(found))
