"""Building blocks for operator records: operand slots, attribute rules and type rules shared by many operators.

Every rule is written twice over on purpose: drawing (`Slot.fresh`, an AttrRule) picks only valid things, and the
type rule (`OpSpec.result`) refuses invalid ones, so that neither can drift without `tests/meta` noticing."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from generators.graph import COMMON, DTYPES, FLOATS, INTEGERS, LARGEST, Attr, TensorType
from generators.ops.spec import AttrRule, Attrs, Domain, Draw, ResultRule, Shape, Slot, TypeRuleError, Types

MAX_ELEMENTS = 2048
"""No tensor of a drawn graph is larger: small enough to run thousands of cases, larger than any vector tile."""

NUMBERS = (*FLOATS, *INTEGERS)
INDEX_DTYPES = ("int64", "int64", "int32")
SMALL = (2, 3, 1, 4, 5)
DIMS = (2, 3, 1, 4, 5, 6, 7, 8, 9, 16, 17, 33)
MAX_RANK = 4
DEEPEST = 8
"""Dimensions that an operator takes which takes any number: TensorFlow's and XNNPACK's tables of kernels end there. New
leaves of drawn graphs have `MAX_RANK` at most, which suffices for most faults; sweeps have deep places."""


def draw_dim(d: Draw, most: int = 33, zero: bool = True, like: int | None = None) -> int:
    """A dimension: mostly small, sometimes one beside a vector width, seldom 0 (where allowed); often the same as
    another one, `like`: a mistaken transposition raises in a rectangle and shows only in a square."""
    if like is not None and like <= most and d.integer(0, 3) == 3:
        return like
    kind = d.integer(0, 31)
    if kind == 31 and zero:
        return 0
    dims = DIMS if kind >= 24 else SMALL
    dim = d.choice(dims)
    return dim if dim <= most else max(1, most)


def draw_shape(d: Draw, min_rank: int = 0, max_rank: int = MAX_RANK, zero: bool = True) -> tuple[int, ...]:
    """A shape of at most MAX_ELEMENTS elements."""
    preferred = tuple(r for r in (2, 3, 1, 4, 2, 3, 0) if min_rank <= r <= max_rank)
    rank = d.choice(preferred or (min_rank,))
    shape: list[int] = []
    room = MAX_ELEMENTS
    for _ in range(rank):
        dim = draw_dim(d, room, zero)
        shape.append(dim)
        room //= max(1, dim)
    return tuple(shape)


def draw_dtype(d: Draw, dtypes: Sequence[str]) -> str:
    """One of `dtypes`: mostly the one that the graph favours, otherwise a common one."""
    if d.dtype in dtypes and d.integer(0, 3) < 3:
        return d.dtype
    return d.choice([dtype for dtype in dtypes if dtype in COMMON] or dtypes)


def within(dtype: str, options: Sequence[int]) -> tuple[int, ...]:
    """Each option, or the nearest integer that the dtype holds."""
    info = np.iinfo(dtype)
    return tuple(min(max(option, int(info.min)), int(info.max)) for option in options)


# ---- operand slots ------------------------------------------------------------------------------------


def tensor(
    dtypes: Sequence[str] = DTYPES, min_rank: int = 0, max_rank: int | None = None, nonempty: bool = False
) -> Slot:
    """Any tensor of these dtypes and ranks; `nonempty` excludes size-0 dimensions. Without a greatest rank, up to
    `MAX_RANK` dimensions are drawn."""
    most = DEEPEST if max_rank is None else max_rank

    def accepts(type_: TensorType, earlier: Types) -> bool:
        return type_.dtype in dtypes and min_rank <= type_.rank <= most and not (nonempty and type_.size == 0)

    def fresh(d: Draw, earlier: Types) -> TensorType:
        rank = MAX_RANK if max_rank is None else max_rank
        return TensorType(draw_dtype(d, dtypes), draw_shape(d, min_rank, rank, zero=not nonempty))

    return Slot(accepts, fresh, usual=MAX_RANK if max_rank is None else most)


def floating(min_rank: int = 0, max_rank: int | None = None, nonempty: bool = False) -> Slot:
    return tensor(FLOATS, min_rank, max_rank, nonempty)


def numeric(min_rank: int = 0, max_rank: int | None = None, nonempty: bool = False) -> Slot:
    return tensor(NUMBERS, min_rank, max_rank, nonempty)


def boolean(min_rank: int = 0, max_rank: int | None = None) -> Slot:
    return tensor(("bool",), min_rank, max_rank)


def computed(rule: Callable[[Types], TensorType], domain: Callable[[Types], Domain | None] = lambda _: None) -> Slot:
    """Exactly the type that follows from the earlier operands."""
    return Slot(lambda type_, earlier: type_ == rule(earlier), lambda d, earlier: rule(earlier), domain)


def like(position: int) -> Slot:
    """The same type as an earlier operand."""
    return computed(lambda earlier: earlier[position])


def broadcastable(position: int = 0, dtypes: Sequence[str] | None = None) -> Slot:
    """A tensor that broadcasts with all earlier operands, with the dtype of operand `position` (or one of
    `dtypes`)."""

    def accepts(type_: TensorType, earlier: Types) -> bool:
        if type_.dtype not in (dtypes or (earlier[position].dtype,)):
            return False
        types = (*earlier, type_)
        shape = broadcast_shape([t.shape for t in types])
        return shape is not None and size_of(shape) <= most_elements(types)

    def fresh(d: Draw, earlier: Types) -> TensorType:
        dtype = draw_dtype(d, dtypes) if dtypes else earlier[position].dtype
        full = broadcast_shape([t.shape for t in earlier]) or ()
        kept = full[d.choice((0, 0, *range(len(full) + 1))) :]
        shape = [dim if d.integer(0, 3) < 3 else 1 for dim in kept]
        if d.integer(0, 3) == 3:  # the earlier operands broadcast to this one
            room = MAX_ELEMENTS // max(1, size_of(full))
            for i, dim in enumerate(shape):
                if full[len(full) - len(shape) + i] == 1 and dim == 1:
                    shape[i] = draw_dim(d, room)
                    room //= max(1, shape[i])
            if len(shape) == len(full) < MAX_RANK:
                shape.insert(0, draw_dim(d, room))
        return TensorType(dtype, tuple(shape))

    return Slot(accepts, fresh)


def index_slot(
    min_rank: int, max_rank: int, domain: Callable[[Types], Domain], dtypes: Sequence[str] = INDEX_DTYPES
) -> Slot:
    """A tensor of indices of any shape, as large as the result may become."""

    def accepts(type_: TensorType, earlier: Types) -> bool:
        return type_.dtype in dtypes and min_rank <= type_.rank <= max_rank

    def fresh(d: Draw, earlier: Types) -> TensorType:
        shape, room = [], MAX_ELEMENTS // max((1, *(t.size for t in earlier)))
        for _ in range(d.choice(range(min_rank, max_rank + 1))):
            shape.append(draw_dim(d, room))
            room //= max(1, shape[-1])
        return TensorType(d.choice(dtypes), tuple(shape))

    return Slot(accepts, fresh, domain)


CLASSES = 4
"""Indices of classes lie below it, and the depth is at least that: an attribute is drawn after its operands."""

# ---- attribute rules ----------------------------------------------------------------------------------


def axis_of(position: int = 0, extra: int = 0) -> AttrRule:
    """An axis of an operand, counted from either end. `extra` = 1 for a new axis (stack, expand)."""

    def rule(d: Draw, operands: Types, attrs: Attrs) -> int:
        rank = operands[position].rank + extra
        return d.choice((*range(rank), *range(-rank, 0)))

    return rule


def axes_of(position: int = 0) -> AttrRule:
    """A non-empty tuple of distinct axes, each counted from either end; the empty tuple for a scalar."""

    def rule(d: Draw, operands: Types, attrs: Attrs) -> tuple[int, ...]:
        rank = operands[position].rank
        if rank == 0:
            return ()
        first = d.integer(0, rank - 1)
        chosen = [a for a in range(rank) if a == first or d.integer(0, 3) == 3]
        return tuple(a - rank if d.integer(0, 3) == 3 else a for a in chosen)

    return rule


def flag() -> AttrRule:
    return lambda d, operands, attrs: d.boolean()


def one_of(*options: Attr) -> AttrRule:
    return lambda d, operands, attrs: d.choice(options)


# ---- type rules ---------------------------------------------------------------------------------------


def same_as(position: int = 0) -> ResultRule:
    return lambda operands, attrs: operands[position]


def broadcast(dtype: str | None = None, skip: int = 0) -> ResultRule:
    """The broadcast shape of all operands, with the dtype of operand `skip` or the given one."""

    def rule(operands: Types, attrs: Attrs) -> TensorType:
        shape = broadcast_shape([t.shape for t in operands])
        if shape is None:
            raise TypeRuleError(f"shapes {', '.join(str(t.shape) for t in operands)} do not broadcast")
        if len({t.dtype for t in operands[skip:]}) > 1:
            raise TypeRuleError(f"dtypes differ: {', '.join(t.dtype for t in operands[skip:])}")
        return TensorType(dtype or operands[skip].dtype, shape)

    return rule


def positive(rule: ResultRule, name: str) -> ResultRule:
    """`rule`, where an attribute has to be a positive number."""

    def checked(operands: Types, attrs: Attrs) -> TensorType:
        value = attrs[name]
        if not isinstance(value, float | int) or value <= 0:
            raise TypeRuleError(f"{name} {value!r} is not positive")
        return rule(operands, attrs)

    return checked


def reduced(dtype: str | None = None) -> ResultRule:
    """Without (or with size 1 in place of) the axes in attribute `axes` (a tuple) or `axis` (an int)."""

    def rule(operands: Types, attrs: Attrs) -> TensorType:
        type_ = operands[0]
        axes = normalized(attrs.get("axes", attrs.get("axis")), type_.rank)
        keep = bool(attrs.get("keepdims", False))
        shape = tuple(1 if i in axes else dim for i, dim in enumerate(type_.shape) if keep or i not in axes)
        return TensorType(dtype or type_.dtype, shape)

    return rule


def same_dtype(operands: Types) -> str:
    """The dtype of all operands; raises TypeRuleError where they differ."""
    if len({t.dtype for t in operands}) > 1:
        raise TypeRuleError(f"dtypes differ: {', '.join(t.dtype for t in operands)}")
    return operands[0].dtype


def broadcast_shape(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...] | None:
    """numpy's broadcast of the shapes, or None where there is none."""
    rank = max((len(s) for s in shapes), default=0)
    result: list[int] = []
    for i in range(-rank, 0):
        dims = {s[i] for s in shapes if len(s) >= -i} - {1}
        if len(dims) > 1:
            return None
        result.append(dims.pop() if dims else 1)
    return tuple(result)


