"""Are faults found that are planted in one operator of a network of somebody else's, and is the operator named? Given
networks are ONNX files that are not kept here.
`PYTHONPATH=.:tests/meta python tests/meta/planted/networks.py FOLDER [OUT.csv]` prints a line a plant, and shares."""

from __future__ import annotations

import csv
import math
import os
import random
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx

from harness.conversions.edges import EDGES, Edge
from harness.models.examine import Examined, Options, examine
from harness.models.layer_errors import LayerErrors
from oracles.judge.compare import Expected
from oracles.onnx.evaluate import Step, run
from oracles.onnx.graph import Graph, used
from oracles.onnx.kinds import floating
from oracles.onnx.model import read
from oracles.training.sharding import excess

CONVERSION = (Path(__file__).parent / "programs" / "onnx_node_faults.py").read_text(encoding="utf-8")
EDGE, RUNNER = "planted", "ort-all"
SIZES = (1e-3, 1e-4, 1e-5)
"""Of what is planted, as a part of an operator's output."""
KINDS = ("scale", "offset", "scatter")
"""Of what has a size."""
OTHERS = ("epsilon", "axis", "rounding", "saturation")
"""Of what has none."""
MOVES = (
    *("Cast", "DepthToSpace", "Expand", "Flatten", "Gather", "Identity", "Pad", "Reshape", "Slice", "SpaceToDepth"),
    *("Split", "Squeeze", "Tile", "Transpose", "Unsqueeze"),
)
"""Operators that compute nothing: their results may be in the wrong places, but not off by a part of what they are."""
NORMALIZED = ("BatchNormalization", "LayerNormalization", "InstanceNormalization", "GroupNormalization")


@dataclass(frozen=True)
class Plant:
    """output: the name of the result that is made wrong; operator: that makes it; shape: its; kind: of KINDS, with a
    size, or of OTHERS, with 0; hidden: do all values on the way lose their names?"""

    output: str
    operator: str
    shape: tuple[int, ...]
    kind: str
    size: float = 0.0
    hidden: bool = False

    @property
    def edge(self) -> Edge:
        """A conversion that plants it."""
        settings = f"OUTPUT, KIND, SIZE = {self.output!r}, {self.kind!r}, {self.size!r}\n"
        settings += f"SHAPE, HIDDEN = {self.shape!r}, {self.hidden!r}\n"
        return Edge(EDGE, "onnx", "onnx", ("onnx",), {"onnx": "1.17"}, settings + CONVERSION)


@dataclass(frozen=True)
class Found:
    """What came of a plant. share: the greatest part of what is allowed by which it moves an output, exactly; got: that
    of the run; found: does the variant deviate, in outputs or a layer?; blamed: results of the operators that were
    named; why: none was looked for; right: was the right network said to be right, with all of its layers?"""

    network: str
    plant: Plant
    share: float
    got: float
    found: bool
    blamed: tuple[str, ...]
    why: str
    right: bool

    @property
    def reachable(self) -> bool:
        """Does it move a result by more than a correct evaluation may err? What does not cannot be told from that."""
        return self.share > 1

    @property
    def named(self) -> bool:
        return self.plant.output in self.blamed


@contextmanager
def planting(edge: Edge) -> Iterator[None]:
    """With that conversion."""
    EDGES[edge.name] = edge
    try:
        yield
    finally:
        del EDGES[edge.name]


def examined(path: Path, out: Path, shapes: Mapping[str, Sequence[int]], plant: Plant | None = None) -> Examined:
    """The command's own work on a network, and on what is planted in it."""
    if plant is None:
        return examine(Options(str(path), out, targets=RUNNER, shapes=shapes))
    with planting(plant.edge):
        return examine(Options(str(path), out, targets=RUNNER, shapes=shapes, depth=1, edges=EDGE))


def values_of(graph: Graph, inputs: Sequence[np.ndarray]) -> dict[str, tuple[str, tuple[int, ...]]]:
    """What may be made wrong: floating results of more than one element that some output depends on, computed from
    data, with their operators and shapes."""
    shapes: dict[str, tuple[int, ...]] = {}

    def look(step: Step) -> None:
        for name, y in zip(step.node.outputs, step.results[0], strict=False):
            if name and floating(y) and y.size > 1 and np.isfinite(y).any() and np.ptp(y[np.isfinite(y)]) > 0:
                shapes[name] = y.shape

    run(graph, inputs, 1, look)
    needed = set(graph.outputs)
    varying = set(graph.inputs)
    for node in graph.nodes:
        if used(node) & varying:
            varying.update(node.outputs)
    found: dict[str, tuple[str, tuple[int, ...]]] = {}
    for node in reversed(graph.nodes):
        if not needed.intersection(node.outputs):
            continue
        needed |= used(node)
        for name, made in zip(node.outputs, node.made, strict=True):
            if name in shapes and name in varying - node.exact and made in (0, onnx.TensorProto.FLOAT):
                found[name] = node.operator, shapes[name]
    return dict(reversed(found.items()))


