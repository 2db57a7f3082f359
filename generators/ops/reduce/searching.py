"""Places among sorted boundaries: bucketize and searchsorted. NaN is undetermined."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from generators.bounds.bounded import PRECISION, Bounded, ends, exact
from generators.bounds.extremes import flushable
from generators.graph import INTEGERS, TensorType
from generators.ops.elementwise.scalars import with_scalar
from generators.ops.slots import MAX_ELEMENTS, draw_dim, flag, ints_of, numeric, within
from generators.ops.spec import Attrs, Call, Draw, OpSpec, Slot, TypeRuleError, Types

Array = np.ndarray

# ---- bucketize ----------------------------------------------------------------------------------------


def _boundaries(d: Draw, operands: Types, attrs: Attrs) -> tuple[int, ...]:
    boundaries = d.choice(((0,), (-1, 1), (-4, -1, 0, 2, 3), (-100, -2, 0, 0, 1, 4, 100), tuple(range(-8, 9))))
    return within(operands[0].dtype, boundaries) if operands[0].dtype in INTEGERS else boundaries


def _bucketize_type(operands: Types, attrs: Attrs) -> TensorType:
    boundaries = ints_of(attrs, "boundaries")
    if not boundaries or list(boundaries) != sorted(boundaries):
        raise TypeRuleError(f"boundaries {boundaries} do not rise")
    if operands[0].dtype in INTEGERS and within(operands[0].dtype, boundaries) != boundaries:
        raise TypeRuleError(f"boundaries {boundaries} are no {operands[0].dtype}")
    return TensorType("int64", operands[0].shape)


def _bucketize(args: Sequence[Bounded], call: Call) -> Bounded:
    """The number of boundaries below an element, with those equal to it if `right`: undetermined where its interval
    holds a boundary in its midst, and for NaN. A number that may be flushed is of the size of 0."""
    x = args[0]
    boundaries = np.asarray(ints_of(call.attrs, "boundaries"), x.value.dtype)
    side = "right" if call.attrs["right"] else "left"

    def found(array: Array) -> Array:
        return np.searchsorted(boundaries, array, side).astype(np.int64)

    if not x.floating:
        return exact(found(x.value), "int64", x.undetermined)
    low, high = ends(x)
    value = found(x.value)
    unknown = np.isnan(x.value) | x.undetermined | (found(low) != value) | (found(high) != value)
    unknown |= flushable(x) & (found(np.zeros_like(x.value)) != value)
    return exact(value, "int64", unknown)


def _bucketize_tensorflow(call: Call) -> str:
    """Its own operator counts those that are equal, too, and takes few dtypes."""
    if call.attrs["right"] and call.operands[0].dtype in ("float32", "float64", "int32", "int64"):
        boundaries = [float(b) for b in ints_of(call.attrs, "boundaries")]
        return f"tf.cast(tf.raw_ops.Bucketize(input={{0}}, boundaries={boundaries}), tf.int64)"
    return "bucketize({0}, {boundaries}, {right})"


bucketize = OpSpec(
    "bucketize", "sorting", (numeric(),), _bucketize_type, _bucketize,
    attrs={"boundaries": _boundaries, "right": flag()},
    torch="torch.bucketize({0}, torch.tensor({boundaries}, dtype={dtype0}, device={0}.device), right={right})",
    tensorflow=_bucketize_tensorflow,
    jax='jnp.searchsorted(jnp.array({boundaries}, {dtype0}), {0}, side="right" if {right} else "left")'
    ".astype(jnp.int64)",
    relax="relax.op.bucketize({0}, relax.const(np.array({boundaries}, {name0})), right={right})",
    onnx="bucketize(g, {0}, {rank0}, {boundaries}, {right}, {name0})",
)  # fmt: skip

# ---- searchsorted -------------------------------------------------------------------------------------


def _fresh_sequence(d: Draw, earlier: Types) -> TensorType:
    return TensorType(numeric().fresh(d, earlier).dtype, (draw_dim(d, 33, zero=False),))


def _fits_values(t: TensorType, earlier: Types) -> bool:
    return t.dtype == earlier[0].dtype and t.size * earlier[0].size <= 16 * MAX_ELEMENTS


def _fresh_values(d: Draw, earlier: Types) -> TensorType:
    return TensorType(earlier[0].dtype, tuple(draw_dim(d, 5) for _ in range(d.choice((1, 2, 0, 3)))))


def _searchsorted_type(operands: Types, attrs: Attrs) -> TensorType:
    sequence, values = operands
    if sequence.rank != 1 or sequence.size == 0 or not _fits_values(values, operands):
        raise TypeRuleError(f"no places of {values} in {sequence}")
    return TensorType("int64", values.shape)


def _flat(x: Bounded) -> Callable[[Array], Array]:
    """Subnormals may be read as zero."""
    if not x.floating:
        return lambda array: array
    return lambda array: np.where(np.abs(array) < PRECISION[x.dtype].tiny, 0.0, array)


def _searchsorted(args: Sequence[Bounded], call: Call) -> Bounded:
    """How many elements of the sequence, sorted first, are below a value, or equal to it if `right`: certain where
    every comparison is, flushed or not. NaN is undetermined on either side."""
    sequence, values = args
    a, b = sequence.value, values.value[..., None]
    compare = np.less_equal if call.attrs["right"] else np.less
    with np.errstate(invalid="ignore"):
        below = compare(a, b)
        unsure = compare(_flat(sequence)(a), _flat(values)(b)) != below
        if sequence.floating:
            room = sequence.error + values.error[..., None]
            unsure |= (room > 0) & ~(np.abs(a - b) > room)
            unsure |= np.isnan(a) | np.isnan(b)
        unsure |= sequence.undetermined | values.undetermined[..., None]
    return exact(np.asarray(np.sum(below, axis=-1, dtype=np.int64)), "int64", np.any(unsure, axis=-1))


searchsorted = OpSpec(
    "searchsorted", "statistics",
    (Slot(lambda t, e: numeric(1, 1, nonempty=True).accepts(t, e), _fresh_sequence), Slot(_fits_values, _fresh_values)),
    _searchsorted_type, _searchsorted, attrs={"right": flag()},
    torch="torch.searchsorted(torch.sort({0}).values, {1}, right={right})",
    tensorflow="searchsorted({0}, {1}, {right})",
    jax='jnp.searchsorted(jnp.sort({0}), {1}, side="right" if {right} else "left").astype(jnp.int64)',
    relax="relax.op.bucketize({1}, relax.op.sort({0}, 0, False), right={right})",
    onnx="searchsorted(g, {0}, {1}, {rank1}, {right})",
)  # fmt: skip

_NUMBERS = (0.1, 0.5, 2, -1, 0.0, 0.7, 3, -2.5)
"""Some that no dtype holds: beside them, a number that was rounded to a narrower dtype has another place."""
searchsorted_scalar = replace(
    with_scalar(searchsorted, 1, _NUMBERS, (1, 2, 0, 7, -1, -100, 2**31 - 1)),
    thresholds=tuple(float(number) for number in _NUMBERS),
)
"""The place of a number of the program."""

OPERATORS: tuple[OpSpec, ...] = (bucketize, searchsorted, searchsorted_scalar)