def spreads_to(shape: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    """Does a shape broadcast to the wanted one, and leave that as it is?"""
    return broadcast_shape([shape, wanted]) == wanted


def normalized(axes: Attr, rank: int) -> tuple[int, ...]:
    """Axes (an int or a tuple) counted from the front; raises TypeRuleError outside the rank or repeated."""
    items = axes if isinstance(axes, tuple) else (axes,)
    result = []
    for axis in items:
        if isinstance(axis, bool) or not isinstance(axis, int) or not -rank <= axis < max(rank, 0):
            raise TypeRuleError(f"axis {axis!r} is outside rank {rank}")
        result.append(axis % rank)
    if len(set(result)) != len(result):
        raise TypeRuleError(f"axes {items} name one axis twice")
    return tuple(result)


def most_elements(operands: Types) -> int:
    """What a result may have: more where an operand has more than any that is drawn, as in large cases."""
    return MAX_ELEMENTS if all(type_.size <= MAX_ELEMENTS for type_ in operands) else LARGEST


def size_of(shape: Sequence[int]) -> int:
    return int(np.prod(shape, dtype=np.int64))


# ---- attributes that are read -------------------------------------------------------------------------


def int_of(attrs: Attrs, key: str) -> int:
    """An attribute that must be an integer."""
    value = attrs[key]
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeRuleError(f"{key} is {value!r}, not an integer")
    return value


def ints_of(attrs: Attrs, key: str, count: int | None = None, least: int | None = None) -> Shape:
    """An attribute that must be a tuple of (`count`) integers, none below `least`."""
    value = attrs[key]
    whole = (
        tuple(v for v in value if isinstance(v, int) and not isinstance(v, bool)) if isinstance(value, tuple) else ()
    )
    if not isinstance(value, tuple) or len(whole) < len(value):
        raise TypeRuleError(f"{key} is {value!r}, not a tuple of integers")
    if count is not None and len(whole) != count:
        raise TypeRuleError(f"{key} has {len(whole)} numbers, not {count}")
    if least is not None and any(v < least for v in whole):
        raise TypeRuleError(f"{key} {whole} goes below {least}")
    return whole


def axis_in(attrs: Attrs, rank: int) -> int:
    """The attribute `axis`, counted from the front."""
    return normalized(int_of(attrs, "axis"), rank)[0]
