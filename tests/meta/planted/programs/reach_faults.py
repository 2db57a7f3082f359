"""Results and gradients that are slightly wrong, or wrong at few elements: written once for any `Space`. Read as text;
a program carries the source of those it uses."""

import numpy as np


def off(F, y, by):
    """Every element by a factor."""
    return y * F.constant(by, y)


def off_between(F, y, x, low, high, by):
    """Where |x| lies between two numbers."""
    size = F.abs(x)
    inside = (size > F.constant(low, x)) & (F.constant(high, x) > size)
    return F.where(inside, y * F.constant(by, y), y)


def off_behind(F, y, lanes, by):
    """What is left of a row after full vectors."""
    length = y.shape[-1] if len(y.shape) else 1
    if not isinstance(length, int) or length <= lanes or length % lanes == 0:
        return y
    factor = np.ones(length)
    factor[length // lanes * lanes :] = by
    return y * F.constant(factor, y)


def off_beside_one(F, y, by):
    """Where a dimension is 1 and another is not."""
    sizes = [n for n in y.shape if isinstance(n, int)]
    return y * F.constant(by, y) if 1 in sizes and max(sizes) > 1 else y


def turned(F, y, x, number, instead):
    """Another result for one number."""
    return F.where(F.equal(x, F.constant(number, x)), F.constant(instead, y), y)


def nan_lost(F, y, x, instead):
    """A number where x is NaN. A compiler may take x = x for true."""
    return F.where(F.abs(x) > F.constant(-1.0, x), y, F.constant(instead, y))


def gradient_off(F, y, held, by):
    """A right result whose gradient is multiplied by a factor. held: what stops gradients."""
    return y - moved_only(F, y, held, by - 1)


def gradient_off_between(F, y, x, held, low, high, by):
    """The gradient by a factor where |x| lies between two numbers."""
    size = F.abs(held(x))
    inside = (size > F.constant(low, x)) & (F.constant(high, x) > size)
    return F.where(inside, y - moved_only(F, y, held, by - 1), y)


def gradient_off_beside_one(F, y, held, by):
    """The gradient by a factor where a dimension is 1 and another is not."""
    return gradient_off(F, y, held, by) if off_beside_one(F, y, 2.0) is not y else y


def gradient_off_at(F, y, x, held, number, by):
    """The gradient by a factor where x is a number."""
    return F.where(F.equal(held(x), F.constant(number, x)), y - moved_only(F, y, held, by - 1), y)


def gradient_off_at_ties(F, y, x, other, held, by):
    """The gradient by a factor where both operands are equal."""
    return F.where(F.equal(held(x), held(other)), y - moved_only(F, y, held, by - 1), y)


def moved_only(F, y, held, by):
    """Zero, whose gradient is -by."""
    finite = F.where(F.constant(1e30, y) > F.abs(y), y, F.constant(0.0, y)) * F.constant(by, y)
    return held(finite) - finite
