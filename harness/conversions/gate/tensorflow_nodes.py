"""TensorFlow's operators in a model of a stranger: NodeDefs, by their wire format."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from harness.conversions.gate import stablehlo
from harness.conversions.gate.reading.protobuf import LARGEST, Reader, Refused, Value, message, name_of, quoted, signed
from harness.conversions.gate.reading.words import listed

TABLE_FROM_FILE = frozenset({"InitializeTableFromTextFile", "InitializeTableFromTextFileV2"})
"""Allowed where the file is an asset of the model."""
SAVER = frozenset({"SaveV2", "RestoreV2", "MergeV2Checkpoints", "ShardedFilename"})
"""In the functions that every SavedModel has for checkpoints, which nothing else may call."""
DEPTH = 32
_WIDTHS = {1: 4, 2: 8, 4: 1, 5: 2, 6: 1, 9: 8, 10: 1, 14: 2, 17: 2, 18: 16, 19: 2, 22: 4, 23: 8, 8: 8, 3: 4}


def operators() -> frozenset[str]:
    """Names of the operators that neither reach files, the network, the host's Python nor another runtime."""
    return listed("tensorflow_operators.txt")


@dataclass
class Node:
    """A NodeDef. calls: names of functions that its attributes name."""

    name: str
    operator: str
    inputs: list[str]
    calls: set[str] = field(default_factory=set)
    modules: list[memoryview] = field(default_factory=list)


def node(reader: Reader, data: memoryview, where: str) -> Node:
    """Reads a NodeDef. Raises Refused."""
    found = Node("", "", [])
    for number, value in reader.fields(data, where):
        match number:
            case 1:
                found.name = name_of(message(value, where), where)
            case 2:
                found.operator = name_of(message(value, where), where)
            case 3:
                found.inputs.append(name_of(message(value, where), where))
            case 4 if value:
                device = name_of(message(value, where), where)
                if device and not local(device):
                    raise Refused(f"{where}: node {quoted(found.name)}: device {quoted(device)} is not this machine")
            case 5:
                key, content = "", None
                for inner, one in reader.fields(message(value, where), where):
                    if inner == 1:
                        key = name_of(message(one, where), where)
                    elif inner == 2:
                        content = message(one, where)
                if content is not None:
                    _value(reader, content, f"{where}: node {quoted(found.name)}", found, key, 0)
    return found


def local(device: str) -> bool:
    """Is it a CPU or GPU of the process itself?"""
    parts = [part for part in device.lower().split("/") if part]
    allowed = ("job:localhost", "replica:0", "task:0", "device:cpu", "device:gpu", "cpu:", "gpu:")
    return all(part.startswith(allowed) for part in parts)


def _value(reader: Reader, data: memoryview, where: str, into: Node, key: str, depth: int) -> None:
    if depth > DEPTH:
        raise Refused(f"{where}: attributes deeper than {DEPTH}")
    for number, value in reader.fields(data, where):
        match number:
            case 1:  # a list
                for inner, one in reader.fields(message(value, where), where):
                    if inner == 8:
                        _tensor(reader, message(one, where), where)
                    elif inner == 9:
                        _call(reader, message(one, where), where, into, depth)
            case 2 if key == "module" and into.operator in ("XlaCallModule", ""):
                into.modules.append(message(value, where))
            case 8:
                _tensor(reader, message(value, where), where)
            case 10:
                _call(reader, message(value, where), where, into, depth)


def _call(reader: Reader, data: memoryview, where: str, into: Node, depth: int) -> None:
    for number, value in reader.fields(data, where):
        if number == 1:
            into.calls.add(name_of(message(value, where), where))
        elif number == 2:
            for inner, one in reader.fields(message(value, where), where):
                if inner == 2:
                    _value(reader, message(one, where), where, into, "", depth + 1)


def shape(reader: Reader, data: Value, where: str) -> int:
    """How many elements a TensorShapeProto has. Raises Refused."""
    count = 1
    for number, value in reader.fields(message(data, where), where):
        if number == 2:
            for inner, size in reader.fields(message(value, where), where):
                if inner == 1 and isinstance(size, int):
                    count *= max(signed(size), 0)
                    if count > LARGEST:
                        raise Refused(f"{where}: a tensor of more than {LARGEST} elements")
    return count


def _tensor(reader: Reader, data: memoryview, where: str) -> None:
    kind, count, there = 0, 1, None
    for number, value in reader.fields(data, where):
        if number == 1 and isinstance(value, int):
            kind = value
        elif number == 2:
            count = shape(reader, value, where)
        elif number == 4:
            there = len(message(value, where))
    width = _WIDTHS.get(kind, 1)
    if there is not None and kind in _WIDTHS and there != count * width:
        raise Refused(f"{where}: {there} bytes of data for a tensor of {count * width}")
    if there is None and count * width > 1 << 30:  # one number may stand for all of them
        raise Refused(f"{where}: a constant of {count} elements is declared by a few bytes")


def allow(one: Node, where: str, functions: Iterable[str] | Mapping[str, object], more: frozenset[str]) -> None:
    """Raises Refused for a node that may not be run. functions: that its graph has; more: operators beside the list."""
    here = f"{where}: node {quoted(one.name)}"
    if one.operator == "XlaCallModule":
        for module in one.modules:
            stablehlo.module(module, here)
        return
    if one.operator not in operators() and one.operator not in functions and one.operator not in more:
        raise Refused(f"{here}: operator {quoted(one.operator)} may reach beyond the model")