def fits(kind: str, operator: str, shape: tuple[int, ...]) -> bool:
    """Can it be planted there?"""
    if kind == "epsilon":
        return operator in NORMALIZED
    if kind == "axis":
        return operator == "Concat" or any(size > 1 and shape.count(size) > 1 for size in shape)
    return operator not in (*MOVES, "Concat")


def plants(name: str, values: Mapping[str, tuple[str, tuple[int, ...]]], each: int) -> list[Plant]:
    """So many of each size, and one of each other kind that can be, drawn by the network's name; of every second one
    the names of values are lost."""
    drawn: list[Plant] = []
    wanted = [(KINDS[number % len(KINDS)], size) for size in SIZES for number in range(each)]
    for kind, size in [*wanted, *((kind, 0.0) for kind in OTHERS)]:
        fitting = [output for output, (operator, shape) in values.items() if fits(kind, operator, shape)]
        if not fitting:
            continue
        output = random.Random(f"{name} {kind} {size} {len(drawn)}").choice(fitting)
        drawn.append(Plant(output, *values[output], kind, size, hidden=len(drawn) % 2 == 1))
    return drawn


def share_of(path: Path, inputs: Sequence[np.ndarray], expected: Expected) -> float:
    """By how much of what is allowed a network's exact outputs are off."""
    try:
        outputs = run(read(onnx.load(path)), inputs)[0]
    except Exception:  # what cannot be evaluated is no network any more
        return math.inf
    shares = [0.0]
    for bound, y in zip(expected.values, outputs, strict=True):
        if not isinstance(y, np.ndarray) or y.shape != bound.value.shape:
            return math.inf
        if bound.floating:
            shares.append(excess(bound, y))
        elif ((y != bound.value) & ~bound.undetermined).any():
            return math.inf
    return max(shares)


def measured_plant(
    path: Path, out: Path, inputs: Sequence[np.ndarray], plant: Plant, shapes: Mapping[str, Sequence[int]]
) -> Found:
    """What comes of one. inputs: what the network is run on."""
    seen = examined(path, out, shapes, plant)
    right, wrong = seen.results.rows
    layers = {one.variant: one for one in seen.results.layers}
    looked, other = (layers.get(row.variant.name, LayerErrors("")) for row in (wrong, right))
    expected = seen.results.expected
    assert expected, seen.results.how
    return Found(
        path.stem,
        plant,
        share_of(wrong.variant.file.path, inputs, expected[0]),
        math.nan if wrong.ratio is None else wrong.ratio,
        wrong.deviates,
        tuple(layer.output for layer in looked.blamed),
        looked.why,
        not right.deviates and other.culprit is None,
    )


def measured(path: Path, out: Path, each: int, shapes: Mapping[str, Sequence[int]]) -> Iterator[Found]:
    """All plants of a network."""
    base = examined(path, out, shapes)
    (inputs,) = base.sets
    for plant in plants(path.stem, values_of(read(onnx.load(path)), inputs), each):
        yield measured_plant(path, out, inputs, plant, shapes)


HEADER = ("network", "kind", "size", "hidden", "operator", "output", "share", "got", "found", "named", "blamed", "why")


def row_of(one: Found) -> tuple:
    plant = one.plant
    told = (one.network, plant.kind, plant.size, plant.hidden, plant.operator, plant.output)
    return (*told, f"{one.share:.3g}", f"{one.got:.3g}", one.found, one.named, " ".join(one.blamed), one.why)


def told(found: Sequence[Found]) -> Iterator[str]:
    """Shares by size, and of the other kinds: of all, and of those that move a result by more than is allowed."""
    for size in (*SIZES, 0.0):
        these = [one for one in found if one.plant.size == size]
        reach = [one for one in these if one.reachable]
        hit = [one for one in reach if one.found]
        what = f"{size:g}" if size else ", ".join(OTHERS)
        whole = sum(one.found for one in these), sum(one.named for one in these)
        yield f"{what}: {len(these)} planted; {len(reach)} move an output by more than is allowed"
        yield f"  of these {len(hit)} found, {sum(one.named for one in hit)} named"
        yield f"  of all {whole[0]} found, {whole[1]} named"
    wrong = sorted({one.network for one in found if not one.right})
    yield f"false alarms: {', '.join(wrong) or 'none'}"


def main() -> None:
    """All networks of a folder."""
    folder, file = Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else None
    found: list[Found] = []
    with (file or Path(os.devnull)).open("w") as lines, tempfile.TemporaryDirectory() as scratch:
        writer = csv.writer(lines)
        writer.writerow(HEADER)
        for path in sorted(folder.glob("*.onnx")):
            for one in measured(path, Path(scratch) / path.stem, 2, {}):
                found.append(one)
                writer.writerow(row_of(one))
                lines.flush()
                print(*row_of(one)[:11], sep="\t", flush=True)
    print(*told(found), sep="\n")


if __name__ == "__main__":
    main()
