"""Which elements of an operand move which results: by what changes, not by how steeply."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

import numpy as np

from generators.bounds.bounded import Bounded
from oracles.derivatives.jacobians.finite_differences import STEP, Function

Array = np.ndarray
HALVES = 16
"""So many random halves of the elements are moved: two of three are in one without the third in a fourth of these."""
SHORT = 0.125
"""A step on which no staircase of whole numbers looks like a slope."""
FAR = 200.0
"""A long step, in steps: what it does not move does not depend on the element."""


def confirmed(
    f: Function, values: Sequence[Array], position: int, x: Bounded, base: Array, source: Array, least: float = 0.0
) -> Array | None:
    """The sources, with those of results that move too little for a slope to be told; None where a result moves with
    another element than its source, or with several. Elements whose number has a certain bit are moved by one and
    the same amount, up and down (of 3 and -3 the one that is greatest without its sign), then the others: any two
    elements differ in some bit. The steps before, which follow the size of the elements, may hide one that is small
    beside the source. least: steps are as long at least."""
    size = np.abs(x.value[np.isfinite(x.value)])
    step = max(STEP * max(float(np.max(size, initial=0.0)), 1.0), least)
    numbers = np.arange(x.value.size)
    told = np.zeros(base.size, int)
    moving = np.full(base.size, x.value.size > 1)

    def there(by: Array) -> Array:
        return f([*values[:position], x.value + by, *values[position + 1 :]]) != base

    for bit in range(int(x.value.size - 1).bit_length() if x.value.size else 0):
        without, with_it = (
            (there(step * chosen) | there(-step * chosen)) & np.isfinite(base)
            for chosen in (((numbers >> bit) & 1 == side).reshape(x.value.shape) for side in (0, 1))
        )
        if (without & with_it).any() or ((source >= 0) & np.where((source >> bit) & 1, without, with_it)).any():
            return None
        told += with_it << bit
        moving &= without | with_it
    source = np.where((source < 0) & moving, told, source)
    if np.unique(x.value, return_counts=True)[1].max(initial=0) > 2:
        # of three equal ones, that in the middle moves with any two: not with those that leave its source out
        rng = np.random.default_rng(x.value.size)
        for _ in range(HALVES):
            chosen = rng.integers(0, 2, x.value.shape)
            if (there(step * chosen) & np.isfinite(base) & (source >= 0) & (chosen.ravel()[source] == 0)).any():
                return None
    return source


def pattern(operand: tuple[int, ...], result: tuple[int, ...], source: Array) -> Array | None:
    """The same elements, or those of the operand broadcast: where that agrees with all sources that are known."""
    known = source >= 0
    numbers = np.arange(int(np.prod(operand)))
    candidates = [numbers] if numbers.size == source.size else []
    with suppress(ValueError):
        candidates.append(np.broadcast_to(numbers.reshape(operand), result).ravel())
    for candidate in candidates:
        if np.array_equal(candidate[known], source[known]):
            return candidate
    return None


def lost_to_others(operands: Sequence[Bounded], position: int, result: Bounded) -> Array:
    """Results that are not determined where another operand is not: what stands there in its place (0, say, for one of
    two weights) may hide which elements of this one move them."""
    open_there = any(o.undetermined.any() for k, o in enumerate(operands) if k != position and o.floating)
    return result.undetermined.ravel() if open_there else np.zeros(result.value.size, bool)


def seen_elsewhere(f: Function, operands: Sequence[Bounded], position: int, source: Array, rows: Array) -> Array:
    """Of results that are not determined here: which are at random points, where they depend on their source only?
    The others, such as what is written to one place twice or what is added up, may depend on anything."""
    found = ~rows
    for at in elsewhere(operands) if rows.any() else ():
        if found.all():
            break
        base = f(at)
        found |= np.isfinite(base) & ~_moved_by_others(f, at, position, base, source)
    return found


def _moved_by_others(f: Function, at: Sequence[Array], position: int, base: Array, source: Array) -> Array:
    """Which results a NaN reaches from elsewhere than their source: it takes the place of all elements whose number has
    a certain bit, then of the others."""
    x = at[position]
    numbers, moved = np.arange(x.size), np.zeros(base.size, bool)
    for bit in range(int(x.size - 1).bit_length()):
        for side in (0, 1):
            gone = ((numbers >> bit) & 1 == side).reshape(x.shape)
            there = f([*at[:position], np.where(gone, np.nan, x), *at[position + 1 :]])
            moved |= (there != base) & ~gone.ravel()[source]
    return moved


def fed(f: Function, operands: Sequence[Bounded], position: int, known: Array, reach: Array) -> tuple[Array, Array]:
    """Which elements feed results that are not finite, as (element, result), and of which of these it cannot be told.
    Seen elsewhere, where a result that a NaN or a long step in an element reaches may depend on it. reach: of
    `reach_of`; elements that reach nothing in common are moved at once."""
    fed = np.zeros(reach.shape, bool)
    unclear = ~known
    if known.all():
        return fed, unclear
    groups = groups_of(reach & ~known)
    for values in elsewhere(operands):
        base = f(values)
        seen = ~known & np.isfinite(base)
        if not seen.any():
            continue
        for members in groups:
            for other in (np.nan, FAR):
                moved = list(values)
                moved[position] = values[position].copy()
                moved[position].flat[members] = other
                fed[members] |= seen & (f(moved) != base) & reach[members]
        unclear = unclear & ~seen
    return fed, unclear


def elsewhere(operands: Sequence[Bounded]) -> Iterator[list[Array]]:
    """Numbers in the domain of nearly every function, and their negatives, which take the other branch (prelu)."""
    rng = np.random.default_rng(sum(o.value.size for o in operands))
    for low, high in ((0.25, 0.75), (-0.75, -0.25), (1.25, 1.75)):
        yield [rng.uniform(low, high, o.value.shape) if o.floating else o.value for o in operands]


def groups_of(touched: Array) -> list[list[int]]:
    """Columns sorted greedily into groups whose members touch no row in common."""
    groups: list[tuple[list[int], Array]] = []
    for j, row in enumerate(touched):
        if not row.any():
            continue
        for members, taken in groups if not row.all() else ():
            if not (taken & row).any():
                members.append(j)
                taken |= row
                break
        else:
            groups.append(([j], row.copy()))
    return [members for members, _ in groups]


def reach_of(f: Function, operands: Sequence[Bounded], position: int, far: float, base: Array) -> Array:
    """Which results each element may move, as (element, result): all, but where an axis of the operand keeps them
    apart, as that of a batch does. No result is moved both from places along such an axis whose number has a certain
    bit and from the others: by NaN, or by long steps of random length and sign, here (what is finite) or elsewhere.
    far: the length of such a step here."""
    shape, count = operands[position].value.shape, operands[position].value.size
    reach = np.ones((count, base.size), bool)
    axes = [axis for axis, size in enumerate(shape) if 1 < size < count]
    if not axes:
        return reach
    rng = np.random.default_rng(count)
    points = [([o.value for o in operands], base, far)]
    for values in elsewhere(operands):
        points.append((values, f(values), FAR))
        if np.isfinite(base).all():
            break  # one is enough where nothing is open here
    steps = [far * rng.uniform(0.5, 1.5, shape) * rng.choice([-1.0, 1.0], shape) for _, _, far in points]

    def moved(row: Array) -> Array:
        found = np.zeros(base.size, bool)
        for (values, at, _), step in zip(points, steps, strict=True):
            for by in (np.nan, step, -step):
                there = [*values[:position], np.where(row, values[position] + by, values[position])]
                found |= np.isfinite(at) & (f([*there, *values[position + 1 :]]) != at)
        return found

    for axis in axes:
        place = np.indices(shape)[axis]
        source, reached = np.zeros(base.size, int), np.zeros(base.size, bool)
        for bit in range((shape[axis] - 1).bit_length()):
            without, with_it = (moved((place >> bit) & 1 == side) for side in (0, 1))
            if (without & with_it).any():
                break
            source += with_it << bit
            reached |= without | with_it
        else:
            reach &= reached & (source == place.ravel()[:, None])
    return reach
