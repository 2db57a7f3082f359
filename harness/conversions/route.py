"""A route: how a drawn graph gets from a dialect by way of conversions to a runner. It is a target like any other, so
that judging, blame, reduction, known issues and reproducers work on it."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from harness.backends import TARGETS, probe
from harness.backends.target.target import Level, Target
from harness.backends.target.text import swapped
from harness.conversions.edges import EDGES, Edge
from harness.conversions.formats import FORMATS, RUNNERS, Format, Runner, runners_of
from harness.conversions.formats.format import Writer

LONGEST = 3
"""So many edges a drawn route has at most."""

ORDERED = '''
def ordered(ports, names):
    """The names in the order in which the model has what they name: by name, as most tools leave it; where names are
    lost, by the numbers that TensorFlow gives in their place, where outputs that are inputs or constants may have
    none, and all may be sorted as text (10 before 2); else as they are, since other tools keep the order."""
    import re

    plain = [name for name, _, _ in ports]
    if len(set(plain)) == len(plain) and set(plain) <= set(names):
        return plain
    found = [re.sub(r"^serving_default_|:0$|(?<=^out)0+(?=[0-9])", "", name) for name, _, _ in ports]
    if len(set(found)) == len(found) and set(found) <= set(names):
        return found
    if len(found) != len(names):
        raise ValueError(f"the model has {', '.join(found) or 'nothing'} in place of {', '.join(names)}")
    numbered = r"(?:Stateful)?PartitionedCall(?:_[0-9]+)?:([0-9]+)|(?:in|out|output_)([0-9]+)|Identity(?:_([0-9]+))?"
    matches = [re.fullmatch(numbered, name) or re.fullmatch(numbered, port[0]) for name, port in zip(found, ports)]
    numbers = [int(next(filter(None, match.groups()), 0)) if match else -1 for match in matches]
    known = [number for number in numbers if number >= 0]
    left = [number for number in range(len(names)) if number not in known]
    if len(known) + len(left) > len(names):  # one twice, or one too many
        return names
    as_text = sorted(known) != known == sorted(known, key=str)
    rest = iter(sorted(left, key=str) if as_text else left)
    return [names[number if number >= 0 else next(rest)] for number in numbers]
'''
"""How the inputs and outputs of a converted model are told apart."""

_STEPS = """
def load(parameters):
    import os
    import shutil
    import tempfile

    folder = tempfile.mkdtemp(prefix="conversion-")
    step = "write"
    try:
        write(parameters, os.path.join(folder, FILES[0]))
        for (step, convert), source, target in zip(STEPS, FILES, FILES[1:]):
            convert(os.path.join(folder, source), os.path.join(folder, target))
        step = "open"
        inputs, outputs, call = open_model(os.path.join(folder, FILES[-1]))
        taken, wanted = ordered(inputs, list(INPUTS)), [f"out{i}" for i in range(len(OUTPUTS))]
        given = ordered(outputs, wanted) if len(outputs) == len(wanted) else None
    except Exception as error:
        error.add_note(f"in step {step}")
        raise
    finally:
        shutil.rmtree(folder)

    def run(*arrays):
        arrays = dict(zip(INPUTS, arrays))
        try:
            results = call(*[arrays[name] for name in taken])
        except Exception as error:
            error.add_note("in step run")
            raise
        return [results[given.index(name)] for name in wanted] if given else results  # too few or too many

    return run
