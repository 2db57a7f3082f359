"""Cases as JSON: the graph and every array, so that a file alone replays a case."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping

import numpy as np

from generators.graph import Graph, GraphError
from generators.graphs import Case
from generators.ops import check


def dumps(case: Case) -> str:
    """The case as JSON text."""
    arrays = {
        name: base64.b64encode(np.ascontiguousarray(array).tobytes()).decode() for name, array in case.arrays.items()
    }
    return json.dumps({"graph": case.graph.to_json(), "arrays": arrays}, indent=1) + "\n"


def loads(text: str) -> Case:
    """Read what `dumps` wrote. Raises GraphError on anything that it does not understand."""
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise GraphError(f"not JSON: {error}") from error
    if not isinstance(data, Mapping) or set(data) != {"graph", "arrays"}:
        raise GraphError("a case has the keys graph and arrays")
    graph = check(Graph.from_json(data["graph"]))
    arrays = {}
    for leaf in graph.leaves:
        try:
            raw = base64.b64decode(data["arrays"][leaf.name], validate=True)
            array = np.frombuffer(raw, leaf.type.dtype).reshape(leaf.type.shape)
        except (KeyError, TypeError, ValueError, binascii.Error) as error:
            raise GraphError(f"leaf {leaf.name}: no array of {leaf.type} in the file ({error})") from error
        arrays[leaf.name] = array.copy()
    return Case(graph, arrays)
