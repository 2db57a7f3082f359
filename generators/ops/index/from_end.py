"""Places that are counted from either end of an axis, as NumPy, PyTorch, JAX and ONNX read them: -1 is the last one.
Other dialects take the remainder by the size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from generators.bounds.bounded import Bounded
from generators.graph import TensorType
from generators.ops.index.flat_places import take_flat
from generators.ops.index.gather import SOURCE, gather, gather_nd, least, take
from generators.ops.index.scatter import scatter, scatter_nd
from generators.ops.shape.layout import ARRAY, layout, moved
from generators.ops.slots import axis_in, computed, flag, index_slot, int_of, tensor
from generators.ops.spec import Attrs, Call, Domain, Draw, OpSpec, Spelling, TypeRuleError, Types, Unsupported, said

Sizes = Callable[[Call], int | tuple[int, ...]]
"""The sizes that places count along: one, or one for each coordinate."""

_REMAINDER = {
    "torch": ("({1} % #)", "({1} % torch.tensor([#], device={1}.device))"),
    "tensorflow": ("({1} % #)", "({1} % tf.constant([#], {dtype1}))"),
    "relax": ("relax.op.floor_mod({1}, relax.const(#, {dtype1}))",) * 2,
}
"""A place from the front, of one size and of several."""


def _along(call: Call) -> int:
    return call.operands[0].shape[axis_in(call.attrs, call.operands[0].rank)]


def _whole(call: Call) -> int:
    return call.operands[0].size


def _coordinates(call: Call) -> tuple[int, ...]:
    return call.operands[0].shape[: call.operands[1].shape[-1]]


def _counted(base: OpSpec, dialect: str, sizes: Sizes) -> Spelling:
    """As `base`, with places from the front."""
    spelling: Spelling = getattr(base, dialect)

    def spell(call: Call) -> str | Unsupported:
        plain, size = said(spelling, call), sizes(call)
        if isinstance(plain, Unsupported):
            return plain
        text = str(plain)
        of_one, of_several = _REMAINDER[dialect]
        if isinstance(size, int):
            return text.replace("{1}", of_one.replace("#", str(size)))
        listed = ", ".join(map(str, size))
        return text.replace("{1}", of_several.replace("#", f"[{listed}]" if dialect == "relax" else listed))

    return spell


def from_end(base: OpSpec, sizes: Sizes, **native: Spelling) -> OpSpec:
    """`base` with places from either end. native: dialects that take them as they are."""
    places = base.operands[1]

    def domain(earlier: Types) -> Domain:
        high = (places.domain(earlier) or (0, 0))[1]
        return -high - 1, high

    def reference(args: Sequence[Bounded], call: Call) -> Bounded:
        x, at, *rest = args
        return base.reference((x, replace(at, value=at.value % np.asarray(sizes(call), at.value.dtype)), *rest), call)

    spelt = {dialect: native.get(dialect) or _counted(base, dialect, sizes) for dialect in _REMAINDER}
    return replace(
        base, name=f"{base.name}_from_end", base=base.name, reference=reference,
        operands=(base.operands[0], replace(places, domain=domain), *base.operands[2:]),
        jax=native.get("jax", base.jax), **spelt,
    )  # fmt: skip


def _subscript(call: Call) -> str:
    return f"{{0}}[{':, ' * axis_in(call.attrs, call.operands[0].rank)}{{1}}]"


# ---- one place, a number of the program -----------------------------------------------------------------


def _pick_axis(d: Draw, operands: Types, attrs: Attrs) -> int:
    shape = operands[0].shape
    filled = [axis for axis, dim in enumerate(shape) if dim]
    return d.choice((*filled, *(axis - len(shape) for axis in filled)))


def _pick_place(d: Draw, operands: Types, attrs: Attrs) -> int:
    size = operands[0].shape[axis_in(attrs, operands[0].rank)]
    return d.choice((0, -1, *range(1, size), *range(-size, -1)))


def _pick_type(operands: Types, attrs: Attrs) -> TensorType:
    x, axis, place = operands[0], axis_in(attrs, operands[0].rank), int_of(attrs, "place")
    if not -x.shape[axis] <= place < x.shape[axis]:
        raise TypeRuleError(f"no place {place} on axis {axis} of {x}")
    return TensorType(x.dtype, (*x.shape[:axis], *x.shape[axis + 1 :]))


def _pick(call: Call) -> str:
    return f"{{0}}[{':, ' * axis_in(call.attrs, call.operands[0].rank)}{{place}}]"


def _front(call: Call) -> int:
    return int_of(call.attrs, "place") % _along(call)


pick = layout(
    "pick", replace(SOURCE, usual=ARRAY.usual), _pick_type,
    moved(lambda array, call: np.take(array, int_of(call.attrs, "place"), int_of(call.attrs, "axis"))),
    attrs={"axis": _pick_axis, "place": _pick_place},
    torch="torch.select({0}, {axis}, {place})", tensorflow=_pick, jax=_pick,
    relax=lambda call: f"relax.op.take({{0}}, relax.const({_front(call)}, 'int64'), axis={{axis}})",
    onnx='g.op("Gather", {0}, g.const({place}, "int64"), axis={axis})',
)  # fmt: skip

# ---- two tensors of places ------------------------------------------------------------------------------


def _crossed_type(operands: Types, attrs: Attrs) -> TensorType:
    x, rows, columns = operands
    if x.rank < 3 or rows != columns or not isinstance(attrs["beside"], bool):
        raise TypeRuleError(f"{rows} and {columns} are no places of {x} (beside: {attrs['beside']!r})")
    first = (x.shape[0], *rows.shape) if attrs["beside"] else (*rows.shape, x.shape[1])
    return TensorType(x.dtype, (*first, *x.shape[3:]))


def _subscripts(call: Call) -> str:
    return "{0}[:, {1}, {2}]" if call.attrs["beside"] else "{0}[{1}, :, {2}]"


def _crossed(args: Sequence[Bounded], call: Call) -> Bounded:
    x, rows, columns = args[0], args[1].value, args[2].value
    return x.map(lambda array: array[:, rows, columns] if call.attrs["beside"] else array[rows, :, columns])


def _by_coordinates(text: str) -> Spelling:
    """text: with the order of axes that puts those of the places first, and that of the result, as `<before>` and
    `<behind>`. Places of axes that lie side by side stand where these were, others come first."""

    def spell(call: Call) -> str:
        rank, places = call.operands[0].rank, call.operands[1].rank
        before, behind = [0, 2, 1], [*range(places), places]
        if call.attrs["beside"]:
            before, behind = [1, 2, 0], [places, *range(places)]
        before, behind = [*before, *range(3, rank)], [*behind, *range(places + 1, places + rank - 2)]
        return text.replace("<before>", str(before)).replace("<behind>", str(behind))

    return spell


take_crossed = OpSpec(
    "take_crossed", "indexing",
    (tensor(min_rank=3, max_rank=4, nonempty=True), index_slot(1, 2, least),
     replace(computed(lambda earlier: earlier[1]), domain=least)),
    _crossed_type, _crossed, attrs={"beside": flag()}, signed_zero=True,
    torch=_subscripts, jax=_subscripts,
    tensorflow=_by_coordinates(
        "tf.transpose(tf.gather_nd(tf.transpose({0}, <before>), tf.stack([{1}, {2}], -1)), <behind>)"
    ),
    relax=_by_coordinates(
        "relax.op.permute_dims(relax.op.gather_nd(relax.op.permute_dims({0}, <before>), "
        "relax.op.astype(relax.op.stack([{1}, {2}], axis=-1), 'int64')), <behind>)"
    ),
    onnx=_by_coordinates(
        'g.op("Transpose", g.op("GatherND", g.op("Transpose", {0}, perm=<before>), g.op("Concat", '
        'g.op("Unsqueeze", g.op("Cast", {1}, to=TensorProto.INT64), g.const([-1], "int64")), '
        'g.op("Unsqueeze", g.op("Cast", {2}, to=TensorProto.INT64), g.const([-1], "int64")), axis=-1)), perm=<behind>)'
    ),
)  # fmt: skip

OPERATORS: tuple[OpSpec, ...] = (
    from_end(take, _along, torch=_subscript, jax=_subscript),
    from_end(take_flat, _whole, torch=take_flat.torch, jax="jnp.ravel({0})[{1}]"),
    from_end(gather, _along),
    from_end(gather_nd, _coordinates, torch=gather_nd.torch),
    from_end(scatter, _along),
    from_end(scatter_nd, _coordinates, torch=scatter_nd.torch),
    pick,
    take_crossed,
)