"""
"""What follows `write`, `convert_1`, … and `open_model` in the program of a route."""


@dataclass(frozen=True)
class Route:
    """writer: that the graph is written by, a dialect's usual one by the dialect's name; edges: one after the other;
    runner: of the last file"""

    writer: str
    edges: tuple[Edge, ...]
    runner: Runner

    @property
    def name(self) -> str:
        """e.g. torch/torch-onnx/ort-all"""
        return "/".join((self.writer, *(edge.name for edge in self.edges), self.runner.name))

    @property
    def formats(self) -> tuple[Format, ...]:
        """Those of the files, in order."""
        return (written(self.writer), *(FORMATS[edge.target] for edge in self.edges))

    @property
    def source(self) -> Route:
        """The same without its last edge, run by the usual runner of the format before."""
        return Route(self.writer, self.edges[:-1], runners_of(self.formats[-2].name)[0])

    @property
    def others(self) -> list[Route]:
        """The same up to the last file, run by the other runners of it."""
        return [
            Route(self.writer, self.edges, runner)
            for runner in runners_of(self.formats[-1].name)
            if runner is not self.runner
        ]


def written(writer: str) -> Format:
    """The format that a writer of this name writes."""
    return _WRITTEN[writer][0]


def writer_of(route: Route) -> Writer:
    """By which its first file is written."""
    return _WRITTEN[route.writer][1]


_WRITTEN: dict[str, tuple[Format, Writer]] = {}
"""By name of a writer; by that of a dialect the first that its graphs are written by."""
for _format in FORMATS.values():
    for _writer in _format.writers:
        _WRITTEN.setdefault(_writer.name or _writer.dialect.name, (_format, _writer))


def _text(route: Route) -> str:
    """The `load` of a route's programs."""
    files = [f"{i}{one.suffix}" for i, one in enumerate(route.formats)]
    steps = ", ".join(f"({edge.name!r}, convert_{i})" for i, edge in enumerate(route.edges, 1))
    parts = [
        f"TRUST = {any(one.executes for one in route.formats)}",  # these files are our own
        writer_of(route).write,
        *(swapped(edge.convert, ("def convert(", f"def convert_{i}(")) for i, edge in enumerate(route.edges, 1)),
        route.runner.open,
        f"FILES = {files!r}\nSTEPS = [{steps}]",
        ORDERED,
        _STEPS,
    ]
    return "\n\n\n".join(part.strip("\n") for part in parts)


@cache
def target_of(name: str) -> Target:
    """The target of a route by its name; the same object each time. Raises KeyError where there is no such route."""
    writer_name, *edges, runner = name.split("/")
    route = Route(writer_name, tuple(EDGES[edge] for edge in edges), RUNNERS[runner])
    writer = writer_of(route)
    parts = [*reversed(route.edges), route.runner]
    packages = {package: least for part in parts for package, least in part.packages.items()}
    compiled = [name for edge in route.edges for name in edge.inherits]
    direct = next((one for name in route.runner.inherits if (one := TARGETS[name]).dialect is writer.dialect), None)
    modules = dict.fromkeys([*writer.modules, *(module for part in parts for module in part.modules)])
    return Target(
        name,
        # a worker for each last tool: findings are told apart by it, and what it breaks stays there
        edges[-1] if edges else route.runner.name,
        tuple(modules),
        writer.dialect,
        _text(route),
        {**packages, **{k: v for k, v in writer.packages.items() if k not in packages}},
        Level(name, 0),
        sample_every=16,
        refuses={
            ("*", dtype): f"{one} computes it as {narrow}, as it documents"
            for one, narrows in ((writer.dialect.name, writer.narrows), (route.runner.name, route.runner.narrows))
            for dtype, narrow in narrows.items()
        }
        | dict(direct.refuses if direct else {}),
        refusals_file=direct.refusals_file if direct else "",  # what is refused without a file is refused with one
        environment=next((edge.environment for edge in route.edges if edge.environment), ""),
        opt_in=True,
        inherits=(
            *writer.inherits,
            *compiled,
            *route.runner.inherits,
            *_like(writer, (*edges, runner)),
            *_by_parts(route),
        ),
    )


def _like(writer: Writer, way: Sequence[str]) -> tuple[str, ...]:
    """The name of the route that differs in how its first file is written, where there is one."""
    return ("/".join((writer.like, *way)),) if writer.like else ()


def _by_parts(route: Route) -> tuple[str, ...]:
    """The names of the routes that have one part of an edge in its place."""
    names = [edge.name for edge in route.edges]
    return tuple(
        "/".join((route.writer, *names[:place], part, *names[place + 1 :], route.runner.name))
        for place, edge in enumerate(route.edges)
        for part in edge.parts
    )


