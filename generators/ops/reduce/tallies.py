"""Counts and sums of counts as TensorFlow has them: histograms that count what lies outside in the outer bins, sums of
weights, the n-th element, numbers of distinct elements in the order in which they come, sums of several tensors."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from generators.bounds.bounded import PRECISION, Bounded, exact
from generators.bounds.sums import summed
from generators.graph import INTEGERS, TensorType
from generators.ops.composed import compute, stacked
from generators.ops.index.scatter import summed_at
from generators.ops.reduce.reductions import mean
from generators.ops.reduce.sorting import kth_value, topk
from generators.ops.slots import (
    CLASSES,
    NUMBERS,
    draw_dim,
    flag,
    floating,
    index_slot,
    int_of,
    like,
    numeric,
    one_of,
    same_as,
    tensor,
)
from generators.ops.spec import Attrs, Call, Draw, OpSpec, Slot, TypeRuleError, Types, Unsupported, only, unsupported

Array = np.ndarray

_WHY = unsupported("it has no such operator")

# ---- histograms ---------------------------------------------------------------------------------------

LIMITS = (-2.0, 2.0)


def _fixed_type(operands: Types, attrs: Attrs) -> TensorType:
    bins = int_of(attrs, "bins")
    if bins not in (1, 2, 4, 8) or operands[0].dtype not in ("float32", "float64"):
        raise TypeRuleError(f"no histogram of {operands[0]} in {bins} bins")
    return TensorType("int32", (bins,))


def _fixed(args: Sequence[Bounded], call: Call) -> Bounded:
    """floor((x - low) / (high - low) bins), in the bins: undetermined where an element is too near an edge and not on
    it; all are where one is NaN, or so large that the quotient is no int32."""
    x, bins = args[0], int_of(call.attrs, "bins")
    edges = np.linspace(*LIMITS, bins + 1)[1:-1]
    value = x.value.ravel()
    with np.errstate(all="ignore"):
        places = np.clip(np.floor((np.clip(value, -4, 4) - LIMITS[0]) / 4 * bins), 0, bins - 1)
        counts = np.bincount(places[~np.isnan(places)].astype(np.int64), minlength=bins)
        distance = np.abs(value[:, None] - edges)
        error = x.error.reshape(-1, 1)
        room = error + 8 * PRECISION[x.dtype].unit * (np.abs(value[:, None]) + 2)
        close = np.any((distance <= room) & ~((distance == 0) & (error == 0)), axis=0)
    near = np.zeros(bins, bool)
    near[:-1] |= close
    near[1:] |= close
    wild = bool((~(np.abs(value) < 2**24) | x.undetermined.ravel()).any())
    return exact(counts, "int32", near | wild)


histogram_fixed_width = OpSpec(
    "histogram_fixed_width", "statistics", (tensor(("float32", "float64"), 1, 3),), _fixed_type, _fixed,
    attrs={"bins": one_of(4, 1, 2, 8)}, torch=_WHY,
    tensorflow="tf.raw_ops.HistogramFixedWidth(values={0}, value_range=tf.constant([-2.0, 2.0], {dtype0}), "
    "nbins={bins})", jax=_WHY, relax=_WHY, onnx=_WHY,
)  # fmt: skip

# ---- sums of weights ----------------------------------------------------------------------------------

_WEIGHTS = ("float32", "float64", "int32", "int64")


def _accepts_weights(type_: TensorType, earlier: Types) -> bool:
    return type_.dtype in _WEIGHTS and type_.shape == earlier[0].shape


def _weighted_type(operands: Types, attrs: Attrs) -> TensorType:
    size = int_of(attrs, "size")
    if not _accepts_weights(operands[1], operands) or operands[0].rank != 1 or size < 1:
        raise TypeRuleError(f"no {size} sums of {operands[1]}")
    return TensorType(operands[1].dtype, (size,))


def _weighted(args: Sequence[Bounded], call: Call) -> Bounded:
    """Numbers beyond the last count nowhere."""
    places, weights = args[0].value, args[1]
    kept = places < call.result.shape[0]
    dtype = np.float64 if weights.floating else weights.dtype
    nothing = Bounded(np.zeros(call.result.shape, dtype), np.zeros(call.result.shape), weights.dtype)
    return summed_at(nothing, weights.map(lambda a: a[kept]), (places[kept],))


def _fresh_weights(d: Draw, earlier: Types) -> TensorType:
    return TensorType(d.dtype if d.dtype in _WEIGHTS else d.choice(_WEIGHTS), earlier[0].shape)


weighted_bincount = OpSpec(
    "weighted_bincount", "statistics",
    (index_slot(1, 1, lambda earlier: (0, CLASSES - 1), ("int32",)), Slot(_accepts_weights, _fresh_weights)),
    _weighted_type, _weighted, attrs={"size": lambda d, operands, attrs: d.choice((CLASSES, 2, 9))},
    torch=only(("float32", "float64"), "it adds whole weights up in float64",
               "torch.bincount({0}, {1}, minlength={size})[:{size}].to({dtype})", 1),
    tensorflow="tf.raw_ops.Bincount(arr={0}, size={size}, weights={1})",
    jax="jnp.bincount({0}, {1}, length={size})", relax=_WHY, onnx=_WHY,
)  # fmt: skip

# ---- the n-th element ---------------------------------------------------------------------------------


def _nth_type(operands: Types, attrs: Attrs) -> TensorType:
    if operands[0].rank < 1 or not 0 <= int_of(attrs, "n") < operands[0].shape[-1]:
        raise TypeRuleError(f"{operands[0]} has no element {attrs['n']}")
    return TensorType(operands[0].dtype, operands[0].shape[:-1])


def _nth(args: Sequence[Bounded], call: Call) -> Bounded:
    """Nothing is said of rows with NaN."""
    x, n = args[0], int_of(call.attrs, "n")
    count = x.value.shape[-1]
    found = compute(kth_value, x, axis=-1, k=count - n if call.attrs["reverse"] else n + 1)
    if not x.floating:
        return found
    return Bounded(found.value, np.where(np.isnan(x.value).any(-1), np.inf, found.error), found.dtype)


def _place(d: Draw, operands: Types, attrs: Attrs) -> int:
    n = operands[0].shape[-1]
    return d.choice((0, n // 2, n - 1))


def _partitioned(call: Call) -> str:
    """From the front by the elements, from the end by their places."""
    n, size = int_of(call.attrs, "n"), call.operands[0].shape[-1]
    if not call.attrs["reverse"]:
        return f"jnp.partition({{0}}, {n}, axis=-1)[..., {n}]"
    at = size - 1 - n
    return f"jnp.take_along_axis({{0}}, jnp.argpartition({{0}}, {at}, axis=-1), axis=-1)[..., {at}]"


nth_element = OpSpec(
    "nth_element", "sorting", (numeric(min_rank=1, nonempty=True),), _nth_type, _nth,
    attrs={"n": _place, "reverse": flag()}, torch=_WHY,
    tensorflow="tf.raw_ops.NthElement(input={0}, n={n}, reverse={reverse})", jax=_partitioned, relax=_WHY, onnx=_WHY,
)  # fmt: skip

# ---- the best, where the approximate one is exact -----------------------------------------------------


def _approximate_type(operands: Types, attrs: Attrs) -> TensorType:
    k = int_of(attrs, "k")
    if operands[0].rank < 1 or not 1 <= k <= operands[0].shape[-1]:
        raise TypeRuleError(f"{operands[0]} has no {k} best")
    return TensorType(operands[0].dtype, (*operands[0].shape[:-1], k))


def _approximate(args: Sequence[Bounded], call: Call) -> Bounded:
    """All that are asked for are found: with a recall of 1, and with rows shorter than a partition."""
    found = compute(topk, args[0], axis=-1, k=int_of(call.attrs, "k"), largest=bool(call.attrs["largest"]))
    loose = np.isnan(args[0].value).any(-1, keepdims=True)
    return Bounded(found.value, np.where(loose, np.inf, found.error), found.dtype)


approximate_topk = OpSpec(
    "approximate_topk", "sorting", (tensor(("float32",), min_rank=1, nonempty=True),), _approximate_type, _approximate,
    attrs={"k": lambda d, operands, attrs: d.choice((1, operands[0].shape[-1], (operands[0].shape[-1] + 1) // 2)),
           "largest": flag()}, torch=_WHY,
    tensorflow="tf.raw_ops.ApproxTopK(input={0}, k={k}, recall_target=1.0, is_max_k={largest})[0]",
    jax=lambda call: "jax.lax.approx_%s_k({0}, {k}, recall_target=1.0)[0]".replace(
        "%s", "max" if call.attrs["largest"] else "min"),
    relax=_WHY, onnx=_WHY,
)  # fmt: skip

# ---- distinct elements in the order in which they come ------------------------------------------------


def _first_type(operands: Types, attrs: Attrs) -> TensorType:
    if operands[0].rank != 1 or operands[0].dtype not in INTEGERS or not 0 <= int_of(attrs, "last") <= 3:
        raise TypeRuleError(f"{operands[0]} is no row of integers")
    return TensorType("int32", operands[0].shape)


def _first(args: Sequence[Bounded], call: Call) -> Bounded:
    _, first, inverse = np.unique(args[0].value, return_index=True, return_inverse=True)
    order = np.argsort(np.argsort(first))
    return exact(order[inverse].reshape(call.result.shape), "int32", bool(args[0].undetermined.any()))


def _unique_text(call: Call) -> str:
    last = int_of(call.attrs, "last")
    kind = ("Unique", "UniqueV2", "UniqueWithCounts", "UniqueWithCountsV2")[last]
    return f"tf.raw_ops.{kind}(x={{0}}{', axis=[0]' if last % 2 else ''})[1]"


def _unique_onnx(call: Call) -> str | Unsupported:
    """The places that it gives, or those of the elements among what it gives alone. ONNX Runtime has few types."""
    if call.operands[0].dtype == "uint64":
        return unsupported("int64 does not hold it")
    x = 'g.op("Cast", {0}, to=TensorProto.INT64)'
    if int_of(call.attrs, "last") < 2:
        return f'g.op("Cast", g.op("Unique", {x}, outputs=3, pick=2, sorted=0), to=TensorProto.INT32)'
    row = f'g.op("Unsqueeze", {x}, g.const([1], "int64"))'
    equal = f'g.op("Cast", g.op("Equal", {row}, g.op("Unique", {x}, sorted=0)), to=TensorProto.INT32)'
    return f'g.op("Cast", g.op("ArgMax", {equal}, axis=1, keepdims=0), to=TensorProto.INT32)'


unique_places = OpSpec(
    "unique_places", "grids",
    (Slot(lambda t, e: t.rank == 1 and t.dtype in INTEGERS and t.size > 0,
          lambda d, e: TensorType(d.dtype if d.dtype in INTEGERS else "int32", (draw_dim(d, 33, zero=False),))),),
    _first_type, _first, attrs={"last": one_of(0, 1, 2, 3)}, torch=_WHY, tensorflow=_unique_text, jax=_WHY,
    relax=_WHY, onnx=_unique_onnx,
)  # fmt: skip

# ---- sums of several tensors --------------------------------------------------------------------------


def _several(args: Sequence[Bounded], call: Call) -> Bounded:
    if not args[0].floating:
        with np.errstate(all="ignore"):
            value = np.sum([x.value for x in args], axis=0, dtype=args[0].value.dtype)
        return exact(value, call.result.dtype, np.any([x.undetermined for x in args], axis=0))
    return summed(stacked(*args, axis=0), partial(np.sum, axis=0), len(args))


add_n = OpSpec(
    "add_n", "arithmetic", (tensor(NUMBERS), like(0)), same_as(0), _several, variadic=3,
    torch="torch.stack([{args}]).sum(0, dtype={dtype})", tensorflow="tf.add_n([{args}])",
    jax="jnp.sum(jnp.stack([{args}]), 0, dtype={dtype})",
    relax="relax.op.sum(relax.op.stack([{args}], axis=0), axis=[0])",
    onnx=lambda call: 'g.op("Sum", {args})' if call.result.dtype in ("float32", "float64", "float16")
    else unsupported("Sum takes floating numbers"),
)  # fmt: skip


def _fresh_one(d: Draw, earlier: Types) -> TensorType:
    return earlier[0] if earlier else floating().fresh(d, ())


_ALIKE = Slot(lambda t, earlier: t == earlier[0] if earlier else floating().accepts(t, ()), _fresh_one)

mean_n = OpSpec(
    "mean_n", "arithmetic", (_ALIKE,), same_as(0),
    lambda args, call: compute(mean, stacked(*args, axis=0), axes=(0,), keepdims=False), variadic=4,
    torch="torch.stack([{args}]).mean(0)", tensorflow="tf.reduce_mean(tf.stack([{args}]), 0)",
    jax="jnp.mean(jnp.stack([{args}]), 0)",
    relax="relax.op.mean(relax.op.stack([{args}], axis=0), axis=[0])",
    onnx=lambda call: 'g.op("Mean", {args})' if call.result.dtype != "bfloat16"
    else unsupported("ONNX Runtime has no Mean of it"),
)  # fmt: skip

OPERATORS: tuple[OpSpec, ...] = (
    histogram_fixed_width, weighted_bincount, nth_element, approximate_topk, unique_places, add_n, mean_n,
)  # fmt: skip
