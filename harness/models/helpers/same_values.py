"""Which values of another ONNX model are the same as this one's, told by how they are computed: converters and
optimisers give values other names and leave most of the graph as it was."""

from collections import Counter
from hashlib import sha256

import onnx
from onnx import numpy_helper

from oracles.onnx.order import graphs, operands, sorted_nodes

ANCHOR = 8
"""Elements of a constant that tells a node from all others."""


class Values:
    """The values of a model's outermost graph. constants: digests by name; made: (node, place among its results) by
    name."""

    def __init__(self, model):
        self.graph = model.graph
        self.constants = {one.name: constant(one) for one in self.graph.initializer}
        self.nodes = [node for node in sorted_nodes(self.graph.node) if not self.constant(node)]
        self.made = {name: (node, place) for node in self.nodes for place, name in enumerate(node.output) if name}

    def constant(self, node):
        """Is it a node that makes a constant, which is kept?"""
        if node.op_type != "Constant" or len(node.attribute) != 1 or not node.attribute[0].HasField("t"):
            return False
        self.constants[node.output[0]] = constant(node.attribute[0].t)
        return True

    def anchors(self):
        """Nodes that no other one is like, by what they do and the large constants that they hold."""
        found = {}
        for node in self.nodes:
            held = tuple(self.constants.get(name, ("", 0)) for name in node.input)
            if any(size >= ANCHOR for _, size in held):
                found[node.output[0]] = (*kind(node), held)
        counts = Counter(found.values())
        return {key: name for name, key in found.items() if counts[key] == 1}

    def keys(self, leaves):
        """What each value is computed by, from leaves on. leaves: keys of values by name."""
        found = {"": "", **{name: digest for name, (digest, _) in self.constants.items()}, **leaves}
        for node in self.nodes:
            if all(name in found for name in node.input) and not any(graphs(node)):
                key = sha256(repr((kind(node), [found[name] for name in node.input])).encode()).hexdigest()
                for place, name in enumerate(node.output):
                    found.setdefault(name, f"{key} {place}")
        return found


def constant(tensor):
    """(digest, elements) of a tensor's contents."""
    array = numpy_helper.to_array(tensor)
    text = repr(array.tolist()).encode() if array.dtype == object else array.tobytes()
    return sha256(f"{tensor.data_type} {array.shape} ".encode() + text).hexdigest(), array.size


def kind(node):
    """What a node does with its inputs. Graphs inside are told by their operators: their values have other names."""
    plain = sorted(
        one.SerializeToString(deterministic=True) for one in node.attribute if one.type != onnx.AttributeProto.GRAPH
    )
    inside = [[inner.op_type for inner in graph.node] for graph in graphs(node)]
    return node.op_type, node.domain, tuple(plain), repr(inside), len(node.input), len(node.output)


def same_values(model, other):
    """Names of values of another model by this one's, of which each is one value. What has the same name is the same;
    so is what the same nodes make the same value of, from the outputs back, what nodes take that hold the same large
    constants and are the only ones, and, where nothing else is told by that, what is computed alike from the same
    values. What a node takes goes first: behind its maker something may be inserted."""
    ours, theirs = Values(model), Values(other)
    pairs, taken = {}, set()

    def pair(name, twin):
        if name and twin and name not in pairs and twin not in taken:
            pairs[name] = twin
            taken.add(twin)

    for side in ("input", "output"):
        known = {one.name for one in getattr(other.graph, side)}
        for one in getattr(model.graph, side):
            pair(one.name, one.name if one.name in known else "")
    for name in ours.made:
        pair(name, name if name in theirs.made else "")
    others = theirs.anchors()
    anchors = {name: others[key] for key, name in ours.anchors().items() if key in others}
    before = -1
    while len(pairs) > before:
        before = len(pairs)
        backwards(ours, theirs, pairs, pair, anchors)
        found = {key: name for name, key in theirs.keys({twin: f"same {name}" for name, twin in pairs.items()}).items()}
        for name, key in ours.keys({name: f"same {name}" for name in pairs}).items():
            if name in ours.made:
                pair(name, found.get(key, ""))
    return {name: twin for name, twin in pairs.items() if name in ours.made}


def backwards(ours, theirs, pairs, pair, anchors):
    """From values that are the same, and nodes that are, to what they are made of."""
    for node in reversed(ours.nodes):
        for place, name in enumerate(node.output):
            twin, at = theirs.made.get(pairs.get(name, ""), (None, None))
            if twin is None or at != place or kind(node) != kind(twin):
                twin = theirs.made[anchors[name]][0] if name in anchors else None
            if twin is None:
                continue
            sides = operands(node), operands(twin)
            held = [[one.constants.get(name) for name in side] for one, side in zip((ours, theirs), sides)]
            if held[0] == held[1]:
                for taken, like in zip(*sides):
                    if taken not in ours.constants:
                        pair(taken, like)
