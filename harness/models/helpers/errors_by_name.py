"""What each layer of an ONNX model adds to the error of a run of which it is known which value is which of the
model's."""

import numpy as np
import onnx
from onnx import shape_inference

from harness.models.helpers.same_values import same_values
from oracles.onnx.evaluate import single
from oracles.onnx.graph import used
from oracles.onnx.kinds import floating, widened
from oracles.onnx.model import read
from oracles.onnx.noise import sizes_of_noise

LAYER = 8.0
"""Standard deviations of a node's own noise that it may err by, given its inputs."""


def all_values(model):
    """The model with the result of every node as a further output, where that is a tensor."""
    model = shape_inference.infer_shapes(model)
    known = {item.name for item in model.graph.output}
    types = {item.name: item for item in model.graph.value_info}
    for name in [name for node in model.graph.node for name in node.output]:
        if name and name not in known and (name not in types or types[name].type.HasField("tensor_type")):
            model.graph.output.append(types.get(name) or onnx.ValueInfoProto(name=name))
    return model


def known_values(model, other, values):
    """(Values of a run of another model by this one's names, what the other one calls each of them), as far as graphs
    and names tell."""
    same = same_values(model, other)
    names = {name for node in model.graph.node for name in node.output} - {""}
    kept = names.intersection(values) - set(same) - set(same.values())
    twins = {**{name: twin for name, twin in same.items() if twin in values}, **{name: name for name in kept}}
    return {name: values[twin] for name, twin in twins.items()}, twins


def unsure(model, figures):
    """Names that are taken for those of other values: their maker adds more error than it may, no output has them, and
    no node that takes them adds as little as it may."""
    if not (figures[:, 1] > 1).any():
        return set()
    graph = read(model)
    good = {name for node, row in zip(graph.nodes, figures) if row[1] <= 1 for name in used(node)}
    wrong = [node for node, row in zip(graph.nodes, figures) if row[1] > 1]
    return {name for node in wrong for name in node.outputs if good.union(graph.outputs).isdisjoint(node.outputs)}


def sure_errors(model, inputs, seen, twins):
    """As `layer_errors`, without what `unsure` says; and the values that are left."""
    while True:
        found = layer_errors(model, inputs, seen, twins)
        doubtful = unsure(model, found[1]) & set(seen)
        if not doubtful:
            return *found, seen
        seen = {name: value for name, value in seen.items() if name not in doubtful}


def allowed_of(right, spread, kind=0):
    """How far a result may be from its float64 value. spread: the root mean square of what moves it; kind: its element
    type. Below the least normal number of that digits are lost."""
    tiny = 2.0**-14 if kind == onnx.TensorProto.FLOAT16 else np.finfo(np.float32).tiny
    return LAYER * spread + 4 * 2.0**-24 * np.abs(right) + tiny


def layer_errors(model, inputs, seen, guessed=()):
    """What each node of the model adds and shows: (name, operator, output, "", ""), (added, excess, shown); and of
    the first one that adds too much its name, inputs, float64 result and what is allowed.
    added: the greatest error of the output that a run gave, beside a float64 evaluation of the node on the inputs that
    the run gave it, by the output's greatest value; excess: the same by what rounding may do there; shown: beside an
    evaluation of everything before it. NaN: not judged, since the run does not show it. seen: the run's
    values by name; constants are the model's own; guessed: names that are not sure, since the run is of another file:
    a value of another shape is another one there."""
    graph = read(model)
    clean = started(graph, inputs)
    given = dict(clean)
    told, figures, case = [], [], None
    for node in graph.nodes:
        outputs = single(node, [clean[name] for name in node.inputs], clean)
        lost = [
            name
            for name, y in zip(node.outputs, outputs)
            if name in guessed and name in seen and np.shape(seen[name]) != np.shape(y)
        ]
        judged = [name for name in node.outputs if name in seen and name not in lost]
        known = all(name in given for name in used(node))
        worst, title = (np.nan, np.nan, np.nan), (judged or [*node.outputs])[0]
        if judged and known:
            arguments = [given[name] for name in node.inputs]
            right = single(node, arguments, given)
            sizes = sizes_of_noise(node, arguments, right, given, everywhere=True)
            found = []
            for name, y, size, exact, kind in zip(node.outputs, right, sizes, outputs, node.made):
                if name in judged:
                    allowed = allowed_of(y, size / np.sqrt(3), kind)
                    found.append(errs(seen[name], y, allowed, exact))
                    if case is None and found[-1][1] > 1 and floating(y):
                        shown = {**dict(zip(graph.inputs, inputs)), **seen}
                        case = (name, {n: shown[n] for n in dict.fromkeys(node.inputs) if n in shown}, y, allowed)
            worst, title = max(zip(found, judged), key=lambda one: one[0][1])
        told.append((node.name, node.operator, title, "", ""))
        figures.append(worst)
        clean.update((name, y) for name, y in zip(node.outputs, outputs) if name)
        for name, y in zip(node.outputs, outputs):
            if name in judged:
                given[name] = widened(seen[name])
            elif name and (not isinstance(y, np.ndarray) or node.operator == "Constant"):
                given[name] = y
        for name in node.last:
            clean.pop(name, None)
            given.pop(name, None)
    return told, np.array(figures, np.float64).reshape(-1, 3), case


def started(graph, inputs):
    """Inputs and constants by name."""
    return {"": None, **dict(zip(graph.inputs, map(widened, inputs))), **graph.constants}


def errs(got, right, allowed, clean):
    """(added, excess, shown) of one value."""
    if got.shape != right.shape:
        return np.inf, np.inf, np.inf
    if not floating(right):
        return (np.inf, np.inf, np.inf) if (got != right).any() else (0.0, 0.0, 0.0)
    got = got.astype(np.float64)
    with np.errstate(all="ignore"):
        top = np.max(np.abs(right), initial=1e-300, where=np.isfinite(right))

        def apart(other):
            same = (got == other) | (np.isnan(got) & np.isnan(other))
            return np.where(same, 0.0, np.nan_to_num(np.abs(got - other), nan=np.inf))

        error = apart(right)
        excess = np.max(np.where(error == 0, 0.0, error / allowed), initial=0.0)
        return np.max(error, initial=0.0) / top, excess, np.max(apart(clean), initial=0.0) / top
