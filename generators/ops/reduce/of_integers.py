"""Reductions of whole numbers to whole ones: norms, sums of squares, means and logarithms, of which what is behind the
point is cut off, as a cast of ONNX does."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from generators.bounds.bounded import Bounded, exact
from generators.ops.reduce.records import along, count, onnx_reduction, reducible, reduction
from generators.ops.spec import Call, Reference, Spelling, Unsupported, unsupported

Array = np.ndarray

DTYPES = ("int32", "int64")
_WHOLE = 2.0**24
"""Below it float32 holds every whole number."""
_SLACK = 2.0**-20
"""Of a root or a logarithm in float32, which is off by 3 ulp, of a number that is off by 1/2 ulp."""


def _total(f: Callable[[Array], Array]) -> Reference:
    """A sum of f, elementwise. Undetermined where it does not fit: it may wrap, or be cut off."""

    def reference(args: Sequence[Bounded], call: Call) -> Bounded:
        x = args[0]
        with np.errstate(all="ignore"):
            total = along(np.sum, call)(f(x.value.astype(np.int64)))
            size = along(np.sum, call)(np.abs(f(x.value.astype(np.float64))))
            loose = size >= float(np.iinfo(x.dtype).max)
        return exact(np.where(loose, 0, total), x.dtype, loose | along(np.any, call)(x.undetermined))

    return reference


def _mean(args: Sequence[Bounded], call: Call) -> Bounded:
    """A mean lies between its numbers: where a sum of 32 bits wraps, one of 64 bits, or of float64, does not.
    Undetermined where one of 64 bits may."""
    x, n = args[0], count(call)
    size = along(np.sum, call)(np.abs(x.value.astype(np.float64)))
    total = along(np.sum, call)(x.value.astype(np.int64))
    wraps = size >= float(np.iinfo(np.int64).max)
    with np.errstate(over="ignore"):  # of what wraps
        value = np.sign(total) * (np.abs(total) // n)
    return exact(value.astype(x.dtype), x.dtype, wraps | along(np.any, call)(x.undetermined))


def _cut(f: Callable[[Array], Array], terms: Callable[[Array], Array], open_end: float) -> Reference:
    """f of the sum of `terms`, in float32 at least, towards zero. Undetermined where the sum does not fit, where a
    rounding may reach the next whole number, and where what is cut off is not below `open_end`."""

    def reference(args: Sequence[Bounded], call: Call) -> Bounded:
        x = args[0]
        with np.errstate(all="ignore"):
            parts = terms(x.value.astype(np.float64))
            total, size = along(np.sum, call)(parts), along(np.sum, call)(np.abs(parts))
            value = np.asarray(f(total))
            off = _SLACK * (1 + np.abs(value))
            whole = (np.rint(value) == value) & (size < _WHOLE)
            loose = ~(np.trunc(value - off) == np.trunc(value + off)) & ~whole
            loose |= ~np.isfinite(value) | (size >= float(np.iinfo(x.dtype).max))
            loose |= ~(np.abs(value - np.trunc(value)) + off < open_end) & ~whole
        return exact(np.trunc(np.where(loose, 0.0, value)), x.dtype, loose | along(np.any, call)(x.undetermined))

    return reference


def _log_sum_exp(args: Sequence[Bounded], call: Call) -> Bounded:
    """The sum is rounded: that of 2,048 terms is off by less than 2^-41, and so is its logarithm. No whole number is
    certain."""
    x = args[0]
    with np.errstate(all="ignore"):
        wide = x.value.astype(np.float64)
        value = np.asarray(np.log(along(np.sum, call)(np.exp(wide))))
        off = 4 * 2.0**-40 * (1 + np.abs(value))
        loose = ~np.isfinite(value) | ~(np.trunc(value - off) == np.trunc(value + off))
    return exact(
        np.trunc(np.where(np.isfinite(value), value, 0.0)), x.dtype, loose | along(np.any, call)(x.undetermined)
    )


_NONE = unsupported("it has no such reduction of whole numbers")
_SAME, _RELAX = "axis={axes}, keepdims={keepdims}", "axis=list({axes}), keepdims={keepdims}"


def _of_something(kind: str) -> Spelling:
    def spell(call: Call) -> str | Unsupported:
        return onnx_reduction(kind) if count(call) else Unsupported("ONNX leaves it open of an empty set")

    return spell


OPERATORS = (
    reduction(
        "l1_norm_of_integers", reducible(DTYPES), _total(np.abs), empty=False,
        torch="torch.sum(torch.abs({0}), dim={axes}, keepdim={keepdims}, dtype={dtype})",
        tensorflow=f"tf.reduce_sum(tf.abs({{0}}), {_SAME})",
        jax=f"jnp.sum(jnp.abs({{0}}), {_SAME}, dtype={{dtype}})",
        relax=f"relax.op.sum(relax.op.abs({{0}}), {_RELAX})", onnx=_of_something("ReduceL1"),
    ),
    reduction(
        "sum_of_squares_of_integers", reducible(DTYPES), _total(lambda v: v * v), empty=False,
        torch="torch.sum(torch.square({0}), dim={axes}, keepdim={keepdims}, dtype={dtype})",
        tensorflow=f"tf.reduce_sum(tf.square({{0}}), {_SAME})",
        jax=f"jnp.sum(jnp.square({{0}}), {_SAME}, dtype={{dtype}})",
        relax=f"relax.op.sum(relax.op.square({{0}}), {_RELAX})", onnx=_of_something("ReduceSumSquare"),
    ),
    reduction(
        "mean_of_integers", reducible(DTYPES), _mean, empty=False,
        torch=_NONE, tensorflow=f"tf.reduce_mean({{0}}, {_SAME})", jax=_NONE, relax=_NONE,
        onnx=_of_something("ReduceMean"),
    ),
    reduction(
        "l2_norm_of_integers", reducible(DTYPES), _cut(np.sqrt, np.square, 1.0), empty=False,
        torch=_NONE, tensorflow=_NONE, jax=_NONE, relax=_NONE, onnx=_of_something("ReduceL2"),
    ),
    reduction(
        "log_sum_of_integers", reducible(DTYPES), _cut(np.log, lambda v: v, 0.5), empty=False,
        torch=_NONE, tensorflow=_NONE, jax=_NONE, relax=_NONE, onnx=_of_something("ReduceLogSum"),
    ),
    reduction(
        "logsumexp_of_integers", reducible(DTYPES), _log_sum_exp, empty=False,
        torch=_NONE, tensorflow=_NONE, jax=_NONE, relax=_NONE, onnx=_of_something("ReduceLogSumExp"),
    ),
)  # fmt: skip
