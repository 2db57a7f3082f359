"""Cases as JSON: the graph and every array, so that a file alone replays a case."""

from __future__ import annotations

import base64
import json

import numpy as np
from msgspec import Struct

from generators.graph import GraphError, GraphFile, Leaf, graph_of
from generators.graphs import Case
from generators.ops import check
from generators.schema import SchemaError, converted, parsed


def dumps(case: Case) -> str:
    """The case as JSON text."""
    arrays = {
        name: base64.b64encode(np.ascontiguousarray(array).tobytes()).decode() for name, array in case.arrays.items()
    }
    return json.dumps({"graph": case.graph.to_json(), "arrays": arrays}, indent=1) + "\n"


class CaseFile(Struct, frozen=True, forbid_unknown_fields=True):
    """A case as files have it: arrays by leaf, their bytes in base64."""

    graph: GraphFile
    arrays: dict[str, str]


def loads(text: str) -> Case:
    """Read what `dumps` wrote. Raises GraphError, in one line, on anything that it does not understand."""
    try:
        file = converted(parsed(text), CaseFile)
    except SchemaError as error:
        raise GraphError(str(error)) from error
    graph = check(graph_of(file.graph))
    if odd := set(file.arrays) ^ {leaf.name for leaf in graph.leaves}:
        raise GraphError(f"$.arrays: {sorted(odd)[0]!r} is not both a leaf and an array")
    return Case(graph, {leaf.name: _array(leaf, file.arrays[leaf.name]) for leaf in graph.leaves})


def _array(leaf: Leaf, text: str) -> np.ndarray:
    where, dtype = f"leaf {leaf.name}: no array of {leaf.type} in the file", np.dtype(leaf.type.dtype)
    expected = leaf.type.size * dtype.itemsize
    if len(text) != -(-expected // 3) * 4:  # before anything is decoded
        raise GraphError(f"{where}: {len(text)} characters for {expected} bytes")
    try:
        raw = base64.b64decode(text, validate=True)
    except ValueError as error:
        raise GraphError(f"{where}: {error}") from error
    if len(raw) != expected:
        raise GraphError(f"{where}: {len(raw)} bytes, not {expected}")
    return np.frombuffer(raw, dtype).reshape(leaf.type.shape).copy()
