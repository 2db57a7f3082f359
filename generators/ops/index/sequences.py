"""Elements in another order, as tensors of numbers say: sequences turned round up to their lengths, pieces put together
by places, places of elements in order, and numbers of elements as coordinates."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from generators.bounds.bounded import Bounded, exact
from generators.graph import EVERY, TensorType
from generators.ops.index.gather import least
from generators.ops.slots import INDEX_DTYPES, draw_dim, draw_dtype, int_of, ints_of, tensor
from generators.ops.spec import (
    Attrs,
    Call,
    Draw,
    OpSpec,
    Shape,
    Slot,
    Spelling,
    TypeRuleError,
    Types,
    Unsupported,
    unsupported,
)

# ---- sequences turned round ---------------------------------------------------------------------------


def _accepts_lengths(type_: TensorType, earlier: Types) -> bool:
    return type_.dtype in INDEX_DTYPES and type_.rank == 1 and type_.shape[0] in earlier[0].shape


def _fresh_lengths(d: Draw, earlier: Types) -> TensorType:
    return TensorType(d.choice(INDEX_DTYPES), (d.choice(earlier[0].shape),))


def _batches(operands: Types) -> list[int]:
    return [axis for axis, size in enumerate(operands[0].shape) if size == operands[1].shape[0]]


def _batch(d: Draw, operands: Types, attrs: Attrs) -> int:
    return d.choice(_batches(operands))


def _axis(d: Draw, operands: Types, attrs: Attrs) -> int:
    rank, batch = operands[0].rank, int_of(attrs, "batch")
    return d.choice(tuple(axis for axis in (*range(1, rank), 0) if axis != batch))


def _turned_type(operands: Types, attrs: Attrs) -> TensorType:
    x, lengths = operands
    axis, batch = int_of(attrs, "axis"), int_of(attrs, "batch")
    if not 0 <= axis < x.rank or not 0 <= batch < x.rank or axis == batch:
        raise TypeRuleError(f"no sequences along {axis} for each of {batch} in {x}")
    if lengths.rank != 1 or lengths.shape[0] != x.shape[batch]:
        raise TypeRuleError(f"{lengths} are not the lengths of {x}")
    return x


def _turned(args: Sequence[Bounded], call: Call) -> Bounded:
    x, lengths = args
    axis, batch = int_of(call.attrs, "axis"), int_of(call.attrs, "batch")
    rank, size = x.value.ndim, x.value.shape[axis]
    place = np.arange(size).reshape([-1 if i == axis else 1 for i in range(rank)])
    count = lengths.value.astype(np.int64).reshape([-1 if i == batch else 1 for i in range(rank)])
    source = np.broadcast_to(np.where(place < count, count - 1 - place, place), x.value.shape)
    return x.map(lambda a: np.take_along_axis(a, source, axis))


def _onnx_turned(call: Call) -> str | Unsupported:
    if {call.attrs["axis"], call.attrs["batch"]} != {0, 1}:
        return Unsupported("ReverseSequence knows the first two axes only")
    lengths = "{1}" if call.operands[1].dtype == "int64" else 'g.op("Cast", {1}, to=7)'
    return f'g.op("ReverseSequence", {{0}}, {lengths}, time_axis={{axis}}, batch_axis={{batch}})'


reverse_sequence = OpSpec(
    "reverse_sequence", "indexing",
    (tensor(EVERY, min_rank=2, nonempty=True), Slot(_accepts_lengths, _fresh_lengths, lambda e: (0, least(e)[1] + 1))),
    _turned_type, _turned, attrs={"batch": _batch, "axis": _axis}, signed_zero=True,
    torch="reverse_sequence({0}, {1}, {axis}, {batch})",
    tensorflow="tf.reverse_sequence({0}, {1}, seq_axis={axis}, batch_axis={batch})",
    jax="reverse_sequence({0}, {1}, {axis}, {batch})",
    relax="relax.op.reverse_sequence({0}, {1}, {axis}, {batch})", onnx=_onnx_turned,
)  # fmt: skip

# ---- pieces put together ------------------------------------------------------------------------------


def _accepts_piece(type_: TensorType, earlier: Types) -> bool:
    return (
        type_.dtype == earlier[0].dtype
        and type_.rank == earlier[0].rank
        and (type_.shape[1:] == earlier[0].shape[1:] and 0 < type_.shape[0] <= 9)
    )


def _fresh_piece(d: Draw, earlier: Types) -> TensorType:
    return TensorType(earlier[0].dtype, (draw_dim(d, 5, zero=False), *earlier[0].shape[1:]))


def _few_rows(type_: TensorType, earlier: Types) -> bool:
    return type_.dtype in EVERY and 1 <= type_.rank <= 3 and 0 < type_.size <= 256 and type_.shape[0] <= 9


def _fresh_rows(d: Draw, earlier: Types) -> TensorType:
    rest = [draw_dim(d, 4, zero=False) for _ in range(d.choice((1, 0, 2)))]
    return TensorType(draw_dtype(d, EVERY), (draw_dim(d, 5, zero=False), *rest))


def _rows(operands: Types) -> int:
    return sum(t.shape[0] for t in operands)


def _order(d: Draw, operands: Types, attrs: Attrs) -> Shape:
    """As it is, turned round, mixed, or with places that are named twice, of which the last counts."""
    n = _rows(operands)
    kind = d.integer(0, 3)
    if kind == 3:
        return tuple(i % max(1, n - 1) for i in range(n))
    return tuple(range(n)) if kind == 0 else tuple(range(n))[::-1] if kind == 1 else (*range(0, n, 2), *range(1, n, 2))


def _stitched_type(operands: Types, attrs: Attrs) -> TensorType:
    order = ints_of(attrs, "order", _rows(operands), 0)
    if not _few_rows(operands[0], ()) or not all(_accepts_piece(t, operands) for t in operands):
        raise TypeRuleError("the pieces do not go together")
    if set(order) != set(range(max(order) + 1)):
        raise TypeRuleError(f"{order} leaves places out")
    return TensorType(operands[0].dtype, (max(order) + 1, *operands[0].shape[1:]))


def _sources(call: Call) -> list[int]:
    """The row of all rows that comes last to each place."""
    order = ints_of(call.attrs, "order")
    return [max(i for i, place in enumerate(order) if place == row) for row in range(max(order) + 1)]


def _stitched(args: Sequence[Bounded], call: Call) -> Bounded:
    value, error = (np.concatenate([getattr(x, n) for x in args])[_sources(call)] for n in ("value", "error"))
    return Bounded(value, error, args[0].dtype)


def _stitch_text(call: Call) -> str:
    order, first, pieces = ints_of(call.attrs, "order"), 0, []
    for type_ in call.operands:
        pieces.append(list(order[first : first + type_.shape[0]]))
        first += type_.shape[0]
    return f"tf.dynamic_stitch({pieces}, [{{args}}])"


def _picked(text: str) -> Spelling:
    return lambda call: text.replace("%s", str(_sources(call)))


dynamic_stitch = OpSpec(
    "dynamic_stitch", "indexing", (Slot(_few_rows, _fresh_rows), Slot(_accepts_piece, _fresh_piece)), _stitched_type,
    _stitched, attrs={"order": _order}, variadic=2, signed_zero=True,
    torch=_picked("torch.concat([{args}])[%s]"), tensorflow=_stitch_text,
    jax=_picked("jnp.concatenate([{args}])[jnp.asarray(%s)]"),
    relax=_picked('relax.op.take(relax.op.concat([{args}], axis=0), relax.const(%s, "int64"), axis=0)'),
    onnx=_picked('g.op("Gather", g.op("Concat", {args}, axis=0), g.const(%s, "int64"), axis=0)'),
)  # fmt: skip

# ---- places and coordinates ---------------------------------------------------------------------------


def _ranks(args: Sequence[Bounded], call: Call) -> Bounded:
    """The inverse of the permutation that sorts: which place each element gets. Equal elements keep their order."""
    order = np.argsort(args[0].value, kind="stable")
    return exact(np.argsort(order, kind="stable"), call.result.dtype)


_ROW = Slot(
    lambda t, e: t.dtype in ("int32", "int64") and t.rank == 1,
    lambda d, e: TensorType(d.choice(("int32", "int64")), (draw_dim(d, 33),)),
    lambda e: (-3, 9),
)
places_in_order = OpSpec(
    "places_in_order", "indexing", (_ROW,), lambda operands, attrs: TensorType("int32", operands[0].shape), _ranks,
    torch="torch.argsort(torch.argsort({0}, stable=True)).int()",
    tensorflow="tf.math.invert_permutation(tf.argsort({0}, stable=True))",
    jax="jnp.argsort(jnp.argsort({0}, stable=True)).astype(jnp.int32)",
    relax=unsupported("its argsort is not stable"), onnx=unsupported("its TopK is not stable"),
)  # fmt: skip

_PLACES = Slot(
    lambda t, e: t.dtype in INDEX_DTYPES and t.rank == 1 and t.size > 0,
    lambda d, e: TensorType(d.choice(INDEX_DTYPES), (draw_dim(d, 33, zero=False),)),
    lambda e: (0, 11),
)
_UNRAVELLED = Slot(
    lambda t, e: t.dtype in INDEX_DTYPES and t.rank <= 3 and t.size > 0,
    lambda d, e: TensorType(
        d.choice(INDEX_DTYPES), tuple(draw_dim(d, 9, zero=False) for _ in range(d.choice((1, 2, 0, 3))))
    ),
    lambda e: (0, 11),
)
GRIDS: tuple[Shape, ...] = ((3, 4), (2, 3, 2), (12,), (5, 5), (1, 12), (2, 2, 3, 2))
"""Of twelve places at least."""


def _grid(attrs: Attrs) -> Shape:
    image = ints_of(attrs, "image", least=1)
    if not 12 <= np.prod(image) <= 2**20 or len(image) > 9:
        raise TypeRuleError(f"no twelve places in {image}")
    return image


def _unravelled_type(operands: Types, attrs: Attrs) -> TensorType:
    if not _UNRAVELLED.accepts(operands[0], ()):
        raise TypeRuleError(f"{operands[0]} names no places")
    return TensorType(operands[0].dtype, (len(_grid(attrs)), *operands[0].shape))


def _unravelled(args: Sequence[Bounded], call: Call) -> Bounded:
    return exact(np.stack(np.unravel_index(args[0].value, _grid(call.attrs))), call.result.dtype)


unravel_index = OpSpec(
    "unravel_index", "indexing", (_UNRAVELLED,), _unravelled_type, _unravelled,
    attrs={"image": lambda d, operands, attrs: d.choice(GRIDS)},
    torch="torch.stack(torch.unravel_index({0}, {image})).to({dtype})",
    tensorflow="tf.reshape(tf.unravel_index(tf.reshape({0}, [-1]), tf.constant({image}, {dtype})), {shape})",
    jax="jnp.stack(jnp.unravel_index({0}, {image})).astype({dtype})",
    relax=unsupported("it has no such operator"), onnx=unsupported("it has no such operator"),
)  # fmt: skip


OPERATORS: tuple[OpSpec, ...] = (reverse_sequence, dynamic_stitch, places_in_order, unravel_index)
