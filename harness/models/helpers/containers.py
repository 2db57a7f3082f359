"""Sequences, maps and texts that a model returns, as named arrays."""

import numpy as np


def numbers(values):
    """Values of a map as an array. ONNX Runtime gives those of float32, which alone ONNX' maps have, as Python's."""
    return np.array(values, np.float32 if any(type(value) is float for value in values) else None)


def spread(name, value):
    """[(name, array), ...] of one output: of a sequence each element, of a map its keys in order and their values; a
    sequence of maps with the same keys is one map with a row each."""
    if value is None:
        return [(f"{name} (nothing)", np.zeros(0))]
    if isinstance(value, dict):
        keys = sorted(value)
        return [(f"{name}.keys", np.array(keys)), (f"{name}.values", numbers([value[key] for key in keys]))]
    if isinstance(value, (list, tuple)):
        if value and all(isinstance(one, dict) and one.keys() == value[0].keys() for one in value):
            keys = sorted(value[0])
            rows = numbers([one[key] for one in value for key in keys]).reshape(len(value), len(keys))
            return [(f"{name}.keys", np.array(keys)), (f"{name}.values", rows)]
        return [pair for place, one in enumerate(value) for pair in spread(f"{name}[{place}]", one)]
    array = np.asarray(value)
    return [(name, array.astype(str) if array.dtype.kind in "OS" else array)]


def spread_noisy(name, exact, noisy, beside):
    """The same of a value and of runs with noise: [(name, exact, noisy along a new first axis), ...]. beside: what
    stands for the element of a run that has another one, or none."""
    runs = [dict(spread(name, one)) for one in noisy]
    found = []
    for title, y in spread(name, exact):
        others = [one.get(title) for one in runs]
        if y.dtype.kind == "U":  # other text than is expected
            lost = np.char.add(y, "?")
            others = [lost if one is None or one.shape != y.shape or one.dtype.kind != "U" else one for one in others]
        else:
            others = [beside(y, one) for one in others]
        found.append((title, y, np.stack(others)))
    return found
