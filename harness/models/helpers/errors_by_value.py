"""What each layer of an ONNX model adds to the error of a run whose values on the way have other names than the
model's, since a converter or compiler gave them others: they are told by what they are.

Each node is evaluated in float64 on the values that the run had, or where one is not found on what follows from those
before it, with noise. A value that is as this evaluation says was seen, and what leads to it is right. Where outputs
are wrong, the error begins with the first node that leads to nothing right. It ends there or with one of the nodes that
converters and compilers make one operator with it, the one that a value of the run resembles."""

import numpy as np

from harness.models.helpers.errors_by_name import allowed_of, errs, started
from oracles.onnx.evaluate import single
from oracles.onnx.kinds import floating, widened
from oracles.onnx.model import read
from oracles.onnx.noise import disturbed, sizes_of_noise

STATES = 4
"""Runs with noise, of what is evaluated because it was not seen."""
ALIKE = 0.5
"""Values resemble each other where the root mean square of their difference is at most this part of theirs."""
CLOSE = 0.01
"""The same, for what was inserted behind a node that is right."""
WRONG = 3
"""So many wrong layers at most are told apart."""
FUSED = {
    *(
        "Add",
        "BatchNormalization",
        "Clip",
        "Elu",
        "Gelu",
        "HardSigmoid",
        "HardSwish",
        "LeakyRelu",
        "Mul",
        "PRelu",
        "Relu",
    ),
    *("Reshape", "Selu", "Sigmoid", "Softplus", "Softsign", "Squeeze", "Tanh", "Transpose", "Unsqueeze"),
}
"""What converters and compilers make one operator with what comes before it."""


def layouts(array, shape):
    """All layouts in which a value may be another one."""
    found = []
    for moved in (array, *([np.moveaxis(array, -1, 1)] if array.ndim > 2 else ())):
        fits = moved.shape == tuple(shape) or [d for d in moved.shape if d != 1] == [d for d in shape if d != 1]
        if fits:
            found.append(moved.reshape(shape))
    return found


def distance(value, right):
    """Root mean square of the difference by that of the right value; infinite where it is not finite."""
    with np.errstate(all="ignore"):
        found = np.sqrt(np.mean((value - right) ** 2) / np.mean(right**2))
    return float(found) if np.isfinite(found) else np.inf


