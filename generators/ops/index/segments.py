"""Rows that belong together, reduced: by segments that follow each other, whose sizes are known, or by numbers of
segments in any order. A segment of no rows is zero, or the product of nothing; where numbers say which rows, the lowest
or the greatest number of the dtype in place of a maximum or minimum of nothing."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from generators.bounds.bounded import PRECISION, Bounded, divide, exact, rounded
from generators.bounds.sums import average, multiplied
from generators.graph import FLOATS, TensorType
from generators.ops.index.scatter import extremes, segment_sum, segment_type, summed_at
from generators.ops.slots import (
    CLASSES,
    INDEX_DTYPES,
    MAX_ELEMENTS,
    NUMBERS,
    draw_dim,
    draw_dtype,
    ints_of,
    numeric,
    tensor,
)
from generators.ops.spec import Attrs, Call, Draw, OpSpec, Shape, Slot, TypeRuleError, Types, Unsupported, unsupported

Array = np.ndarray

# ---- references ---------------------------------------------------------------------------------------


def _constant(value: float, call: Call, data: Bounded) -> Bounded:
    dtype = np.float64 if data.floating else data.dtype
    return Bounded(np.full(call.result.shape, value, dtype), np.zeros(call.result.shape), data.dtype)


def _product(data: Bounded, places: Array, call: Call) -> Bounded:
    def collect(terms: Array) -> Array:
        result = np.ones(call.result.shape, terms.dtype)
        np.multiply.at(result, places, terms)  # type: ignore[arg-type]
        return result

    if not data.floating:
        unknown = np.zeros(call.result.shape, bool)
        np.logical_or.at(unknown, places, data.undetermined)  # type: ignore[arg-type]
        return exact(collect(data.value), data.dtype, unknown)
    counts = np.ones(call.result.shape)
    np.add.at(counts, places, np.ones(data.value.shape))  # type: ignore[arg-type]
    return multiplied(data, collect, counts)


def _extreme(name: str, data: Bounded, places: Array, call: Call) -> Bounded:
    """Of NaN it is NaN, and of infinities one of them, though kernels start from the lowest number."""
    if data.floating:
        first, edge = (
            (-np.inf, -PRECISION[data.dtype].largest) if name == "max" else (np.inf, PRECISION[data.dtype].largest)
        )
    else:
        info = np.iinfo(data.dtype)
        first = edge = int(info.min if name == "max" else info.max)
    best = extremes(np.maximum if name == "max" else np.minimum, _constant(first, call, data), data, (places,))
    return _of_nothing(best, edge, places)


def _of_nothing(found: Bounded, value: float, places: Array) -> Bounded:
    """`value` for certain where no row goes."""
    none = np.bincount(places, minlength=len(found.value)) == 0
    none = none.reshape(-1, *[1] * (found.value.ndim - 1))
    result = np.where(none, value, found.value).astype(found.value.dtype)
    return Bounded(result, np.where(none, 0.0, found.error), found.dtype)


def _whole(total: Bounded, data: Bounded, places: Array) -> Bounded:
    """Sums of whole numbers are exact in any order while the sum of their magnitudes is one that the dtype has."""
    if not data.floating:
        return total
    size = np.zeros(total.value.shape)
    with np.errstate(invalid="ignore"):
        whole = (data.value == np.rint(data.value)) & (data.error == 0)
        np.add.at(size, places, np.where(whole, np.abs(data.value), np.inf))  # type: ignore[arg-type]
    exact_ = size <= 1 / PRECISION[data.dtype].unit
    return Bounded(total.value, np.where(exact_, 0.0, total.error), total.dtype)


def reduced(name: str, data: Bounded, places: Array, call: Call) -> Bounded:
    if name == "prod":
        return _product(data, places, call)
    if name in ("max", "min"):
        return _extreme(name, data, places, call)
    total = _whole(summed_at(_constant(0, call, data), data, (places,)), data, places)
    if name == "sum":
        return total
    counts = np.bincount(places, minlength=call.result.shape[0]).reshape(-1, *[1] * (data.value.ndim - 1))
    counts = np.maximum(counts, 1)
    if name == "sqrt_n":
        roots = np.sqrt(np.broadcast_to(counts, total.value.shape).astype(np.float64))
        return divide(total, rounded(roots, np.zeros(roots.shape), data.dtype, 3))
    mean = average(total, counts)
    # sums that overflow may be means before they are added up, and float16 may be summed in float32
    with np.errstate(all="ignore"):
        loose = ~np.isfinite(mean.value) & (mean.error == 0)
        finite = _constant(0, call, data).value
        np.add.at(finite, places, ~np.isfinite(data.value))
    return Bounded(mean.value, np.where(loose & (finite == 0), np.inf, mean.error), mean.dtype)


# ---- segments that follow each other ------------------------------------------------------------------


def _accepts(type_: TensorType, earlier: Types) -> bool:
    return type_.dtype in NUMBERS and 1 <= type_.rank <= 3 and 0 < type_.size <= MAX_ELEMENTS


def _sizes(d: Draw, operands: Types, attrs: Attrs) -> Shape:
    """Of all rows; the last segment has one at least, since it says how many there are."""
    left, sizes = operands[0].shape[0], []
    while left:
        size = min(left, d.choice((1, 2, 3, 0) if len(sizes) < 9 else (left,)))
        sizes.append(size)
        left -= size
    return tuple(sizes)


def _sorted_type(operands: Types, attrs: Attrs) -> TensorType:
    sizes = ints_of(attrs, "sizes", least=0)
    if operands[0].rank < 1 or not sizes or not sizes[-1] or sum(sizes) != operands[0].shape[0]:
        raise TypeRuleError(f"{operands[0]} has no segments of {sizes}")
    return TensorType(operands[0].dtype, (len(sizes), *operands[0].shape[1:]))


def _ids(call: Call) -> list[int]:
    return np.repeat(np.arange(call.result.shape[0]), ints_of(call.attrs, "sizes")).tolist()


def _fresh(dtypes: Sequence[str], d: Draw, earlier: Types) -> TensorType:
    rest = [draw_dim(d, 5) for _ in range(d.choice((1, 0, 2)))]
    shape = (draw_dim(d, 9, zero=False), *(max(1, n) for n in rest))
    return TensorType(draw_dtype(d, dtypes), shape)


def _sorted(name: str) -> OpSpec:
    dtypes = FLOATS if name == "mean" else NUMBERS

    def reference(args: Sequence[Bounded], call: Call) -> Bounded:
        places = np.asarray(_ids(call))
        found = reduced(name, args[0], places, call)
        return _of_nothing(found, 0, places) if name in ("max", "min") else found

    def torch(call: Call) -> str | Unsupported:
        """Its own product and sum of nothing are 1 and 0, too."""
        sizes = ints_of(call.attrs, "sizes")
        if call.operands[0].dtype not in FLOATS:
            return Unsupported("torch.segment_reduce takes floating point")
        if name not in ("sum", "prod") and not all(sizes):
            return Unsupported("segments of nothing have another value there")
        return f"torch.segment_reduce({{0}}, {name!r}, lengths=torch.tensor({list(sizes)}))"

    why = unsupported("it has no such operator")
    return OpSpec(
        f"sorted_segment_{name}", "indexing",
        (Slot(lambda t, e: t.dtype in dtypes and _accepts(t, e), partial(_fresh, dtypes)),), _sorted_type, reference,
        attrs={"sizes": _sizes}, torch=torch,
        tensorflow=lambda call: f"tf.math.segment_{name}({{0}}, {_ids(call)})", jax=why, relax=why, onnx=why,
    )  # fmt: skip


# ---- numbers of segments ------------------------------------------------------------------------------


def _unsorted(name: str) -> OpSpec:
    def reference(args: Sequence[Bounded], call: Call) -> Bounded:
        return reduced(name, args[0], np.asarray(args[1].value), call)

    why = unsupported("it has no such operator")
    return OpSpec(
        f"segment_{name}", "indexing", (numeric(min_rank=1, nonempty=True), segment_sum.operands[1]), segment_type,
        reference, attrs=dict(segment_sum.attrs), torch=why,
        tensorflow=f"tf.math.unsorted_segment_{name}({{0}}, {{1}}, {{segments}})",
        jax=f"jax.ops.segment_{name}({{0}}, {{1}}, num_segments={{segments}})" if name == "prod" else
        f"segment_extreme(jax.ops.segment_{name}, {{0}}, {{1}}, {{segments}}, {name == 'max'})",
        relax=why, onnx=why,
    )  # fmt: skip


# ---- numbers of segments, of which some are none ------------------------------------------------------


def _numbers(d: Draw, earlier: Types) -> TensorType:
    return TensorType(d.choice(INDEX_DTYPES), earlier[0].shape[: d.integer(1, earlier[0].rank)])


def _numbered_type(operands: Types, attrs: Attrs) -> TensorType:
    data, places = operands
    if places.rank < 1 or places.shape != data.shape[: places.rank]:
        raise TypeRuleError(f"{places} does not go with {data}")
    segments = segment_type((data, TensorType(places.dtype, data.shape[:1])), attrs).shape[0]
    return TensorType(data.dtype, (segments, *data.shape[places.rank :]))


def _dropping(name: str) -> OpSpec:
    """Rows whose number is negative go nowhere (the documentation of tf.math.unsorted_segment_sum; of jax.ops, numbers
    outside of the range do); there is a number for each row, or for each element of the first axes."""
    dtypes = FLOATS if name in ("mean", "sqrt_n") else NUMBERS

    def reference(args: Sequence[Bounded], call: Call) -> Bounded:
        data, places = args
        kept = places.value.ravel() >= 0
        rest = data.value.shape[places.value.ndim :]
        rows = data.map(lambda a: a.reshape(kept.size, *rest)[kept])
        return reduced(name, rows, np.asarray(places.value.ravel()[kept], np.int64), call)

    def jax(call: Call) -> str | Unsupported:
        if name in ("mean", "sqrt_n"):
            return Unsupported("JAX has no such operator")
        x, places = call.operands
        text = "{0}, {1}" if places.rank == 1 else f"{{0}}.reshape({(-1, *x.shape[places.rank :])}), {{1}}.reshape(-1)"
        if name in ("sum", "prod"):
            return f"jax.ops.segment_{name}({text}, num_segments={{segments}})"
        return f"segment_extreme(jax.ops.segment_{name}, {text}, {{segments}}, {name == 'max'})"

    why = unsupported("it has no such operator")
    return OpSpec(
        f"segment_{name}_dropping", "indexing",
        (
            tensor(dtypes, 1, None, nonempty=True),
            Slot(
                lambda t, e: t.dtype in INDEX_DTYPES and t.rank >= 1 and t.shape == e[0].shape[: t.rank],
                _numbers, lambda earlier: (-1, CLASSES - 1),
            ),
        ),
        _numbered_type, reference, attrs=dict(segment_sum.attrs), torch=why,
        tensorflow=f"tf.math.unsorted_segment_{name}({{0}}, {{1}}, {{segments}})", jax=jax, relax=why, onnx=why,
    )  # fmt: skip


OPERATORS: tuple[OpSpec, ...] = (
    *(_dropping(name) for name in ("sum", "mean", "sqrt_n", "prod", "max", "min")),
    *(_sorted(name) for name in ("sum", "mean", "max", "min", "prod")),
    *(_unsorted(name) for name in ("max", "min", "prod")),
)
