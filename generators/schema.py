"""Data that people and other programs hand over: parsed within limits, and converted to records with one line that says
where it is wrong."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from math import isfinite
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

import msgspec

T = TypeVar("T")
DIGITS = 400
"""Digits of a number: as many as float64 can have before the point, and more than any integer dtype has."""
DEPTH = 100
"""Lists and objects within each other."""
LONGEST = 400
"""Characters of a line that says what is wrong."""


class SchemaError(ValueError):
    """Data that cannot be read; the message is one line, with the place where there is one."""

    def __init__(self, message: str) -> None:
        super().__init__(one_line(message))


def one_line(message: str) -> str:
    """A message that may quote foreign data, fit to be printed: one line, not too long, without control characters."""
    shown = "".join(c if c.isprintable() else " " if c.isspace() else repr(c)[1:-1] for c in message)
    return shown if len(shown) <= LONGEST else f"{shown[: LONGEST - 3]}..."


def text_of(data: bytes) -> str:
    """UTF-8 text. Raises SchemaError."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise SchemaError(f"not UTF-8 text: byte {error.start} is {data[error.start]:#04x}") from error


def parsed(text: str, finite: bool = True) -> Any:
    """JSON as its standard has it: without NaN and infinities (finite: not even as Python writes them), without a
    key twice in an object. Raises SchemaError."""
    return _read(
        "JSON",
        lambda: json.loads(
            text,
            parse_int=_integer,
            parse_float=_finite,
            parse_constant=_refused if finite else float,
            object_pairs_hook=_unique,
        ),
    )


def parsed_toml(text: str) -> dict[str, Any]:
    """TOML. Raises SchemaError."""
    if number := re.search(rf"\d[\d_]{{{DIGITS},}}", text):
        raise SchemaError(f"not TOML: a number of {len(number[0])} digits")
    return _read("TOML", lambda: tomllib.loads(text))


def converted(data: object, type_: type[T]) -> T:
    """Parsed data as a record. Keys that a dataclass has no field for are refused, too. Raises SchemaError with the
    place, as in `$.graph.nodes[3].attrs: …`."""
    _only_fields(data, type_, "$")
    try:
        return msgspec.convert(data, type_)
    except msgspec.ValidationError as error:
        what, _, place = str(error).partition(" - at ")
        place = place.replace("`", "") or "$"
        place = _place_of_error(data, type_, "$") if "[...]" in place else place
        raise SchemaError(f"{place}: {what}") from error


def _only_fields(data: object, type_: Any, place: str) -> None:
    """Raises SchemaError where a dataclass would be given a key that it has no field for; msgspec lets these pass."""
    if is_dataclass(type_) and isinstance(data, Mapping):
        names = {field.name for field in fields(type_)}
        if unknown := [key for key in data if key not in names]:
            raise SchemaError(f"{place}.{unknown[0]}: unknown key; there are {', '.join(sorted(names))}")
    for step, value, inner in _parts(data, type_):
        _only_fields(value, inner, place + step)


def _place_of_error(data: object, type_: Any, place: str) -> str:
    """Where data is not of its type, with the keys of dictionaries, which msgspec does not tell."""
    for step, value, inner in _parts(data, type_):
        try:
            msgspec.convert(value, inner)
        except msgspec.ValidationError:
            return _place_of_error(value, inner, place + step)
    return place


def _parts(data: object, type_: Any) -> Iterator[tuple[str, object, Any]]:
    """What data is made of: the step that leads there, the value, its type. Unions are not looked into."""
    origin, inner = get_origin(type_), get_args(type_)
    if origin is Annotated:
        yield from _parts(data, inner[0])
    elif isinstance(data, Mapping):
        if origin in (dict, Mapping):
            yield from ((f"[{repr(key)[:60]}]", value, inner[1]) for key, value in data.items())
        elif isinstance(type_, type) and (is_dataclass(type_) or issubclass(type_, msgspec.Struct)):
            types = _types(type_)
            yield from ((f".{key}", value, types[key]) for key, value in data.items() if key in types)
    elif isinstance(data, list | tuple) and origin is tuple:
        types = inner[:1] * len(data) if inner[1:] == (...,) else inner
        yield from ((f"[{number}]", value, one) for number, (value, one) in enumerate(zip(data, types, strict=False)))


@cache
def _types(record: type) -> Mapping[str, Any]:
    return get_type_hints(record, include_extras=True)


def _read(what: str, read: Callable[[], Any]) -> Any:
    try:
        found = read()
    except RecursionError as error:
        raise SchemaError(f"not {what} that can be read: nested too deeply") from error
    except SchemaError:
        raise
    except ValueError as error:
        raise SchemaError(f"not {what}: {error}") from error
    _shallow(found)
    return found


def _shallow(data: object) -> None:
    """Raises SchemaError where lists and objects are nested too deeply, or a text is none."""
    level = [data]
    for _ in range(DEPTH):
        below: list[object] = []
        for value in level:
            if isinstance(value, str):
                _text(value)
            elif isinstance(value, dict):
                for key in value:
                    _text(key)
                below.extend(value.values())
            elif isinstance(value, list):
                below.extend(value)
        if not below:
            return
        level = below
    raise SchemaError(f"nested more than {DEPTH} deep")


def _text(value: str) -> None:
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise SchemaError(f"half a character, {value[error.start]!r}, in a text") from error


def _integer(digits: str) -> int:
    if len(digits) > DIGITS:
        raise SchemaError(f"a number of {len(digits)} digits")
    return int(digits)


def _finite(digits: str) -> float:
    if len(digits) > DIGITS or not isfinite(float(digits)):
        raise SchemaError(f"{digits[:20]} is not a finite number of at most {DIGITS} digits")
    return float(digits)


def _refused(name: str) -> None:
    raise SchemaError(f"{name} is not a number")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))
        raise SchemaError(f"the key {twice!r} is there twice")
    return found