class Walk:
    """The model evaluated beside what a run shows. forced: what is taken to be the values of these names; wanted: names
    whose like is looked for among values whose places are not in owned. nodes: each with its (added, excess,
    shown); owned: places of values that are as they should be; right: by name of a value that was seen, is it right?;
    nearest: by wanted name (distance, place, value)."""

    def __init__(self, model, inputs, values, forced, wanted=(), owned=()):
        self.values, self.wanted, self.taken = values, wanted, set(owned)
        self.nodes, self.owned, self.floating, self.right, self.nearest = [], set(), set(), {}, {}
        self.means = [float(np.mean(array)) for _, array in values]
        graph = read(model)
        self.ends = graph.outputs
        given = started(graph, inputs)
        clean, states = dict(given), [{} for _ in range(STATES)]
        draw = np.random.default_rng(0)
        for node in graph.nodes:
            outputs = single(node, [clean[name] for name in node.inputs], clean)
            arguments = [given[name] for name in node.inputs]
            right = single(node, arguments, given)
            sizes = sizes_of_noise(node, arguments, right, given, everywhere=True)
            others = [right] * STATES
            if any(name in states[0] for name in node.inputs):
                others = [single(node, [s.get(n, given[n]) for n in node.inputs], given | s) for s in states]
            worst = (np.nan, np.nan, np.nan)
            for index, (name, y, size, exact, kind) in enumerate(zip(node.outputs, right, sizes, outputs, node.made)):
                if name:
                    given[name] = y
                if not name or not floating(y) or not arguments or (y.size < 2 and name not in forced):
                    continue
                self.floating.add(name)
                shifted = np.mean([(other[index] - y) ** 2 for other in others], axis=0)
                allowed = allowed_of(y, np.sqrt(size**2 / 3 + (shifted + np.mean(shifted)) / 2), kind)
                self.look(name, y)
                value = forced.get(name)
                value = self.found(y, allowed) if value is None else value
                if value is None or value.shape != y.shape:
                    for state, other in zip(states, others):
                        state[name] = disturbed(other[index], size, draw)
                    continue
                worst = errs(value, y, allowed, exact)
                self.right[name], given[name] = worst[1] <= 1, value
            self.nodes.append((node, worst))
            clean.update((name, y) for name, y in zip(node.outputs, outputs) if name)
            for name in node.last:
                for state in (clean, given, *states):
                    state.pop(name, None)

    def found(self, y, allowed):
        """The value of the run that is the right one, the last where there are several; none of them is another one."""
        near, last = float(np.mean(allowed)), None
        for place, (_, array) in enumerate(self.values):
            if array.size == y.size and abs(self.means[place] - float(np.mean(y))) <= near:
                for value in layouts(array, y.shape):
                    with np.errstate(all="ignore"):
                        if (np.abs(value - y) <= allowed).all():
                            self.owned.add(place)
                            last = value
        return last

    def look(self, name, y):
        """Keep what is most like a wanted value."""
        if name not in self.wanted:
            return
        for place, (_, array) in enumerate(self.values):
            if array.size == y.size and place not in self.taken:
                for value in layouts(array, y.shape):
                    apart = distance(value, y)
                    if apart < min(ALIKE, self.nearest.get(name, (np.inf,))[0]):
                        self.nearest[name] = (apart, place, value)

    def suspect(self, explained):
        """The first node that leads to nothing right; None where all outputs are right, or explained."""
        if all(self.right.get(name, True) for name in self.ends):
            return None
        good = {name for name, right in self.right.items() if right} | set(explained)
        for node, _ in reversed(self.nodes):
            if good.intersection(node.outputs):
                good.update(node.inputs)
        nodes = [node for node, _ in self.nodes if node.outputs[0] in self.floating]
        return next((node for node in nodes if not good.intersection(node.outputs)), None)

    def moved(self, name):
        """The value that this one only has another shape of."""
        while True:
            node = next((node for node, _ in self.nodes if name in node.outputs), None)
            if node is None or node.operator not in ("Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"):
                return name
            name = node.inputs[0]

    def fused(self, name):
        """This value's name and those of the next nodes that may be one operator with its own."""
        names = [name]
        while True:
            users = [node for node, _ in self.nodes if names[-1] in node.inputs]
            if len(users) != 1 or users[0].operator not in FUSED or names[-1] in self.right:
                return names
            names.append(users[0].outputs[0])


def aligned_errors(model, inputs, values, ends, known):
    """As `layer_errors`. values: (title, array) in the order in which the run computed them; ends: the run's outputs in
    the order of the model's; known: values that are told apart already, by the model's names. Told beside a layer's
    name, operator and output: where an error begins that it shows (empty: in itself), and the title of the value that
    it was taken from."""
    values = [
        (title, y) for title, y in ((title, widened(array)) for title, array in values) if floating(y) and y.size > 1
    ]
    ports = dict(zip([item.name for item in model.graph.output], ends))
    forced = {name: y for name, y in ((name, widened(y)) for name, y in {**known, **ports}.items()) if floating(y)}
    firsts, titles, lost = {}, {}, None
    walked = Walk(model, inputs, values, forced)
    while len(firsts) < WRONG and (begin := walked.suspect(firsts)):
        chain, before = (
            walked.fused(begin.outputs[0]),
            [n for n in begin.inputs if walked.right.get(n) and n not in firsts],
        )
        found = Walk(model, inputs, values, forced, [*before, *chain], walked.owned).nearest
        inserted = [name for name in before if name in found and found[name][0] < CLOSE]
        alike = [name for name in chain if name in found]
        if not inserted and not alike:
            lost = chain[-1]
            firsts[lost] = chain[0]
            break
        same = [name for name in alike if found[name][1] == found[alike[0]][1]]
        name = inserted[0] if inserted else min(same, key=lambda one: found[one][0])
        _, place, value = found[name]
        forced.setdefault(name, value)  # an output is what the run returned
        firsts[name], titles[name] = walked.moved(name) if inserted else chain[0], values[place][0]
        walked = Walk(model, inputs, values, forced)
    names = {output: node.name or output for node, _ in walked.nodes for output in node.outputs}
    told, figures = [], []
    for node, worst in walked.nodes:
        name = next((name for name in node.outputs if name in firsts), node.outputs[0])
        first = firsts.get(name, name)
        if name == lost and not worst[1] > 1:
            worst = (np.inf, np.inf, np.inf)
        told.append((node.name, node.operator, name, names[first] if first != name else "", titles.get(name, "")))
        figures.append(worst)
    return told, np.array(figures, np.float64).reshape(-1, 3), None
