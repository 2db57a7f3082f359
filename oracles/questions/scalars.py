"""Is a program right that was compiled once and is called with other numbers? Attributes that are numbers become
arguments of the model, which change from call to call; each call against the float64 reference with its numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from math import isfinite

from generators.graph import Graph, GraphError
from generators.graphs import Case, SeededDraw
from generators.ops import OPS, check
from generators.retype import retyped_graph
from oracles.judge.compare import Expected
from oracles.questions import forward

NAME = "scalars"
ORDER = (0, 1, 2, 0)
"""Which of its values each number has in each call: its own, which is compiled for, two others, its own again."""
MOST = 6
"""Numbers of a graph that are made arguments."""
_DRAWN = 40
"""Values that are looked at."""

Place = tuple[int, str]
"""Where a number is written: in which node, and as what attribute."""
Places = tuple[Place, ...]


@dataclass(frozen=True)
class Plan:
    """values: those of each number, by where it is written; graphs: of each call, with its numbers as attributes."""

    values: Mapping[Places, tuple[float, ...]]
    graphs: tuple[Graph, ...]

    @property
    def calls(self) -> list[tuple[float, ...]]:
        """The numbers of each call, in order."""
        return [tuple(values[which] for values in self.values.values()) for which in ORDER]


@lru_cache(maxsize=256)
def plan(graph: Graph) -> Plan | None:
    """The numbers among the attributes that may change while leaves stay as they are, the first ones; None where there
    is none. What is written twice is one number, where it can be."""
    equal: dict[str, list[Place]] = {}
    for index, node in enumerate(graph.nodes):
        for key, value in node.attributes.items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                equal.setdefault(repr(value), []).append((index, key))
    values: dict[Places, tuple[float, ...]] = {}
    graphs = (graph,) * len(set(ORDER))
    for places in equal.values():
        for some in (tuple(places), *((place,) for place in places if len(places) > 1)):
            found = _varied(graphs, some) if len(values) < MOST else None
            if found:
                graphs = found
                index, key = some[0]
                values[some] = tuple(one.nodes[index].attributes[key] for one in graphs)  # type: ignore[misc]
            if found and len(some) == len(places):
                break
    return Plan(values, tuple(graphs[which] for which in ORDER)) if values else None


def _varied(graphs: tuple[Graph, ...], places: Places) -> tuple[Graph, ...] | None:
    """The graphs with values of their own for a number, the first with the one that it has; None where there are too
    few."""
    lists = [_candidates(graphs[0], *place) for place in places]
    result, others = [graphs[0]], iter([value for value in lists[0][1:] if all(value in one for one in lists)])
    for graph in graphs[1:]:
        changed = (with_number(graph, places, value) for value in others)
        found = next((one for one in changed if one), None)
        if found is None:
            return None
        result.append(found)
    return tuple(result)


def _candidates(graph: Graph, index: int, key: str) -> list[float]:
    """The value of an attribute, and others that the operator's record draws for it, none twice: first the one that
    equals it but is another (0.0 and -0.0), which a guard by equality does not tell from it."""
    node = graph.nodes[index]
    rule, own = OPS[node.op].attrs.get(key), node.attributes[key]
    assert isinstance(own, int | float)
    found: list[float] = [own]
    met = {repr(own)}
    types = tuple(graph.types[operand] for operand in node.operands)
    for number in range(_DRAWN if rule else 0):
        value = rule(SeededDraw(f"{node.op}/{key}/{number}"), types, node.attributes) if rule else None
        if type(value) is type(own) and isinstance(value, int | float) and isfinite(value) and repr(value) not in met:
            met.add(repr(value))
            found.append(value)
    return sorted(found, key=lambda value: value != own)


def shared(graph: Graph) -> Graph:
    """The graph with one number in place of those of several nodes, where the records of all of them draw it and two
    others: what is used in several places is where compilers go wrong."""
    for kind in (float, int):
        places = [
            (index, key)
            for index, node in enumerate(graph.nodes)
            for key in [key for key, value in node.attributes.items() if type(value) is kind][:1]
        ]
        common: list[float] = []
        group: list[Place] = []
        for place in places:
            drawn = _candidates(graph, *place)
            both = [value for value in common if value in drawn] if group else drawn
            if len(both) >= len(set(ORDER)):
                common, group = both, [*group, place]
        for value in common if len(group) > 1 else ():
            changed = with_number(graph, tuple(group), value)
            if changed:
                graph = changed
                break
    return graph


def with_number(graph: Graph, places: Places, value: float) -> Graph | None:
    """The graph with another value of some attributes, types inferred anew; None where it is not valid, or would need
    other leaves."""
    nodes = list(graph.nodes)
    for index, key in places:
        attrs = tuple((name, value if name == key else old) for name, old in nodes[index].attrs)
        nodes[index] = replace(nodes[index], attrs=attrs)
    new = retyped_graph(Graph(graph.leaves, tuple(nodes), graph.outputs))
    if new is None or new.leaves != graph.leaves:
        return None
    try:
        return check(new)
    except GraphError:
        return None


def cases(case: Case) -> tuple[Case, ...]:
    """The case of each call."""
    found = plan(case.graph)
    return tuple(Case(graph, case.arrays) for graph in found.graphs) if found else (case,)


def part(case: Case, place: int) -> Case:
    """The case that this output is a result of."""
    return cases(case)[place // len(case.graph.outputs)]


def expect(case: Case) -> Expected:
    """The outputs of the first call, then those of the second, and so on. Where nothing can change, nothing is run,
    and what is expected is the forward question's answer."""
    calls = cases(case)
    if len(calls) == 1:
        return forward.expect(case)
    runs = [forward.expect(one) for one in calls]
    return Expected(
        tuple(f"{name}_of_call_{number}" for number, run in enumerate(runs) for name in run.names),
        tuple(type_ for run in runs for type_ in run.types),
        tuple(value for run in runs for value in run.values),
    )
