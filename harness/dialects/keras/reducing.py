"""Operators that reduce axes, that go along one, and that sort it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from generators.ops.spec import Call, Spelling, Unsupported
from harness.dialects.keras.texts import along, as_numpy, attribute, narrowed, placed, where


def _norm(order: str) -> Callable[[Call], str | Unsupported]:
    """Of a vector or of a matrix."""

    def spell(call: Call) -> str | Unsupported:
        axes: Any = call.attrs["axes"]
        if len(axes) != 1 and not (order == "None" and len(axes) == 2):
            return Unsupported("keras.ops.norm is of vectors and matrices")
        return f"keras.ops.norm({{0}}, ord={order}, axis={{axes}}, keepdims={{keepdims}})"

    return spell


def _vector_norm(call: Call) -> str | Unsupported:
    order: Any = call.attrs["ord"]
    return _norm(f'float("{order}")')(call)


def _matrix_norm(call: Call) -> str:
    order = {"fro": '"fro"', "inf": 'float("inf")', "-inf": '-float("inf")'}.get(
        str(call.attrs["ord"]), call.attrs["ord"]
    )
    return f"keras.ops.norm({{0}}, ord={order}, axis=(-2, -1), keepdims={{keepdims}})"


def _count_nonzero(call: Call) -> str | Unsupported:
    if call.attrs["keepdims"]:
        return Unsupported("keras.ops.count_nonzero keeps no axis")
    return placed("keras.ops.count_nonzero({0}, axis={axes})")(call)


def _top_k(which: int) -> Spelling:
    """The greatest ones along the last axis."""

    def spell(call: Call) -> str | Unsupported:
        axis: Any = call.attrs["axis"]
        if axis % call.operands[0].rank != call.operands[0].rank - 1 or not call.attrs["largest"]:
            return Unsupported("keras.ops.top_k has the greatest along the last axis")
        text = f"keras.ops.top_k({{0}}, {{k}})[{which}]"
        return placed(text)(call) if which else text

    return spell


def _sort(call: Call) -> str:
    text = "keras.ops.sort({0}, axis={axis})"
    return f"keras.ops.flip({text}, {{axis}})" if call.attrs["descending"] else text


def _bucketize(call: Call) -> str | Unsupported:
    side = '"right"' if call.attrs["right"] else '"left"'
    if call.operands[0].dtype == "int64":
        return Unsupported("Keras computes int64 in 32 bits on most back ends")
    if call.attrs["right"] and call.operands[0].rank > 1:
        return 'keras.ops.cast(keras.ops.digitize({0}, np.array({boundaries}, {name0})), "int64")'
    return f'keras.ops.cast(keras.ops.searchsorted(np.array({{boundaries}}, {{name0}}), {{0}}, side={side}), "int64")'


def _searchsorted(call: Call) -> str | Unsupported:
    side = '"right"' if call.attrs["right"] else '"left"'
    if call.operands[0].rank != 1:
        return Unsupported("keras.ops.searchsorted looks in a vector")
    return placed(f"keras.ops.searchsorted(keras.ops.sort({{0}}), {{1}}, side={side})")(call)


_PLACE = {
    name: placed(f"keras.ops.{name}({{0}}, axis={{axis}}, keepdims={{keepdims}})")
    for name in ("argmax", "argmin", "nanargmax", "nanargmin")
}

SPELLINGS: dict[str, Spelling] = {
    **along(mean="mean", max="max", min="min", all="all", any="any", logsumexp="logsumexp", variance="var", std="std"),
    **along(ptp="ptp", nansum="nansum", nanmean="nanmean", nanmax="nanmax", nanmin="nanmin", nanprod="nanprod"),
    **along(all_of_numbers="all", any_of_numbers="any", complex_sum="sum", complex_mean="mean"),
    # of integers narrower than 32 bits sums and products are of 32 bits, as numpy's are, unless one says otherwise
    # it takes no dtype: what wraps in 32 bits, and then in fewer, has wrapped in those
    "sum": narrowed("keras.ops.sum({0}, axis={axes}, keepdims={keepdims})", "int8", "uint8", "int16", "uint16"),
    "prod": "keras.ops.prod({0}, axis={axes}, keepdims={keepdims}, dtype={dtype})",
    "l1_norm": _norm("1"),
    "l2_norm": _norm("None"),
    "linf_norm": _norm('float("inf")'),
    "vector_norm": _vector_norm,
    "matrix_norm": _matrix_norm,
    "sum_of_squares": "keras.ops.sum(keras.ops.square({0}), axis={axes}, keepdims={keepdims})",
    "mean_abs": "keras.ops.mean(keras.ops.abs({0}), axis={axes}, keepdims={keepdims})",
    "log_sum": "keras.ops.log(keras.ops.sum({0}, axis={axes}, keepdims={keepdims}))",
    "count_nonzero": _count_nonzero,
    **_PLACE,
    "argmax_to": _PLACE["argmax"],
    "argmin_to": _PLACE["argmin"],
    "argmax_whole": placed("keras.ops.argmax({0})"),
    "argmin_whole": placed("keras.ops.argmin({0})"),
    "max_whole": "keras.ops.max({0})",
    "min_whole": "keras.ops.min({0})",
    **as_numpy("cumsum cumprod nancumsum nancumprod"),
    "sort": _sort,
    "argsort": attribute(
        "descending", False, "keras.ops.argsort has one direction", placed("keras.ops.argsort({0}, axis={axis})")
    ),
    "topk": _top_k(0),
    "topk_indices": _top_k(1),
    "in_top_k": "keras.ops.in_top_k({1}, {0}, {k})",
    "bucketize": _bucketize,
    "searchsorted": _searchsorted,
    "bincount": placed("keras.ops.bincount({0}, minlength={size})", values=False),
    "weighted_bincount": "keras.ops.bincount({0}, weights={1}, minlength={size})[:{size}]",
    "histogram": placed("keras.ops.histogram({0}, bins={bins}, range=(-2.0, 2.0))[0]"),
    "quantile": "keras.ops.quantile({0}, {q}, axis={axis}, method={method})",
    "nanquantile": "keras.ops.nanquantile({0}, {q}, axis={axis}, method={method})",
    "nanmedian": 'keras.ops.nanquantile({0}, 0.5, axis={axis}, method="lower")',
    "trapezoid": "keras.ops.trapezoid({0}, dx={dx}, axis={axis})",
    "corrcoef": "keras.ops.reshape(keras.ops.corrcoef({0}), {shape})",
    "l2_normalize": "keras.ops.normalize({0}, axis={axis}, order=2, epsilon={eps})",
    "softmax": "keras.ops.softmax({0}, axis={axis})",
    "log_softmax": "keras.ops.log_softmax({0}, axis={axis})",
    "unique_inverse": where(
        lambda call: call.operands[0].rank == 1,
        "keras.ops.unique flattens",
        placed("keras.ops.unique({0}, return_inverse=True)[1]"),
    ),
}
