"""What each layer of an ONNX model adds to the error of a run whose values on the way have the model's names."""

import numpy as np
import onnx
from onnx import shape_inference
from onnx.reference import ReferenceEvaluator

from harness.models.helpers.onnx_noise import _floating, amplitudes, evaluated, last_uses, units_of, widened

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


def allowed_of(right, spread):
    """How far a result may be from its float64 value. spread: the root mean square of what moves it."""
    return LAYER * spread + 4 * 2.0**-24 * np.abs(right) + np.finfo(np.float32).tiny


def layer_errors(model, inputs, seen):
    """What each node of the model adds and shows: (name, operator, output, "", ""), (added, excess, shown); and of
    the first one that adds too much its name, inputs, float64 result and what is allowed.
    added: the greatest error of the output that a run gave, beside a float64 evaluation of the node on the inputs that
    the run gave it, by the output's greatest value; excess: the same by what rounding may do there; shown: beside an
    evaluation of everything before it. NaN: not judged, since the run does not show it. seen: the run's
    values by name; constants are the model's own."""
    units, evaluator = units_of(model), ReferenceEvaluator(widened(model))
    clean = started(evaluator, inputs)
    given = dict(clean)
    last, told, figures, case = last_uses(evaluator), [], [], None
    for place, node in enumerate(evaluator.rt_nodes_):
        outputs = evaluated(node, [clean[name] for name in node.input], clean)
        judged = [name for name in node.output if name in seen]
        known = all(name in given for name in node.input)
        worst = (np.nan, np.nan, np.nan)
        if judged and known:
            arguments = [given[name] for name in node.input]
            right = evaluated(node, arguments, given)
            sizes = amplitudes(node, arguments, right, given)
            found = []
            for name, y, size, exact in zip(node.output, right, sizes, outputs):
                if name in seen:
                    allowed = allowed_of(y, size * units.get(name, 2.0**-24) / np.sqrt(3))
                    found.append(errs(seen[name], y, allowed, exact))
                    if case is None and found[-1][1] > 1 and _floating(y):
                        shown = {**dict(zip(evaluator.input_names, inputs)), **seen}
                        case = (name, {n: shown[n] for n in dict.fromkeys(node.input) if n in shown}, y, allowed)
            worst = max(found, key=lambda one: one[1])
        told.append((node.onnx_node.name, node.op_type, (judged or [*node.output])[0], "", ""))
        figures.append(worst)
        clean.update(zip(node.output, outputs))
        for name, y in zip(node.output, outputs):
            if name in seen:
                given[name] = seen[name].astype(np.float64) if _floating(seen[name]) else seen[name]
            elif not isinstance(y, np.ndarray) or node.op_type == "Constant":
                given[name] = y
        for name in last.get(place, ()):
            clean.pop(name, None)
            given.pop(name, None)
    return told, np.array(figures, np.float64).reshape(-1, 3), case


def started(evaluator, inputs):
    """Inputs and constants by name."""
    wide = [array.astype(np.float64) if _floating(array) else array for array in inputs]
    return {"": None, **dict(zip(evaluator.input_names, wide)), **evaluator.rt_inits_}


def errs(got, right, allowed, clean):
    """(added, excess, shown) of one value."""
    if got.shape != right.shape:
        return np.inf, np.inf, np.inf
    if not _floating(right):
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
