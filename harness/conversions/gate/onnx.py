"""ONNX: operators that its registry and ONNX Runtime's know, and data that is there."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from struct import iter_unpack

from harness.conversions.gate.reading.folder import inside
from harness.conversions.gate.reading.protobuf import LARGEST, Reader, Refused, mapped, message, name_of, quoted, signed
from harness.conversions.gate.reading.words import listed

DEPTH = 20
"""Of graphs in graphs, and of functions that call functions."""
MOST_NODES = 300_000
MOST_CALLS = 1_000_000
"""Nodes after all model-local functions are unfolded."""
SHAPED = {"ConstantOfShape": 0, "Expand": 1, "Tile": 1}
"""Operators with the input that says how large the result is."""
SMALL = 512
"""Bytes of a constant that may be such a size."""
MOST_ELEMENTS = 1 << 30
"""Of a tensor whose size a constant says: it is made when the model is opened."""
METADATA = ("ort_config",)
"""Keys that ONNX Runtime takes settings from."""
BITS = {1: 32, 2: 8, 3: 8, 4: 16, 5: 16, 6: 32, 7: 64, 9: 8, 10: 16, 11: 64, 12: 32, 13: 64, 14: 64, 15: 128, 16: 16,
        17: 8, 18: 8, 19: 8, 20: 8, 21: 4, 22: 4, 23: 4, 24: 8, 25: 2, 26: 2,
        27: 6, 28: 6}  # fmt: skip
"""By TensorProto.DataType; 8 is text."""
_DATA = {4: 4, 10: 8}
"""Fields of numbers of a fixed size, with their bytes."""


@dataclass
class _File:
    folder: Path
    path: Path
    reader: Reader = field(default_factory=Reader)
    functions: set[tuple[str, str]] = field(default_factory=set)
    nodes: int = 0
    declared: int = 0
    constants: dict[str, int] = field(default_factory=dict)
    """The product of the numbers of a small constant, by its name; the largest, where subgraphs use a name again."""
    shaped: list[tuple[str, str]] = field(default_factory=list)
    """(node, name of the constant that says how large its result is)."""


def check(path: Path) -> str | None:
    """Why an ONNX file is refused unless it is trusted, in one line, or None."""
    try:
        _model(path)
    except Refused as why:
        return str(why)
    except (OSError, ValueError, RecursionError) as error:
        return f"it cannot be read: {quoted(str(error))}"
    return None


def _model(path: Path) -> None:
    file = _File(path.parent, path)
    graphs: list[memoryview] = []
    functions: list[memoryview] = []
    for number, value in file.reader.fields(mapped(path), "model"):
        match number:
            case 7:
                graphs.append(message(value, "graph"))
            case 8:
                _opset(file, message(value, "opset_import"))
            case 14:
                _metadata(file, message(value, "metadata_props"))
            case 20:
                raise Refused("training_info: a model that trains itself")
            case 25:
                functions.append(message(value, "functions"))
    if len(graphs) != 1:
        raise Refused(f"{len(graphs)} graphs in the model, not one")
    bodies: dict[tuple[str, str], memoryview] = {}
    for body in functions:
        texts = {4: b"", 1: b"", 10: b""}
        for number, value in file.reader.fields(body, "function"):
            if number in (1, 10):
                texts[number] = bytes(message(value, "function"))
        key = name_of(texts[10], "function"), name_of(texts[1], "function")
        if key in bodies:
            raise Refused(f"function {quoted(key[1])} is there twice")
        bodies[key] = body
    file.functions = set(bodies)
    calls: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for key, body in bodies.items():
        where = f"function {quoted(key[1])}"
        before, found = file.nodes, []
        for number, value in file.reader.fields(body, where):
            if number == 7:
                found += _node(file, message(value, where), where, 1)
            elif number == 11:
                found += _attribute(file, message(value, where), where, 1)
        calls[key] = found
        if file.nodes - before > MOST_NODES:
            raise Refused(f"{where}: more than {MOST_NODES} nodes")
    top = _graph(file, graphs[0], "graph", 0)
    sizes: dict[tuple[str, str], int] = {}
    total = sum(_unfolded(one, calls, sizes, ()) for one in top)
    if total > MOST_CALLS:
        raise Refused(f"functions unfold to {total} nodes, more than {MOST_CALLS}")
    for where, name in file.shaped:
        if file.constants.get(name, 0) > MOST_ELEMENTS:
            raise Refused(f"{where}: a result of {file.constants[name]} elements")


def _unfolded(
    key: tuple[str, str],
    calls: dict[tuple[str, str], list[tuple[str, str]]],
    sizes: dict[tuple[str, str], int],
    stack: tuple[tuple[str, str], ...],
) -> int:
    if key in stack:
        raise Refused(f"function {quoted(key[1])} calls itself")
    if len(stack) > DEPTH:
        raise Refused(f"function {quoted(key[1])}: calls deeper than {DEPTH}")
    if key not in sizes:
        sizes[key] = 1 + sum(_unfolded(one, calls, sizes, (*stack, key)) for one in calls[key])
    return sizes[key]


def _opset(file: _File, data: memoryview) -> None:
    for number, value in file.reader.fields(data, "opset_import"):
        if number == 1:
            name_of(message(value, "opset_import"), "opset_import")


def _metadata(file: _File, data: memoryview) -> None:
    for number, value in file.reader.fields(data, "metadata_props"):
        if number == 1 and (key := name_of(message(value, "metadata_props"), "metadata_props")) in METADATA:
            raise Refused(f"metadata_props: {quoted(key)} gives ONNX Runtime settings")


def _graph(file: _File, data: memoryview, where: str, depth: int) -> list[tuple[str, str]]:
    if depth > DEPTH:
        raise Refused(f"{where[:80]}: graphs in graphs deeper than {DEPTH}")
    found: list[tuple[str, str]] = []
    for number, value in file.reader.fields(data, where):
        match number:
            case 1:
                found += _node(file, message(value, where), where, depth)
            case 2:
                name_of(message(value, where), where)
            case 5:
                _tensor(file, message(value, where), f"{where}: initializer")
            case 11 | 12 | 13:
                for inner, name in file.reader.fields(message(value, where), where):
                    if inner == 1:
                        name_of(message(name, where), where)
            case 15:
                _sparse(file, message(value, where), f"{where}: sparse_initializer")
    return found


def _node(file: _File, data: memoryview, where: str, depth: int) -> list[tuple[str, str]]:
    file.nodes += 1
    if file.nodes > MOST_NODES:
        raise Refused(f"{where}: more than {MOST_NODES} nodes")
    texts = {3: "", 4: "", 7: ""}
    attributes = []
    ports: dict[int, list[str]] = {1: [], 2: []}
    for number, value in file.reader.fields(data, where):
        if number in ports:
            ports[number].append(name_of(message(value, where), where))
        elif number in texts:
            texts[number] = name_of(message(value, where), where)
        elif number == 5:
            attributes.append(message(value, where))
    name, operator, domain = texts.values()
    here = f"{where if depth < 3 else '...'}: node {quoted(name or operator)}"
    local = (domain, operator) in file.functions
    if not local and f"{domain or 'ai.onnx'}.{operator}" not in listed("onnx.txt"):
        raise Refused(f"{here}: operator {quoted(operator)} of domain {quoted(domain)} is not one of ONNX")
    found = [(domain, operator)] if local else []
    made = ports[2][0] if operator == "Constant" and ports[2] else ""
    for one in attributes:
        found += _attribute(file, one, here, depth, made)
    place = SHAPED.get(operator, len(ports[1]))
    file.shaped += [(here, name) for name in ports[1][place : place + 1] if operator in SHAPED]
    return found


def _attribute(file: _File, data: memoryview, where: str, depth: int, made: str = "") -> list[tuple[str, str]]:
    """made: the name of the constant that it is the value of."""
    found: list[tuple[str, str]] = []
    for number, value in file.reader.fields(data, where):
        match number:
            case 1:
                name_of(message(value, where), where)
            case 5 | 10:
                _tensor(file, message(value, where), where, made)
            case 8 if made:
                _constant(file, made, [signed(one) for one in file.reader.integers(value, where)])
            case 6 | 11:
                found += _graph(file, message(value, where), where, depth + 1)
            case 22 | 23:
                _sparse(file, message(value, where), where)
    return found


def _sparse(file: _File, data: memoryview, where: str) -> None:
    dims: list[int] = []
    for number, value in file.reader.fields(data, where):
        if number in (1, 2):
            _tensor(file, message(value, where), where)
        elif number == 3:
            dims += map(signed, file.reader.integers(value, where))
    _declared(file, dims, 64, where)


def _declared(file: _File, dims: list[int], bits: int, where: str) -> int:
    """Bytes of a tensor, which count for the file."""
    size = bits
    for dim in dims:
        size *= dim
        if dim < 0 or size > LARGEST * 8:
            raise Refused(f"{where}: a tensor of shape {quoted(str(dims[:8]))}")
    file.declared += (size + 7) // 8
    if file.declared > LARGEST:
        raise Refused(f"{where}: tensors of more than {LARGEST} bytes are declared")
    return (size + 7) // 8


def _constant(file: _File, name: str, numbers: list[int]) -> None:
    if name and numbers and min(numbers) >= 0:
        file.constants[name] = max(file.constants.get(name, 0), prod(numbers))


def _tensor(file: _File, data: memoryview, where: str, made: str = "") -> None:
    whole: list[int] = []
    dims: list[int] = []
    kind = outside = strings = 0
    numbers = {4: 0, 5: 0, 7: 0, 10: 0, 11: 0}
    raw = None
    external: dict[str, str] = {}
    for number, value in file.reader.fields(data, where):
        match number:
            case 1:
                dims += map(signed, file.reader.integers(value, where))
                if len(dims) > 64:
                    raise Refused(f"{where}: a tensor of more than 64 dimensions")
            case 2 if isinstance(value, int):
                kind = value
            case 8:
                made = made or name_of(message(value, where), where)
                where = f"{where} {quoted(name_of(message(value, where), where))}"
            case 9:
                raw = len(message(value, where))
                if raw <= SMALL:
                    whole = [one[0] for one in iter_unpack("<q", message(value, where)[: raw // 8 * 8])]
            case 7:
                part = 1 if isinstance(value, int) else len(value)
                numbers[7] += part
                if numbers[7] <= SMALL:
                    whole += [signed(one) for one in file.reader.integers(value, where)]
            case 6:
                strings += 1
            case 13:
                key, text = _entry(file, message(value, where), where)
                if key in external:
                    raise Refused(f"{where}: external data: {quoted(key)} is there twice")
                external[key] = text
            case 14 if isinstance(value, int):
                outside = value
            case 4 | 5 | 10 | 11:
                numbers[number] += 1 if isinstance(value, int) else len(value)
    if kind != 8 and kind not in BITS:
        raise Refused(f"{where}: data type {kind} is not known")
    _constant(file, made, whole if kind == 7 else [])
    size = _declared(file, dims, BITS.get(kind, 8), where)
    if outside or external:
        _external(file, external, size, kind, where)
    elif raw is not None and raw != size:
        raise Refused(f"{where}: {raw} bytes of data for shape {quoted(str(dims))}, which takes {size}")
    elif raw is None and size > 8 * (strings if kind == 8 else sum(numbers.values())) + 8:
        # the smallest kept element takes a byte of a varint, the largest sixteen of memory
        raise Refused(f"{where}: no data for shape {quoted(str(dims))}, which takes {size} bytes")


def _entry(file: _File, data: memoryview, where: str) -> tuple[str, str]:
    key = value = ""
    for number, text in file.reader.fields(data, where):
        if number == 1:
            key = name_of(message(text, where), where)
        elif number == 2:
            value = name_of(message(text, where), where)
    return key, value


def _external(file: _File, entries: dict[str, str], size: int, kind: int, where: str) -> None:
    place = entries.get("location", "")
    if "*" in place:  # ONNX Runtime takes */_ORT_MEM_ADDR_/* for an address in memory
        raise Refused(f"{where}: external data {quoted(place)}")
    path = inside(file.folder, place, f"{where}: external data")
    if path == file.path or kind == 8:
        raise Refused(f"{where}: external data {quoted(place)} cannot hold it")
    for key in ("offset", "length"):
        text = entries.get(key, "0")
        if not (text.isascii() and text.isdigit() and len(text) < 20):
            raise Refused(f"{where}: external data: {key} {quoted(text)}")
    there, offset = path.stat().st_size, int(entries.get("offset", "0"))
    length = int(entries.get("length", str(size)))
    if length != size or offset + length > there:
        raise Refused(
            f"{where}: external data: bytes {offset} to {offset + length} of {quoted(place)}, which has {there}, "
            f"for a tensor of {size}"
        )
    if there > LARGEST or path.stat().st_blocks * 512 < there // 2 - (1 << 20):
        raise Refused(f"{where}: external data: {quoted(place)} has {there} bytes that are mostly not there")
