"""Operators that write into places of a tensor, beside scatter: filled, reduced, a diagonal, a slice, masked, counted
along the flattened tensor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import inf, nan

import numpy as np

from generators.bounds.bounded import Bounded, divide
from generators.bounds.sums import multiplied
from generators.graph import DTYPES, EVERY, FLOATS, Attr, TensorType
from generators.ops.composed import given
from generators.ops.index.gather import ALONG, along, along_axis, least
from generators.ops.index.index_put import index_add
from generators.ops.index.scatter import Places, extremes, scatter_add, summed_at
from generators.ops.shape.layout import Array
from generators.ops.slots import (
    INDEX_DTYPES,
    axis_in,
    axis_of,
    draw_dim,
    int_of,
    one_of,
    tensor,
)
from generators.ops.spec import (
    AttrRule,
    Attrs,
    Call,
    Draw,
    OpSpec,
    Reference,
    ResultRule,
    Slot,
    Spelling,
    TypeRuleError,
    Types,
    Unsupported,
    unsupported,
)

_NO_SUCH = unsupported("it has no operator that does this")
_UNORDERED = unsupported("it has no reduction of what is written that leaves out what was there")

# ---- reduced ------------------------------------------------------------------------------------------

KINDS = ("prod", "mean", "amax", "amin", "sum")
_IDENTITY = {"prod": 1.0, "mean": 0.0, "sum": 0.0, "amax": -np.inf, "amin": np.inf}


def _counts(shape: tuple[int, ...], places: Places, update: Array) -> Array:
    counts = np.zeros(shape, np.int64)
    np.add.at(counts, places, np.ones(update.shape, np.int64))
    return counts


def _multiplied_at(x: Bounded, update: Bounded, places: Places) -> Bounded:
    """As sums are (`summed_at`): the product of what is there and all that is written, in any order."""
    n = x.value.size

    def joined(first: Array, second: Array) -> Array:
        return np.concatenate([first.ravel(), second.ravel()])

    def collect(factors: Array) -> Array:
        result = factors[:n].reshape(x.value.shape).copy()
        np.multiply.at(result, places, factors[n:].reshape(update.value.shape))
        return result

    factors = Bounded(joined(x.value, update.value), joined(x.error, update.error), x.dtype)
    return multiplied(factors, collect, 1 + _counts(x.value.shape, places, update.value))


def reduced_at(x: Bounded, update: Bounded, places: Places, kind: str, include_self: bool) -> Bounded:
    """What stands at each place, reduced with all that is written there; without it where include_self is False. What
    nothing is written to stays."""
    counts = _counts(x.value.shape, places, update.value)
    start = x
    if not include_self:
        fresh = counts > 0
        start = Bounded(np.where(fresh, _IDENTITY[kind], x.value), np.where(fresh, 0.0, x.error), x.dtype)
    if kind in ("amax", "amin"):
        return extremes(np.maximum if kind == "amax" else np.minimum, start, update, places)
    if kind == "prod":
        return _multiplied_at(start, update, places)
    total = summed_at(start, update, places)
    if kind == "sum":
        return total
    number = np.maximum(counts + include_self, 1)
    result = divide(total, replace(given(number.astype(np.float64), x.dtype), zero_sign=True))
    kept = number == 1
    return Bounded(
        np.where(kept, total.value, result.value), np.where(kept, total.error, result.error), x.dtype
    )  # nothing is divided


def _grid(x: Bounded, indices: Bounded, call: Call) -> Places:
    grid: list[Array] = list(np.indices(indices.value.shape, sparse=True))
    grid[axis_in(call.attrs, x.value.ndim)] = indices.value
    return tuple(grid)


def _rows(x: Bounded, indices: Bounded, call: Call) -> Places:
    return (*(slice(None),) * axis_in(call.attrs, x.value.ndim), indices.value)


def _reduction(
    places: Callable[[Bounded, Bounded, Call], Places], record: OpSpec, kinds: tuple[str, ...]
) -> tuple[Reference, ResultRule]:
    def reference(args: Sequence[Bounded], call: Call) -> Bounded:
        x, indices, update = args
        kind = str(call.attrs["reduction"])
        return reduced_at(x, update, places(x, indices, call), kind, bool(call.attrs["include_self"]))

    def result(operands: Types, attrs: Attrs) -> TensorType:
        if attrs["reduction"] not in kinds:
            raise TypeRuleError(f"no reduction {attrs['reduction']!r}")
        return record.result(operands, attrs)

    return reference, result


_WRITERS = {"prod": "multiply", "amax": "max", "amin": "min", "sum": "add"}


def _jax_reduced(at: str) -> Callable[[Call], str | Unsupported]:
    def spell(call: Call) -> str | Unsupported:
        if call.attrs["reduction"] not in _WRITERS or not call.attrs["include_self"]:
            return _UNORDERED
        return f"{at}.{_WRITERS[str(call.attrs['reduction'])]}({{2}})"

    return spell


def _by_elements(text: str, **more: str) -> Spelling:
    words = {"prod": "mul", "amax": "max", "amin": "min", "sum": "add", **more}

    def spell(call: Call) -> str | Unsupported:
        if call.attrs["reduction"] not in words or not call.attrs["include_self"]:
            return _UNORDERED
        return text.replace("%s", words[str(call.attrs["reduction"])])

    return spell


_SOURCE = tensor(FLOATS, min_rank=1, nonempty=True)
_REDUCED: dict[str, AttrRule] = {
    "reduction": one_of(*KINDS),
    "include_self": lambda d, operands, attrs: not d.boolean(),
}
_scatter_reference, _scatter_result = _reduction(_grid, scatter_add, KINDS)
scatter_reduce = replace(
    scatter_add, name="scatter_reduce", operands=(_SOURCE, *scatter_add.operands[1:]),
    result=_scatter_result, reference=_scatter_reference, attrs={"axis": along_axis, **_REDUCED},
    torch="torch.scatter_reduce({0}, {axis}, {1}.long(), {2}, {reduction}, include_self={include_self})",
    tensorflow=_NO_SUCH, jax=_jax_reduced("at_elements({0}, {1}, {axis})"),
    relax=_by_elements('relax.op.scatter_elements({0}, {1}, {2}, axis={axis}, reduction="%s")', mean="mean"),
    onnx=_by_elements('g.op("ScatterElements", {0}, {1}, {2}, axis={axis}, reduction="%s")'),
)  # fmt: skip

_index_reference, _index_result = _reduction(_rows, index_add, KINDS[:4])
index_reduce = replace(
    index_add, name="index_reduce", operands=(_SOURCE, *index_add.operands[1:]),
    result=_index_result,
    reference=_index_reference,
    attrs={**index_add.attrs, **_REDUCED, "reduction": one_of(*KINDS[:4])},
    torch="torch.index_reduce({0}, {axis}, {1}, {2}, {reduction}, include_self={include_self})",
    tensorflow=_NO_SUCH,
    jax=lambda call: _jax_reduced(f"{{0}}.at[{':, ' * axis_in(call.attrs, call.result.rank)}{{1}}]")(call),
    relax=_NO_SUCH, onnx=_NO_SUCH,
)  # fmt: skip


def _negative(args: Sequence[Bounded], call: Call) -> Bounded:
    x, indices, update = args
    with np.errstate(all="ignore"):
        opposite = Bounded(np.negative(update.value), update.error, update.dtype)
    return summed_at(x, opposite, _grid(x, indices, call))


scatter_sub = replace(
    scatter_add, name="scatter_sub", reference=_negative,
    torch="torch.scatter_add({0}, {axis}, {1}.long(), -{2})",
    tensorflow="tf.tensor_scatter_nd_sub({0}, coordinates({1}, {axis}), {2})",
    jax="at_elements({0}, {1}, {axis}).subtract({2})",
    relax='relax.op.scatter_elements({0}, {1}, relax.op.negative({2}), axis={axis}, reduction="add")',
    onnx='g.op("ScatterElements", {0}, {1}, g.op("Neg", {2}), axis={axis}, reduction="add")',
)  # fmt: skip

# ---- one number, several times ------------------------------------------------------------------------


def _number(d: Draw, operands: Types, attrs: Attrs) -> Attr:
    return d.choice((2.0, 0.0, -1.5, -inf, nan)) if operands[0].dtype in FLOATS else d.choice((2, 0, 1))


def _filled(x: Bounded, places: Places, call: Call) -> Bounded:
    value, error = x.value.copy(), x.error.copy()
    value[places], error[places] = call.attrs["value"], 0.0
    return Bounded(value, error, x.dtype)


def _scatter_value_type(operands: Types, attrs: Attrs) -> TensorType:
    along(operands, attrs)
    _checked_number(operands, attrs)
    return operands[0]


def _checked_number(operands: Types, attrs: Attrs) -> None:
    value = attrs["value"]
    if type(value) is not (float if operands[0].dtype in FLOATS else int):
        raise TypeRuleError(f"{value!r} is no {operands[0].dtype}")


_NUMBERS = tensor(tuple(t for t in DTYPES if t != "bool"), min_rank=1, nonempty=True)
scatter_value = OpSpec(
    "scatter_value", "indexing", (_NUMBERS, ALONG), _scatter_value_type,
    lambda args, call: _filled(args[0], _grid(args[0], args[1], call), call),
    attrs={"axis": along_axis, "value": _number}, signed_zero=True,
    torch="torch.scatter({0}, {axis}, {1}.long(), {value})",
    tensorflow="tf.tensor_scatter_nd_update({0}, coordinates({1}, {axis}), tf.fill({shape1}, "
    "tf.constant({value}, {dtype})))",
    jax="at_elements({0}, {1}, {axis}).set({value})",
    relax="relax.op.scatter_elements({0}, {1}, relax.op.full({shape1}, relax.const({value}, {dtype})), axis={axis})",
    onnx='g.op("ScatterElements", {0}, {1}, g.const(np.full({shape1}, {value}), {name}), axis={axis})',
)  # fmt: skip


def _index_fill_type(operands: Types, attrs: Attrs) -> TensorType:
    axis_in(attrs, operands[0].rank)
    _checked_number(operands, attrs)
    return operands[0]


def _few_indices(type_: TensorType, earlier: Types) -> bool:
    return type_.dtype in INDEX_DTYPES and type_.rank == 1


index_fill = OpSpec(
    "index_fill", "indexing",
    (_NUMBERS, Slot(_few_indices, lambda d, e: TensorType(d.choice(INDEX_DTYPES), (draw_dim(d, 9),)), least)),
    _index_fill_type, lambda args, call: _filled(args[0], _rows(args[0], args[1], call), call),
    attrs={"axis": axis_of(0), "value": _number}, signed_zero=True,
    torch="torch.index_fill({0}, {axis}, {1}.long(), {value})", tensorflow=_NO_SUCH,
    jax=lambda call: f"{{0}}.at[{':, ' * axis_in(call.attrs, call.result.rank)}{{1}}].set({{value}})",
    relax=_NO_SUCH, onnx=_NO_SUCH,
)  # fmt: skip

# ---- a slice, a diagonal ------------------------------------------------------------------------------


def _without(axis: int, type_: TensorType) -> TensorType:
    return TensorType(type_.dtype, (*type_.shape[:axis], *type_.shape[axis + 1 :]))


def _slice_axes(operands: Types) -> tuple[int, ...]:
    return tuple(a for a in range(operands[0].rank) if _without(a, operands[0]) == operands[1])


def _select_type(operands: Types, attrs: Attrs) -> TensorType:
    axis, index = axis_in(attrs, operands[0].rank), int_of(attrs, "index")
    dim = operands[0].shape[axis]
    if axis not in _slice_axes(operands) or not -dim <= index < dim:
        raise TypeRuleError(f"{operands[1]} is no slice {index} of {operands[0]} along {axis}")
    return operands[0]


def _selected(args: Sequence[Bounded], call: Call) -> Bounded:
    x, update = args
    places = (*(slice(None),) * axis_in(call.attrs, x.value.ndim), int_of(call.attrs, "index"))
    return _replaced(x, update, places)


def _replaced(x: Bounded, update: Bounded, places: Places) -> Bounded:
    value, error = x.value.copy(), x.error.copy()
    value[places], error[places] = update.value, update.error
    return Bounded(value, error, x.dtype)


def _select_axis(d: Draw, operands: Types, attrs: Attrs) -> int:
    axes, rank = _slice_axes(operands), operands[0].rank
    return d.choice((*axes, *(a - rank for a in axes)))


def _select_index(d: Draw, operands: Types, attrs: Attrs) -> int:
    dim = operands[0].shape[axis_in(attrs, operands[0].rank)]
    return d.choice((0, dim - 1, -1, -dim))


def _positive_index(text: str) -> Callable[[Call], str]:
    def spell(call: Call) -> str:
        index = int_of(call.attrs, "index") % call.operands[0].shape[axis_in(call.attrs, call.result.rank)]
        return text.replace("%s", f"{index}, {index + 1}, 1")

    return spell


_WHOLE = tensor(EVERY, min_rank=1, nonempty=True)
select_scatter = OpSpec(
    "select_scatter", "indexing",
    (_WHOLE, Slot(lambda t, e: bool(_slice_axes((e[0], t))),
                  lambda d, e: _without(d.integer(0, e[0].rank - 1), e[0]))),
    _select_type, _selected, attrs={"axis": _select_axis, "index": _select_index}, signed_zero=True,
    torch="torch.select_scatter({0}, {1}, {axis}, {index})",
    tensorflow=_positive_index("slice_update({0}, tf.expand_dims({1}, {axis}), {axis}, range(%s))"),
    jax=lambda call: f"{{0}}.at[{':, ' * axis_in(call.attrs, call.result.rank)}{{index}}].set({{1}})",
    relax=_positive_index("relax.op.slice_scatter({0}, relax.op.expand_dims({1}, {axis}), %s, axis={axis})"),
    onnx=lambda call: _positive_index(
        'slice_update(g, {0}, g.op("Unsqueeze", {1}, g.const([{axis}], "int64")), <shape>, {axis}, range(%s))'
    )(call).replace("<shape>", repr(tuple(
        1 if a == axis_in(call.attrs, call.result.rank) else dim for a, dim in enumerate(call.result.shape)))),
)  # fmt: skip


def _length(type_: TensorType, offset: int) -> int:
    rows, columns = type_.shape[-2:]
    return min(rows + min(offset, 0), columns - max(offset, 0))


def _offsets(operands: Types) -> list[int]:
    x, update = operands
    rows, columns = x.shape[-2:]
    near = sorted(range(1 - rows, columns), key=abs)
    return [k for k in near if (*x.shape[:-2], _length(x, k)) == update.shape]


def _fresh_diagonal(d: Draw, earlier: Types) -> TensorType:
    x = earlier[0]
    rows, columns = x.shape[-2:]
    return TensorType(x.dtype, (*x.shape[:-2], _length(x, d.choice((0, columns - 1, 1 - rows)))))


def _diagonal_scatter_type(operands: Types, attrs: Attrs) -> TensorType:
    if operands[0].dtype != operands[1].dtype or int_of(attrs, "offset") not in _offsets(operands):
        raise TypeRuleError(f"{operands[1]} is no diagonal {attrs['offset']} of {operands[0]}")
    return operands[0]


def _diagonal_places(call: Call) -> tuple[range, range]:
    offset, length = int_of(call.attrs, "offset"), call.operands[1].shape[-1]
    return range(max(0, -offset), max(0, -offset) + length), range(max(0, offset), max(0, offset) + length)


diagonal_scatter = OpSpec(
    "diagonal_scatter", "indexing",
    (tensor(EVERY, min_rank=2, nonempty=True),
     Slot(lambda t, e: t.dtype == e[0].dtype and t.rank == e[0].rank - 1 and bool(_offsets((e[0], t))),
          _fresh_diagonal)),
    _diagonal_scatter_type,
    lambda args, call: _replaced(args[0], args[1], (..., *map(np.array, _diagonal_places(call)))),
    attrs={"offset": lambda d, operands, attrs: d.choice(_offsets(operands))}, signed_zero=True,
    torch="torch.diagonal_scatter({0}, {1}, {offset}, -2, -1)",
    tensorflow="tf.linalg.set_diag({0}, {1}, k={offset})",
    jax=lambda call: "{{0}}.at[..., jnp.array([*{!r}]), jnp.array([*{!r}])].set({{1}})".format(*_diagonal_places(call)),
    relax=_NO_SUCH, onnx=_NO_SUCH,
)  # fmt: skip

OPERATORS: tuple[OpSpec, ...] = (
    scatter_reduce,
    index_reduce,
    scatter_sub,
    scatter_value,
    index_fill,
    select_scatter,
    diagonal_scatter,
)
