"""Functions of complex numbers with bounds on the modulus of their error, by formulas of the parts.

Functions of one part are taken to be off by what section 7.4 of OpenCL C 3.0 allows: sine, cosine and hyperbolic ones
by 4 ulp, tangent and hyperbolic tangent by 5. None of these may overflow, or cancel, where the result does not: sinh of
a small number is not a difference of exponentials, and cosh of 89 is no infinity, though exp of it is."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from generators.bounds.bounded import PRECISION, Bounded
from generators.bounds.complex_values import LOGARITHM, QUOTIENT, ROOT, beyond, crosses_cut, flushed, reach, rounded

Array = np.ndarray

SINE = 17.0
"""sin a cosh b + i cos a sinh b: two functions of 4 ulp, one product: 2 (4 + 4) + 1."""
TANGENT = 55.0
"""(t + i h) / (1 - i t h), t = tan a, h = tanh b, each of 5 ulp: 10 u of the numerator; t h is off by 21 u, and the
denominator with it by 21 u and one more; 10 u for the quotient. By sines and cosines: 17 u twice, and the quotient. A
formula with sin 2a and cosh 2b, of 4 ulp, and a quotient of 2.5 ulp, is off by less."""
INVERSE_ROOT = ROOT + QUOTIENT + 2
"""The root, then a quotient: the terms of second order are less than the rest."""
NEAR_END = 0.99
"""Of the greatest number: up to there a hyperbolic cosine is demanded."""


def sine(x: Bounded) -> Bounded:
    """|sin(x + d) - sin x| <= |d| cosh(|im x| + |d|)."""
    return _circular(np.sin, x, np.imag(x.value))


def cosine(x: Bounded) -> Bounded:
    return _circular(np.cos, x, np.imag(x.value))


def hyperbolic_sine(x: Bounded) -> Bounded:
    """sinh x = -i sin(i x): the same, of the real part."""
    return _circular(np.sinh, x, np.real(x.value))


def hyperbolic_cosine(x: Bounded) -> Bounded:
    return _circular(np.cosh, x, np.real(x.value))


def _circular(f: Callable[[Array], Array], x: Bounded, growing: Array) -> Bounded:
    """growing: the part by which the modulus grows without end."""
    p = PRECISION[x.dtype]
    with np.errstate(all="ignore"):
        size = np.cosh(np.abs(growing) + x.error)
        loose = ~(size <= NEAR_END * p.largest) | ~np.isfinite(x.value)
        return rounded(f(np.where(loose, 0.0, x.value)), flushed(x) * size, x.dtype, SINE, loose, 4.0)


def tangent(x: Bounded) -> Bounded:
    """The derivative is 1 / cos^2, of which the cosine may be less by |d| cosh(|im x| + |d|). Far out it is i or -i;
    nothing is said of it where the square of a hyperbolic cosine overflows float64."""
    return _quotient(np.tan, np.cos, x, np.imag(x.value))


def hyperbolic_tangent(x: Bounded) -> Bounded:
    return _quotient(np.tanh, np.cosh, x, np.real(x.value))


def _quotient(f: Callable[[Array], Array], below: Callable[[Array], Array], x: Bounded, growing: Array) -> Bounded:
    p = PRECISION[x.dtype]
    with np.errstate(all="ignore"):
        size = np.cosh(np.abs(growing) + x.error)
        loose = ~np.isfinite(size**2) | ~np.isfinite(x.value)
        z = np.where(loose, 0.0, x.value)
        least = np.abs(below(z)) - flushed(x) * size
        # a pole: what is left of the cosine has to be more than its own rounding
        loose = loose | ~(least > 64 * p.unit * size)
        return rounded(f(z), flushed(x) / least**2, x.dtype, TANGENT, loose, 4.0)


def inverse_root(x: Bounded) -> Bounded:
    """1 / sqrt(x (1 + d)) is at most |d| / sqrt(|x|) away for |d| <= 1/2, but across the cut of negative numbers."""
    with np.errstate(all="ignore"):
        value = 1 / np.sqrt(x.value)
        off = flushed(x) / np.abs(x.value)
        loose = beyond(x) | crosses_cut(x) | ~(off <= 0.5)
        return rounded(np.where(loose, 0.0, value), np.abs(value) * off, x.dtype, INVERSE_ROOT, loose)


def power(x: Bounded, y: Bounded) -> Bounded:
    """exp(y log x): the logarithm and the product are off as `LOGARITHM` and sqrt 5 say, the exponential by 15 u and by
    what its argument is off. A finite number to the power of zero is 1, and 0 to a positive power 0; of 0 nothing
    else is said."""
    p = PRECISION[x.dtype]
    with np.errstate(all="ignore"):
        none = (y.value == 0) & (y.error == 0) & np.isfinite(x.value)
        nothing = (x.value == 0) & (x.error == 0)
        known = none | (nothing & (np.real(y.value) > 0) & (np.imag(y.value) == 0) & (y.error == 0))
        log = np.log(np.where(x.value == 0, 1.0, x.value))
        modulus, reals, angles = LOGARITHM
        steps = p.unit * (modulus + reals * np.abs(np.real(log)) + angles * np.abs(np.imag(log)))
        off = -np.log1p(-flushed(x) / np.abs(x.value)) + steps
        argument = y.value * log
        moved = reach(y) * off + flushed(y) * (np.abs(log) + off) + 3 * p.unit * np.abs(argument) + 4 * p.tiny
        value = np.exp(argument)
        size = np.exp(np.real(argument) + moved)
        loose = ~(size <= p.largest / 2) | ~(moved <= 1) | beyond(x) | crosses_cut(x) | ~np.isfinite(y.value)
        value = np.where(none, 1.0, np.where(nothing, 0.0, np.where(loose, 0.0, value)))
        error = np.where(known, 0.0, size * np.expm1(moved) + p.tiny)
        return rounded(value, error, x.dtype, 15.0, loose & ~known, 4.0)
