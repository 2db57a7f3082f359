"""torch.export's archive (.pt2): the program as JSON, tensors as bytes, example inputs as a pickle of tensors.

Loading it evaluates expressions, resolves operators by name, compiles generated Python and unpickles: each of these
texts is checked here. Compiled code of AOTInductor, objects of custom classes and pickled weights are refused."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path
from typing import Any

from harness.conversions.gate import pt2_schema
from harness.conversions.gate.reading.archives import LARGE, content, opened
from harness.conversions.gate.reading.pickles import tensors
from harness.conversions.gate.reading.refused import LONGEST_TEXT, Refused, parsed, quoted, reason

_KINDS = (
    (re.compile(r"models/[\w-]+\.json"), "program"),
    (re.compile(r"data/(weights|constants)/[\w-]+_config\.json"), "config"),
    (re.compile(r"data/(weights/weight|constants/tensor)_\d+"), "bytes"),
    (re.compile(r"data/(weights|constants|sample_inputs)/[\w-]+\.pt"), "pickle"),
    (re.compile(r"extra/[\w./-]+"), "bytes"),
    (re.compile(r"archive_format|archive_version|byteorder|version|\.data/(version|serialization_id)"), "word"),
    (re.compile(r"\.(format_version|storage_alignment)"), "word"),
)
_OLD = (
    (re.compile(r"serialized_exported_program\.json"), "program"),
    (re.compile(r"serialized_(state_dict|constants|example_inputs)\.(pt|json)"), "pickle"),
    (re.compile(r"extra_files/[\w./-]+"), "bytes"),
    (re.compile(r"version"), "word"),
)
"""The layout of torch 2.7 and before, which has no folder."""
_WIDTHS = {1: (1, 2, 12, *range(29, 34)), 2: (3, 6, 13, 28), 4: (4, 7, 9, 34), 8: (5, 8, 10, 35), 16: (11,)}
_BYTES = {kind: width for width, kinds in _WIDTHS.items() for kind in kinds}
"""Bytes of an element, by the number of its type in the schema."""


def check(path: Path) -> str | None:
    """Why the file is refused unless it is trusted, in one line, or None."""
    return reason(_examine, path)


def _examine(path: Path) -> None:
    with opened(path) as archive:
        names = archive.namelist()
        old = any(name.startswith("serialized_exported_program") for name in names)
        root = "" if old else names[0].split("/")[0] + "/"
        for name in names:
            if not name.startswith(root):
                raise Refused(f"{quoted(name)} stands outside of the folder {quoted(root)}")
            _member(archive, name, root, old)


def _member(archive: zipfile.ZipFile, name: str, root: str, old: bool) -> None:
    inner = name.removeprefix(root)
    kind = next((kind for rule, kind in (_OLD if old else _KINDS) if rule.fullmatch(inner)), None)
    match kind:
        case "program":
            told = parsed(content(archive, name, LONGEST_TEXT), inner)
            pt2_schema.check(told, "ExportedProgram", inner.removesuffix(".json"))
        case "config":
            _payloads(archive, name, root)
        case "pickle":
            data = content(archive, name, LARGE)
            if data or not old:
                tensors(data, inner)
        case "word":
            content(archive, name, 1000)
        case "bytes":
            if "extra" in inner:
                content(archive, name, LARGE)
        case _:
            raise Refused(f"it has a member that is no part of a program: {quoted(inner)}")


def _payloads(archive: zipfile.ZipFile, name: str, root: str) -> None:
    """Each tensor lies within the bytes of its file."""
    inner = name.removeprefix(root)
    told = parsed(content(archive, name, LONGEST_TEXT), inner)
    pt2_schema.check(told, "PayloadConfig", inner)
    sizes = {info.filename: info.file_size for info in archive.infolist()}
    for key, payload in told["config"].items():
        spot = f"{inner}.{key[:60]}"
        file = name.rpartition("/")[0] + "/" + payload["path_name"]
        if file not in sizes:
            raise Refused(f"{spot}: {quoted(payload['path_name'])} is not in the archive")
        needed = _extent(payload["tensor_meta"], spot)
        if needed > sizes[file]:
            raise Refused(f"{spot} takes {needed} bytes of a file of {sizes[file]}")


def _extent(meta: dict[str, Any], spot: str) -> int:
    """Bytes from the start of its storage to the end of a tensor."""
    shape, strides, (offset,) = (
        [one["as_int"] for one in dims] for dims in (meta["sizes"], meta["strides"], [meta["storage_offset"]])
    )
    if len(shape) != len(strides) or min([*shape, *strides, offset]) < 0 or meta["dtype"] not in _BYTES:
        raise Refused(f"{spot} has no layout: {quoted(meta)}")
    elements = 1
    for size in shape:
        elements *= size
    if not elements:
        return 0
    if elements * _BYTES[meta["dtype"]] > LARGE and any(s == 0 and n > 1 for n, s in zip(shape, strides, strict=True)):
        raise Refused(f"{spot} repeats its elements to {elements}")
    reach = offset + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True)) + 1
    return reach * _BYTES[meta["dtype"]]
