"""Do strides matter? The same values as contiguous arrays and as views of other memory, against one reference."""

from __future__ import annotations

from collections.abc import Mapping
from zlib import crc32

import numpy as np

from generators.graph import Graph
from generators.graphs import Case
from oracles.judge.compare import Expected
from oracles.questions import forward

NAME = "layouts"

LAYOUTS = ("transposed", "strided", "offset", "expanded", "reversed")
"""Column-major; every second element; one element after an aligned address, dimensions of one element with stride 0;
one row in place of all (stride 0); with negative strides, or channels last where there are none."""


def layouts(graph: Graph) -> dict[str, str]:
    """The layout of each leaf: by its name and where it is first used, so that reduction keeps it."""
    chosen: dict[str, str] = {}
    for node in graph.nodes:
        for position, name in enumerate(node.operands):
            chosen.setdefault(name, LAYOUTS[crc32(f"{name} {node.op} {position}".encode()) % len(LAYOUTS)])
    return {leaf.name: chosen.get(leaf.name, LAYOUTS[0]) for leaf in graph.leaves}


def arrays(case: Case) -> Mapping[str, np.ndarray]:
    """What the program is given: arrays that are to be expanded have one row in all places."""
    chosen = layouts(case.graph)
    return {
        name: np.ascontiguousarray(np.broadcast_to(array[:1], array.shape))
        if chosen[name] == "expanded" and array.ndim
        else array
        for name, array in case.arrays.items()
    }


def given(case: Case) -> Case:
    """The case of what the program is given."""
    return Case(case.graph, arrays(case))


def expect(case: Case) -> Expected:
    """Once for contiguous arrays, once for the views."""
    one = forward.expect(given(case))
    names = tuple(f"{name}_{how}" for how in ("contiguous", "viewed") for name in one.names)
    return Expected(names, one.types * 2, one.values * 2)
