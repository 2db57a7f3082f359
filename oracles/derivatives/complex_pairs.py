"""Complex values as pairs of real ones, for derivatives: a value of n complex numbers is one of 2 n real numbers, the
parts side by side in a last axis. Its dtype stays complex, and what the modulus may be off by stands beside both."""

from __future__ import annotations

import numpy as np

from generators.bounds.bounded import Bounded
from generators.graph import COMPONENT, TensorType

Array = np.ndarray


def parts_of(numbers: Array) -> Array:
    """Of complex numbers, the parts in a last axis; real numbers as they are."""
    if not np.iscomplexobj(numbers):
        return numbers
    return np.stack([np.real(numbers), np.imag(numbers)], axis=-1)


def numbers_of(parts: Array) -> Array:
    """Complex numbers of their parts, which may be infinite one by one."""
    return np.ascontiguousarray(parts, np.float64).view(np.complex128)[..., 0]


def paired(x: Bounded) -> Bounded:
    """A complex value as pairs; another one as it is."""
    return Bounded(parts_of(x.value), np.stack([x.error] * 2, -1), x.dtype, x.zero_sign) if x.complex else x


def exact(x: Bounded, value: Array) -> Bounded:
    """What stands for x in a reference: that value (pairs where x is complex) without any error."""
    value = numbers_of(value) if x.complex else value
    return Bounded(value, np.zeros(value.shape), x.dtype)


def bounded(value: Array, error: Array, type_: TensorType) -> Bounded:
    """A flat result and what each part of it may be off by, as a value of that type."""
    if type_.dtype not in COMPONENT:
        return Bounded(value.reshape(type_.shape), error.reshape(type_.shape), type_.dtype)
    shape = (*type_.shape, 2)
    return Bounded(numbers_of(value.reshape(shape)), np.hypot(*np.moveaxis(error.reshape(shape), -1, 0)), type_.dtype)


def sizes(x: Bounded) -> Array:
    """Magnitudes: of both parts of a pair, the modulus."""
    if not x.complex:
        return np.abs(x.value)
    return np.broadcast_to(np.linalg.norm(x.value, axis=-1, keepdims=True), x.value.shape)


def wild(x: Bounded) -> Array:
    """Elements that are not finite: of a pair both, where one part is not."""
    found = ~np.isfinite(x.value)
    return np.broadcast_to(found.any(-1, keepdims=True), found.shape) if x.complex else found
