"""Arrays as source text, in the words of each framework, that give the same bits back."""

from __future__ import annotations

import numpy as np

MOST = 128
"""Elements of an input that is written out."""


class NoProgramError(ValueError):
    """No short program can be had; the message is one line that says why."""


MAKERS = {
    "torch": ("torch.tensor({values}, dtype=torch.{dtype})", "torch.zeros({shape}, dtype=torch.{dtype})"),
    "tensorflow": ("tf.constant({values}, tf.{dtype})", "tf.zeros({shape}, tf.{dtype})"),
    "jax": ('jnp.array({values}, "{dtype}")', 'jnp.zeros({shape}, "{dtype}")'),
    "keras": ('keras.ops.convert_to_tensor({values}, "{dtype}")', 'keras.ops.zeros({shape}, "{dtype}")'),
    "numpy": ('np.array({values}, "{dtype}")', 'np.zeros({shape}, "{dtype}")'),
}
"""By framework: an array from nested lists, and one that has no elements or zeros only."""


def literal(array: np.ndarray, maker: str) -> str:
    """An expression that makes the array. maker: a key of MAKERS. Raises NoProgramError."""
    dtype = str(array.dtype)
    if array.size > MOST:
        raise NoProgramError(f"an input has {array.size} elements, and at most {MOST} are written out")
    if array.dtype.kind == "c" and not np.isfinite(array).all():
        raise NoProgramError("complex numbers with an infinite or NaN part have no literal")
    if maker == "numpy" and dtype == "bfloat16":
        raise NoProgramError("numpy has no bfloat16 of its own")
    values, zeros = MAKERS[maker]
    if not array.size or (not array.any() and array.size > 1 and not np.signbit(np.real(array)).any()):
        return zeros.format(shape=array.shape, dtype=dtype)
    return values.format(values=numbers(array), dtype=dtype)


def numbers(array: np.ndarray) -> str:
    """Nested lists of the shortest numbers that round to the elements."""
    if array.ndim:
        return "[" + ", ".join(numbers(part) for part in array) + "]"
    return number(array[()])


def number(value: object) -> str:
    """One number, with `nan` and `inf` for what is no number."""
    if isinstance(value, np.bool_ | bool):
        return str(bool(value))
    if isinstance(value, np.integer | int):
        return str(int(value))
    if isinstance(value, np.complexfloating | complex):
        parts = (float(np.real(value)), float(np.imag(value)))
        # the literal of a sum has no negative zeros in it
        return f"complex{parts}" if any(x == 0 and np.signbit(x) for x in parts) else repr(complex(value))
    text = str(value)
    return text if any(mark in text for mark in ".einf") else f"{text}.0"