def route_of(target: Target) -> Route:
    """The route that a target stands for."""
    writer, *edges, runner = target.name.split("/")
    return Route(writer, tuple(EDGES[edge] for edge in edges), RUNNERS[runner])


def availability(edge: Edge) -> tuple[str | None, str | None]:
    """The version of an edge's tool (None: not installed), and why it is not usable here, or None."""
    found, reason = probe.installed(edge.packages, edge.environment)
    return found.get(edge.tool), reason


def edges_from(format_: str) -> list[Edge]:
    """Edges that lead away from a format."""
    return [edge for edge in EDGES.values() if edge.source == format_]


def routes(longest: int = LONGEST) -> Iterator[Route]:
    """All routes of at most so many edges, with the usual runner at the end; the shorter ones first. At most one edge
    of a route stays within a format: there are too many others."""
    ends = [(writer, ()) for writer in _WRITTEN]
    for _ in range(longest + 1):
        for writer, edges in ends:
            last = edges[-1].target if edges else written(writer).name
            yield Route(writer, edges, runners_of(last)[0])
        ends = [
            (writer, (*edges, edge))
            for writer, edges in ends
            for edge in edges_from(edges[-1].target if edges else written(writer).name)
            if edge.source != edge.target or all(other.source != other.target for other in edges)
        ]


@cache
def listed() -> tuple[str, ...]:
    """Names of all routes that a person may ask for: with every runner of the last file; the shorter ones first."""
    return tuple(name for route in routes() for name in (route.name, *(other.name for other in route.others)))


class Routes(Mapping[str, Target]):
    """Every route that a person may ask for, by name. Each is made when it is asked for: there are thousands, and most
    commands ask for none."""

    def __getitem__(self, name: str) -> Target:
        if name not in _names():
            raise KeyError(name)
        return target_of(name)

    def __iter__(self) -> Iterator[str]:
        return iter(listed())

    def __len__(self) -> int:
        return len(listed())


@cache
def _names() -> frozenset[str]:
    return frozenset(listed())


def shortest(edge: Edge) -> Route | None:
    """The shortest route that ends with an edge; None where no dialect's files get there."""
    return next((route for route in routes() if route.edges and route.edges[-1] is edge), None)


def planned(named: bool = False) -> list[Route]:
    """What a plan asks: the shortest route by each edge, what is written otherwise than usual, alone and by each edge
    from there, and each form, and each optimiser, in front of each tool that takes it further; of edges that are usable
    here. named: with those edges and writers that are asked only where a route is named."""
    usable = [edge for edge in EDGES.values() if availability(edge)[1] is None and (named or not edge.on_request)]
    found = [route for edge in usable if (route := shortest(edge))]
    written_otherwise = (name for name, (_, one) in _WRITTEN.items() if one.like and (named or not one.on_request))
    for name in written_otherwise:
        ways = [(), *((edge,) for edge in usable if edge.source == written(name).name)]
        found += [Route(name, way, runners_of(way[-1].target if way else written(name).name)[0]) for way in ways]
    for form in (edge for edge in usable if edge.form or edge.optimises):
        ends = (edge for edge in usable if edge.source == form.target != edge.target)
        ways = [(edge, route) for edge in ends if (route := shortest(form))]
        found += [Route(route.writer, (*route.edges, edge), runners_of(edge.target)[0]) for edge, route in ways]
    return found


def draw_route(rng: random.Random, here: Sequence[Edge], longest: int = LONGEST) -> Route:
    """A route of one to `longest` edges, of those that are usable here; fewer where none leads on."""
    usual = [name for name, (_, writer) in _WRITTEN.items() if not writer.on_request]
    writer = rng.choice([name for name in usual if any(edge.source == written(name).name for edge in here)])
    format_, edges = written(writer).name, []
    for _ in range(rng.randint(1, longest)):
        ways = [edge for edge in here if edge.source == format_]
        if not ways:
            break
        edges.append(rng.choice(ways))
        format_ = edges[-1].target
    return Route(writer, tuple(edges), rng.choice(runners_of(format_)))
