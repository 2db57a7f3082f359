"""Which values are exact: those that make only sizes and choices (shapes, axes, indices, trip counts, conditions) and
are not computed from data.

Rounding does not disturb them: a network's shapes do not depend on noise, and where they are computed in floats, as the
sizes of a Resize are, every run computes them in the model's own dtype: they are rounded to it node by node, which for
+, -, *, / and square roots of float32 and narrower is the IEEE result (float64 has more than twice the digits).

A value that is used as a number as well is disturbed for both uses. As an index or a condition each run follows its own
value, since a correct run rounds there and may choose otherwise: noise that decides leaves what follows undetermined.
As a size all runs take the exact run's, since runs of different shapes cannot be compared. The same holds for what is
computed from data, which are floating inputs of rank 2 and more: a network whose class is used as an index still
rounds."""

from __future__ import annotations

from collections.abc import Iterator

from oracles.onnx.graph import Graph, Node

SIZES: dict[str, tuple[int, ...]] = {
    "AffineGrid": (1,),
    "BlackmanWindow": (0,),
    "CenterCropPad": (1,),
    "Col2Im": (1, 2),
    "ConstantOfShape": (0,),
    "CumProd": (1,),
    "CumSum": (1,),
    "DFT": (1, 2),
    "Expand": (1,),
    "HammingWindow": (0,),
    "HannWindow": (0,),
    "Loop": (0,),
    "MaxUnpool": (2,),
    "MelWeightMatrix": (0, 1, 2),
    "NonMaxSuppression": (2,),
    "OneHot": (1,),
    "Pad": (1, 3),
    "Range": (0, 1, 2),
    "Reshape": (1,),
    "Resize": (2, 3),
    "STFT": (1, 3),
    "Slice": (1, 2, 3, 4),
    "Split": (1,),
    "SplitToSequence": (1,),
    "Squeeze": (1,),
    "Tile": (1, 2),
    "TopK": (1,),
    "Trilu": (1,),
    "Unsqueeze": (1,),
    "Upsample": (1,),
}
"""By operator, the inputs whose numbers decide a shape; axes are among them."""
CHOICES: dict[str, tuple[int, ...]] = {
    "Compress": (1,),
    "Dropout": (1, 2),
    "GRU": (4,),
    "Gather": (1,),
    "GatherElements": (1,),
    "GatherND": (1,),
    "If": (0,),
    "LSTM": (4,),
    "Loop": (1,),
    "MaxUnpool": (1,),
    "NonMaxSuppression": (3, 4),
    "OneHot": (0,),
    "RNN": (4,),
    "Resize": (1,),
    "ReverseSequence": (1,),
    "RoiAlign": (2,),
    "Scatter": (1,),
    "ScatterElements": (1,),
    "ScatterND": (1,),
    "SequenceAt": (1,),
    "SequenceErase": (1,),
    "SequenceInsert": (2,),
    "TensorScatter": (2,),
}
"""By operator, the inputs whose numbers choose elements, graphs or thresholds."""
UNREAD: dict[str, tuple[int, ...]] = {
    "EyeLike": (0,),
    "RandomNormalLike": (0,),
    "RandomUniformLike": (0,),
    "Shape": (0,),
    "Size": (0,),
}
"""By operator, the inputs whose numbers are not read."""
CONTROL_FLOW = ("If", "Loop", "Scan")


def sizes_of(node: Node) -> tuple[int, ...]:
    """Places of the inputs that decide a shape."""
    if node.operator.startswith("Reduce"):
        return (1,)
    if node.operator == "Scan" and node.version < 9:
        return (0,)
    return SIZES.get(node.operator, ())


def _nodes(graph: Graph) -> Iterator[Node]:
    for node in graph.nodes:
        yield node
        for body in node.bodies.values():
            yield from _nodes(body)


def _graphs(graph: Graph) -> Iterator[Graph]:
    yield graph
    for node in graph.nodes:
        for body in node.bodies.values():
            yield from _graphs(body)


def _pairs(node: Node) -> Iterator[tuple[str, str]]:
    """(from, to): a value that becomes another one where it enters or leaves a graph inside. Where one place may become
    one of several, all of them."""
    offset = 1 if node.operator == "Scan" and node.version < 9 else 0
    given = node.inputs[offset:] if node.operator != "Loop" else node.inputs[2:]
    for body in node.bodies.values():
        results = body.outputs[1:] if node.operator == "Loop" else body.outputs
        yield from zip(results, node.outputs, strict=False)
        if node.operator != "If":
            taken = body.inputs[2:] if node.operator == "Loop" else body.inputs
            states = len(taken) - int(node.attributes.get("num_scan_inputs", 0))
            yield from zip(given, taken, strict=False)
            yield from zip(given[:states], node.outputs, strict=False)
            yield from zip(results[:states], taken, strict=False)


def _uses(graph: Graph) -> dict[str, list[str]]:
    """By value, the values that are made with its numbers; "" stands for a use that needs them as they are. A name in
    two graphs stands for both."""
    uses: dict[str, list[str]] = {name: [""] for name in graph.outputs}
    for node in _nodes(graph):
        steered = {*sizes_of(node), *CHOICES.get(node.operator, ()), *UNREAD.get(node.operator, ())}
        for before, after in _pairs(node):
            if after:
                uses.setdefault(before, []).append(after)
        for place, name in enumerate(node.inputs):
            if name and place not in steered and not node.bodies:
                uses.setdefault(name, []).extend([made for made in node.outputs if made])
    return uses


def _from_data(graph: Graph) -> set[str]:
    """Values that are computed from data."""
    found = set(graph.data)
    while True:
        before = len(found)
        for node in _nodes(graph):
            unread = UNREAD.get(node.operator, ())
            read = {name for place, name in enumerate(node.inputs) if place not in unread}
            if node.bodies:
                for start, end in _pairs(node):
                    if start in found:
                        found.add(end)
                if node.inputs and node.inputs[0] in found and node.operator == "If":
                    found.update(node.outputs)
            elif read & found:
                found.update(name for name in node.outputs if name)
        if len(found) == before:
            return found


def exact_values(graph: Graph) -> frozenset[str]:
    """Names of the values that are never disturbed."""
    uses, data = _uses(graph), _from_data(graph)
    made = {name for node in _nodes(graph) for name in node.outputs if name}
    made.update(name for one in _graphs(graph) for name in one.inputs)
    candidates = made - data
    while True:
        kept = {name for name in candidates if all(use in candidates for use in uses.get(name, ()))}
        if kept == candidates:
            return frozenset(kept)
        candidates = kept
