"""Sequences, maps and texts that a model returns, as named arrays."""

import numpy as np


def spread(name, value):
    """[(name, array), ...] of one output: of a sequence each element, of a map its keys in order and their values; a
    sequence of maps with the same keys is one map with a row each."""
    if value is None:
        return [(f"{name} (nothing)", np.zeros(0))]
    if isinstance(value, dict):
        keys = sorted(value)
        return [(f"{name}.keys", np.array(keys)), (f"{name}.values", np.array([value[key] for key in keys]))]
    if isinstance(value, (list, tuple)):
        if value and all(isinstance(one, dict) and one.keys() == value[0].keys() for one in value):
            keys = sorted(value[0])
            rows = np.array([[one[key] for key in keys] for one in value])
            return [(f"{name}.keys", np.array(keys)), (f"{name}.values", rows)]
        return [pair for place, one in enumerate(value) for pair in spread(f"{name}[{place}]", one)]
    array = np.asarray(value)
    return [(name, array.astype(str) if array.dtype.kind in "OS" else array)]


def spread_noisy(name, exact, noisy, sequence):
    """The same of a value and of runs with noise along a new first axis: [(name, exact, noisy), ...]. sequence: is it
    one, whose elements stand along the first axis?"""

    def plain(value):
        array = np.asarray(value)
        if array.dtype.kind == "O" and array.ndim == 0:
            return array.item()
        return list(array) if sequence else array

    found = [spread(name, plain(one)) for one in (exact, *noisy)]
    if any([title for title, _ in one] != [title for title, _ in found[0]] for one in found):
        raise ValueError(f"noise changes how many elements {name} has")
    return [(title, y, np.stack([one[place][1] for one in found[1:]])) for place, (title, y) in enumerate(found[0])]
