"""Operands, type rules and attributes of normalisation layers."""

from __future__ import annotations

from dataclasses import replace

from generators.bounds.bounded import Bounded
from generators.graph import FLOATS, TensorType
from generators.ops.slots import MAX_RANK, computed, draw_dtype, draw_shape, int_of, one_of, size_of
from generators.ops.spec import Attrs, Call, Draw, ResultRule, Slot, TypeRuleError, Types


def full(slot: Slot) -> Slot:
    """Without dimensions of size 0."""

    def fresh(d: Draw, earlier: Types) -> TensorType:
        type_ = slot.fresh(d, earlier)
        return replace(type_, shape=tuple(max(1, dim) for dim in type_.shape))

    return Slot(lambda type_, earlier: type_.size > 0 and slot.accepts(type_, earlier), fresh)


_ROOM = 512  # elements of a fresh operand: every result depends on many of them
EPSILON = one_of(2.0**-17, 2.0**-10, 2.0**-5, 1.0, 0.0)


def channel_parameter(position: int = 0) -> Slot:
    """One number a channel: axis 1 of an earlier operand."""
    return computed(lambda earlier: TensorType(earlier[position].dtype, earlier[position].shape[1:2]))


def normalizable(min_rank: int, max_rank: int | None = None) -> Slot:
    """Floats; only axis 0 may have size 0, and only if it is not the only one."""

    def accepts(type_: TensorType, earlier: Types) -> bool:
        ranked = type_.dtype in FLOATS and min_rank <= type_.rank <= (max_rank or type_.rank)
        return ranked and 0 not in type_.shape[min(1, type_.rank - 1) :]

    def fresh(d: Draw, earlier: Types) -> TensorType:
        shape = draw_shape(d, min_rank, max_rank or MAX_RANK, zero=False)
        while size_of(shape) > _ROOM:
            shape = tuple((dim + 1) // 2 for dim in shape)
        if len(shape) > 1 and d.integer(0, 31) == 31:
            shape = (0, *shape[1:])
        return TensorType(draw_dtype(d, FLOATS), shape)

    return Slot(accepts, fresh)


def channels_type(least_rank: int) -> ResultRule:
    """(N, C, …) with parameters of shape (C,)."""

    def rule(operands: Types, attrs: Attrs) -> TensorType:
        x = operands[0]
        if x.rank < least_rank or 0 in x.shape[1:]:
            raise TypeRuleError(f"{x} has no channels to normalise")
        for parameter in operands[1:]:
            if parameter != TensorType(x.dtype, x.shape[1:2]):
                raise TypeRuleError(f"{parameter} is not one number for each channel of {x}")
        groups = int_of(attrs, "groups") if "groups" in attrs else 1
        if groups < 1 or x.shape[1] % groups:
            raise TypeRuleError(f"{groups} groups of {x.shape[1]} channels")
        check_epsilon(attrs)
        return x

    return rule


def check_epsilon(attrs: Attrs) -> None:
    epsilon = attrs["epsilon"]
    if not isinstance(epsilon, float) or epsilon < 0:
        raise TypeRuleError(f"epsilon {epsilon!r} is no float of 0 or more")


def epsilon_of(call: Call) -> float:
    epsilon = call.attrs["epsilon"]
    assert isinstance(epsilon, float)
    return epsilon


def per_channel(x: Bounded, parameter: Bounded) -> Bounded:
    return parameter.map(lambda a: a.reshape(-1, *[1] * (x.value.ndim - 2)))
