"""The element that an order picks along an axis, or from a whole tensor, and its place: the greatest, the least, the
one in the middle, number k; and the most frequent one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from generators.bounds.bounded import Bounded, exact
from generators.graph import TensorType
from generators.ops.composed import compute
from generators.ops.reduce.nan_reductions import nanmedian
from generators.ops.reduce.records import filled_axis, reduced_along, reducible
from generators.ops.reduce.reductions import OPERATORS as REDUCTIONS
from generators.ops.reduce.reductions import max_, min_
from generators.ops.reduce.sorting import kth_value, ordered, places
from generators.ops.slots import INDEX_DTYPES, NUMBERS, axis_in, flag, floating, int_of, numeric, one_of, tensor
from generators.ops.spec import AttrRule, Attrs, Call, OpSpec, ResultRule, Spelling, TypeRuleError, Types, unsupported

Array = np.ndarray

_NO_MEDIAN = unsupported("it has no median that lets NaN through")
_NO_MODE = unsupported("it does not count equals")
_ALONG: dict[str, AttrRule] = {"axis": filled_axis, "keepdims": flag()}

# ---- greatest and least -------------------------------------------------------------------------------


def _picking(operands: Types, attrs: Attrs) -> TensorType:
    if attrs["pick"] not in ("values", "indices"):
        raise TypeRuleError(f"nothing to pick by {attrs['pick']!r}")
    return reduced_along("int64" if attrs["pick"] == "indices" else None, empty=False)(operands, attrs)


def _extreme_along(values: OpSpec, indices: OpSpec) -> Callable[[Sequence[Bounded], Call], Bounded]:
    def reference(args: Sequence[Bounded], call: Call) -> Bounded:
        attrs = {"keepdims": call.attrs["keepdims"]}
        if call.attrs["pick"] == "indices":
            return compute(indices, args[0], axis=call.attrs["axis"], **attrs)
        return compute(values, args[0], axes=(int_of(call.attrs, "axis"),), **attrs)

    return reference


def _by_pick(values: str, indices: str) -> Spelling:
    return lambda call: indices if call.attrs["pick"] == "indices" else values


def _along(name: str, whole: OpSpec, place: OpSpec) -> OpSpec:
    """Of equals the first one, as PyTorch documents, too."""
    same = "axis={axis}, keepdims={keepdims}"
    return OpSpec(
        f"{name}_along", "reduction", (reducible(NUMBERS, min_rank=1),), _picking, _extreme_along(whole, place),
        attrs={**_ALONG, "pick": one_of("values", "indices")},
        torch=f"torch.{name}({{0}}, dim={{axis}}, keepdim={{keepdims}})[int({{pick}} == 'indices')]",
        tensorflow=_by_pick(f"tf.reduce_{name}({{0}}, {same})", f"arg{name}({{0}}, {{axis}}, {{keepdims}})"),
        jax=_by_pick(f"jnp.{name}({{0}}, {same})", f"jnp.arg{name}({{0}}, {same})"),
        relax=_by_pick(f"relax.op.{name}({{0}}, {same})", f"relax.op.arg{name}({{0}}, {same})"),
        onnx=_by_pick(
            f'g.op("Reduce{name.title()}", {{0}}, g.const([{{axis}}], "int64"), keepdims=int({{keepdims}}))',
            f'g.op("Arg{name.title()}", {{0}}, axis={{axis}}, keepdims=int({{keepdims}}))',
        ),
    )  # fmt: skip


def _whole_type(operands: Types, attrs: Attrs) -> TensorType:
    if operands[0].size == 0:
        raise TypeRuleError(f"nothing to pick from {operands[0]}")
    return TensorType(operands[0].dtype, ())


def _whole(name: str, record: OpSpec) -> OpSpec:
    """Of all elements: another kernel than along axes."""

    def reference(args: Sequence[Bounded], call: Call) -> Bounded:
        return compute(record, args[0], axes=tuple(range(args[0].value.ndim)), keepdims=False)

    return OpSpec(
        f"{name}_whole", "reduction", (numeric(nonempty=True),), _whole_type, reference,
        torch=f"torch.{name}({{0}})", tensorflow=f"tf.reduce_{name}({{0}})", jax=f"jnp.{name}({{0}})",
        relax=f"relax.op.{name}({{0}})", onnx=f'g.op("Reduce{name.title()}", {{0}}, keepdims=0)',
    )  # fmt: skip


def _whole_place(name: str, kind: str) -> OpSpec:
    """The place of the greatest or least of all elements, in the order of the axes, however they are stored."""

    def rule(operands: Types, attrs: Attrs) -> TensorType:
        return replace(_whole_type(operands, attrs), dtype="int64")

    return OpSpec(
        f"{name}_whole", "reduction", (tensor(NUMBERS, nonempty=True),), rule,
        lambda args, call: compute(_ARGUMENT[name], _flat(args[0]), axis=0, keepdims=False),
        torch=f"torch.{name}({{0}})", tensorflow=f"{name}(tf.reshape({{0}}, [-1]), 0, False)",
        jax=f"jnp.{name}({{0}})", relax=f"relax.op.{name}({{0}})",
        onnx=f'g.op("{kind}", g.op("Reshape", {{0}}, g.const([-1], "int64")), axis=0, keepdims=0)',
    )  # fmt: skip


_ARGUMENT = {record.name: record for record in REDUCTIONS if record.name in ("argmax", "argmin")}

# ---- medians ------------------------------------------------------------------------------------------


def _middle(x: Bounded, axis: int) -> Bounded:
    """The lower one of two in the middle; NaN where there is one."""
    missing = np.isnan(x.value) & (x.error == 0) if x.floating else np.zeros(x.value.shape, bool)
    there = ordered(
        Bounded(np.where(missing, np.inf, x.value) if x.floating else x.value, x.error, x.dtype), axis, False
    )
    found = there.map(lambda array: np.take(array, [(array.shape[axis] - 1) // 2], axis))
    if not x.floating:
        return found
    nan = np.any(missing, axis, keepdims=True)
    return Bounded(np.where(nan, np.nan, found.value), np.where(nan, 0.0, found.error), x.dtype)


def _median_along(args: Sequence[Bounded], call: Call) -> Bounded:
    x, axis = args[0], axis_in(call.attrs, args[0].value.ndim)
    found = _middle(x, axis)
    return found if call.attrs["keepdims"] else found.map(lambda array: np.squeeze(array, axis))


def _jax_median(axis: str, keepdims: str) -> Spelling:
    """jnp.median takes the mean of the two in the middle."""
    return lambda call: f"lower_median({{0}}, {axis}, {keepdims})"


median_along = OpSpec(
    "median_along", "statistics", (reducible(NUMBERS, min_rank=1),), reduced_along(empty=False), _median_along,
    attrs=_ALONG,
    torch="torch.median({0}, dim={axis}, keepdim={keepdims}).values", tensorflow=_NO_MEDIAN,
    jax=_jax_median("{axis}", "{keepdims}"), relax=_NO_MEDIAN, onnx=_NO_MEDIAN,
)  # fmt: skip


def _flat(x: Bounded) -> Bounded:
    return x.map(lambda array: np.reshape(array, -1))


median_whole = OpSpec(
    "median_whole", "statistics", (numeric(nonempty=True),), _whole_type,
    lambda args, call: _middle(_flat(args[0]), 0).map(lambda array: np.reshape(array, ())),
    torch="torch.median({0})", tensorflow=_NO_MEDIAN, jax="lower_median({0}.reshape(-1), 0, False)",
    relax=_NO_MEDIAN, onnx=_NO_MEDIAN,
)  # fmt: skip

nanmedian_whole = OpSpec(
    "nanmedian_whole", "statistics", (floating(nonempty=True),), _whole_type,
    lambda args, call: compute(nanmedian, _flat(args[0]), axis=0),
    torch="torch.nanmedian({0})", tensorflow="nanmedian(tf.reshape({0}, [-1]), 0)",
    jax='jnp.nanquantile({0}, 0.5, method="lower")', relax=_NO_MEDIAN, onnx=_NO_MEDIAN,
)  # fmt: skip

# ---- number k -----------------------------------------------------------------------------------------


def _kth_place(args: Sequence[Bounded], call: Call) -> Bounded:
    """Of equals it may be any."""
    axis, k = axis_in(call.attrs, args[0].value.ndim), int_of(call.attrs, "k")
    found = places(args[0], axis, descending=False, stable=False)
    return found.map(lambda array: np.take(array, k - 1, axis))


def _kth_type(operands: Types, attrs: Attrs) -> TensorType:
    return replace(kth_value.result(operands, attrs), dtype="int64")


kth_index = replace(
    kth_value, name="kth_index", result=_kth_type, reference=_kth_place,
    torch="torch.kthvalue({0}, {k}, dim={axis}).indices",
    tensorflow="tf.gather(tf.cast(tf.argsort({0}, axis={axis}, stable=True), tf.int64), {k} - 1, axis={axis})",
    jax="jnp.take(jnp.argsort({0}, axis={axis}).astype(jnp.int64), {k} - 1, axis={axis})",
    relax='relax.op.take(relax.op.argsort({0}, {axis}, False, "int64"), relax.const({k} - 1, "int64"), axis={axis})',
    onnx='g.op("Gather", g.op("TopK", {0}, g.const([{k}], "int64"), outputs=2, pick=1, axis={axis}, largest=0), '
    'g.const({k} - 1, "int64"), axis={axis})',
)  # fmt: skip

# ---- the most frequent --------------------------------------------------------------------------------


def _mode(args: Sequence[Bounded], call: Call) -> Bounded:
    """Of zeros and ones, so that some are equal. Undetermined where two are as frequent."""
    x, axis = args[0], axis_in(call.attrs, args[0].value.ndim)
    last = np.sort(np.moveaxis(x.value, axis, -1), axis=-1)
    place = np.arange(last.shape[-1])
    first = np.concatenate([np.ones_like(last[..., :1], bool), last[..., 1:] != last[..., :-1]], axis=-1)
    count = place - np.maximum.accumulate(np.where(first, place, 0), axis=-1)
    best = np.argmax(count, axis=-1, keepdims=True)
    tied = np.sum(count == np.take_along_axis(count, best, -1), axis=-1) > 1
    unknown = np.any(np.moveaxis((x.error > 0) | (x.value != x.value), axis, -1), axis=-1)
    found = exact(np.take_along_axis(last, best, -1)[..., 0], x.dtype, tied | unknown)
    return found.map(lambda array: np.expand_dims(array, axis)) if call.attrs["keepdims"] else found


_MODE_TYPE: ResultRule = reduced_along(empty=False)

_FEW = tensor(INDEX_DTYPES, min_rank=1, nonempty=True)

mode = OpSpec(
    "mode", "statistics", (replace(_FEW, domain=lambda earlier: (0, 1)),), _MODE_TYPE, _mode, attrs=_ALONG,
    torch="torch.mode({0}, dim={axis}, keepdim={keepdims}).values", tensorflow=_NO_MODE,
    jax="jax.scipy.stats.mode({0}, axis={axis}, keepdims={keepdims}).mode", relax=_NO_MODE, onnx=_NO_MODE,
)  # fmt: skip

OPERATORS: tuple[OpSpec, ...] = (
    _along("max", max_, _ARGUMENT["argmax"]),
    _along("min", min_, _ARGUMENT["argmin"]),
    _whole("max", max_),
    _whole("min", min_),
    _whole_place("argmax", "ArgMax"),
    _whole_place("argmin", "ArgMin"),
    median_along,
    median_whole,
    nanmedian_whole,
    kth_index,
    mode,
)
