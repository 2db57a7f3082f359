"""Normalisation layers.

Every epsilon is a power of two, so that it is the same number in every dtype (ONNX stores a float32)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np

from generators.bounds.bounded import PRECISION, U64, Bounded, gamma
from generators.bounds.standardized import Standard, inverse_root, scaled, standardized
from generators.graph import FLOATS, Attr, TensorType
from generators.ops.nn.windows import number
from generators.ops.slots import MAX_RANK, computed, draw_dtype, draw_shape, one_of, size_of
from generators.ops.spec import (
    Call,
    Draw,
    OpSpec,
    ResultRule,
    Slot,
    Spelling,
    TypeRuleError,
    Types,
    Unsupported,
    unsupported,
)

_ROOM = 512  # elements of a fresh operand: every result depends on many of them
EPSILON = one_of(2.0**-17, 2.0**-10, 2.0**-5, 1.0)

# ---- type rules, operands and spellings ---------------------------------------------------------------


def channel_parameter(position: int = 0) -> Slot:
    """One number a channel: axis 1 of an earlier operand."""
    return computed(lambda earlier: TensorType(earlier[position].dtype, earlier[position].shape[1:2]))


def _trailing() -> Slot:
    """A parameter for the last axes: the shape of the tail of operand 0 that is normalised over."""

    def accepts(type_: TensorType, earlier: Types) -> bool:
        x = earlier[0]
        fits = 1 <= type_.rank <= x.rank and type_.shape == x.shape[x.rank - type_.rank :]
        return fits and type_.dtype == x.dtype and 0 not in type_.shape

    def fresh(d: Draw, earlier: Types) -> TensorType:
        x = earlier[0]
        most = next((k for k in range(x.rank) if x.shape[-1 - k] == 0), x.rank)
        return TensorType(x.dtype, x.shape[x.rank - d.choice((1, *range(1, most + 1))) :])

    return Slot(accepts, fresh)


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

    def rule(operands: Types, attrs: Mapping[str, Attr]) -> TensorType:
        x = operands[0]
        if x.rank < least_rank or 0 in x.shape[1:]:
            raise TypeRuleError(f"{x} has no channels to normalise")
        for parameter in operands[1:]:
            if parameter != TensorType(x.dtype, x.shape[1:2]):
                raise TypeRuleError(f"{parameter} is not one number for each channel of {x}")
        groups = number(attrs, "groups") if "groups" in attrs else 1
        if groups < 1 or x.shape[1] % groups:
            raise TypeRuleError(f"{groups} groups of {x.shape[1]} channels")
        check_epsilon(attrs)
        return x

    return rule


def _tail(operands: Types, attrs: Mapping[str, Attr]) -> TensorType:
    x, scale = operands[:2]
    if any(t != scale for t in operands[2:]):
        raise TypeRuleError("scale and bias differ in type")
    if scale.dtype != x.dtype or not 1 <= scale.rank <= x.rank or x.shape[x.rank - scale.rank :] != scale.shape:
        raise TypeRuleError(f"{scale} is not of the shape of the last axes of {x}")
    if 0 in scale.shape:
        raise TypeRuleError(f"nothing to normalise over in {x}")
    check_epsilon(attrs)
    return x


def check_epsilon(attrs: Mapping[str, Attr]) -> None:
    epsilon = attrs["epsilon"]
    if not isinstance(epsilon, float) or epsilon <= 0:
        raise TypeRuleError(f"epsilon {epsilon!r} is not a positive float")


def epsilon_of(call: Call) -> float:
    epsilon = call.attrs["epsilon"]
    assert isinstance(epsilon, float)
    return epsilon


def _last_axes(call: Call) -> tuple[int, ...]:
    return tuple(range(-call.operands[1].rank, 0))


def per_channel(x: Bounded, parameter: Bounded) -> Bounded:
    return parameter.map(lambda a: a.reshape(-1, *[1] * (x.value.ndim - 2)))


def _float32_or(single: str, double: str) -> Spelling:
    """The second spelling where a framework's own layer takes float32 (and float16) only."""
    return lambda call: single if call.result.dtype == "float32" else double


def _layer_norm(args: Sequence[Bounded], call: Call) -> Bounded:
    x, scale, bias = args
    return scaled(standardized(x, _last_axes(call), epsilon_of(call)), scale, bias)


layer_norm = OpSpec(
    "layer_norm",
    "norm",
    operands=(normalizable(1), _trailing(), computed(lambda earlier: earlier[1])),
    result=_tail,
    reference=_layer_norm,
    attrs={"epsilon": EPSILON},
    torch="torch.nn.functional.layer_norm({0}, {shape1}, {1}, {2}, {epsilon})",
    tensorflow="normalize({0}, list(range(-{rank1}, 0)), {epsilon}) * {1} + {2}",
    jax="normalize({0}, tuple(range(-{rank1}, 0)), {epsilon}) * {1} + {2}",
    relax=_float32_or(
        "relax.op.nn.layer_norm({args}, list(range(-{rank1}, 0)), {epsilon})",
        "layer_norm({args}, list(range(-{rank1}, 0)), {epsilon}, {name})",
    ),
    # stash_type: the type of the first stage's arithmetic
    onnx='g.op("LayerNormalization", {0}, {1}, {2}, axis=-{rank1}, epsilon={epsilon}, stash_type={dtype})',
)


def _rms_norm(args: Sequence[Bounded], call: Call) -> Bounded:
    """x / sqrt(mean(x^2) + epsilon) * scale: gamma_{n+6} for the mean of squares (squares, sum, division)."""
    x, scale = args
    axes, p = _last_axes(call), PRECISION[x.dtype]
    unit, n, epsilon = p.unit + U64, call.operands[1].size, epsilon_of(call)
    finite = np.isfinite(x.value) & ~x.undetermined
    certain_nan = np.any(np.isnan(x.value) & ~x.undetermined, axes, keepdims=True)
    infinite = np.any(np.isinf(x.value) & ~x.undetermined, axes, keepdims=True)
    v, e = np.where(finite, x.value, 0.0), np.where(finite, x.error, 0.0)
    with np.errstate(all="ignore"):
        square = np.sum(v * v, axes, keepdims=True) / n
        root_mean, moved = np.sqrt(square), np.sqrt(np.sum(e * e, axes, keepdims=True) / n)
        steps, flushed = gamma(n + 6, unit), 2 * p.tiny
        high = ((root_mean + moved) ** 2 * (1 + steps) + flushed + epsilon) * (1 + unit)
        least = np.maximum(root_mean - moved, 0.0) ** 2 * (1 - steps) - flushed
        low = (np.maximum(least, 0.0) + epsilon) * (1 - unit)
        root, root_error, top = inverse_root(low, high, square + epsilon, unit)
        error = e * top + np.abs(v) * root_error
        overflow = n * (root_mean + moved) ** 2 > p.largest / 2
        # with an infinity among them, 1 / sqrt(mean of squares) is zero, and infinity by zero NaN
        value = np.where(infinite, 0.0, v * root)
        error = np.where(infinite, 0.0, np.where(overflow | np.isnan(error), np.inf, error))
        error = np.where(np.any(x.undetermined, axes, keepdims=True), np.inf, error)
        nan = certain_nan | (np.isinf(x.value) & ~x.undetermined)
        size = np.where(infinite, 0.0, (np.abs(v) + e) * top)
        return scaled(Standard(value, error, size, nan, np.broadcast_to(top, v.shape), x.dtype), scale, None)


rms_norm = OpSpec(
    "rms_norm",
    "norm",
    operands=(normalizable(1), _trailing()),
    result=_tail,
    reference=_rms_norm,
    attrs={"epsilon": EPSILON},
    torch="torch.nn.functional.rms_norm({0}, {shape1}, {1}, {epsilon})",
    tensorflow="rms_norm({0}, {1}, {epsilon})",
    jax="rms_norm({0}, {1}, {epsilon})",
    relax="relax.op.nn.rms_norm({0}, {1}, list(range(-{rank1}, 0)), {epsilon})",
    onnx="rms_norm(g, {0}, {1}, {rank1}, {epsilon}, {name})",
)


def _batch_norm(args: Sequence[Bounded], call: Call) -> Bounded:
    """The mean and the variance are given: no sums. An infinite x or mean is one in either form of `scaled`."""
    x = args[0]
    scale, bias, mean, variance = (per_channel(x, parameter) for parameter in args[1:])
    unit, epsilon = PRECISION[x.dtype].unit + U64, epsilon_of(call)
    with np.errstate(all="ignore"):
        low = (np.maximum(variance.value - variance.error, 0.0) + epsilon) * (1 - unit)
        high = (variance.value + variance.error + epsilon) * (1 + unit)
        root, root_error, top = inverse_root(low, high, variance.value + epsilon, unit)
        d = x.value - mean.value
        off = x.error + mean.error
        size = sum(np.where(np.isfinite(o.value), np.abs(o.value) + o.error, 0.0) for o in (x, mean)) * top
        error = np.where(np.isfinite(d), off * top + np.abs(d) * root_error, 0.0)
        error = np.where(x.undetermined | mean.undetermined | np.isnan(error), np.inf, error)
        nan = [np.isnan(o.value) & ~o.undetermined for o in (x, mean, variance)]
        nan.append(np.isnan(d) & (error == 0))
        wild = np.logical_or.reduce(np.broadcast_arrays(*nan))
        standard = Standard(d * root, error, size, wild, np.broadcast_to(top, error.shape), x.dtype)
    return scaled(standard, scale, bias)


batch_norm = OpSpec(
    "batch_norm",
    "norm",
    operands=(
        normalizable(2),
        *(channel_parameter() for _ in range(3)),
        computed(lambda earlier: TensorType(earlier[0].dtype, earlier[0].shape[1:2]), lambda earlier: (0, 4)),
    ),
    result=channels_type(2),
    reference=_batch_norm,
    attrs={"epsilon": EPSILON},
    torch="torch.nn.functional.batch_norm({0}, {3}, {4}, {1}, {2}, training=False, eps={epsilon})",
    tensorflow="batch_norm({args}, {epsilon})",
    jax="batch_norm({args}, {epsilon})",
    relax="relax.op.nn.batch_norm({args}, axis=1, epsilon={epsilon}, training=False)[0]",
    onnx='g.op("BatchNormalization", {args}, epsilon={epsilon})',
)


def _instance_norm(args: Sequence[Bounded], call: Call) -> Bounded:
    x, scale, bias = args
    z = standardized(x, tuple(range(2, x.value.ndim)), epsilon_of(call))
    return scaled(z, per_channel(x, scale), per_channel(x, bias))


def _instance_norm_torch(call: Call) -> str | Unsupported:
    if prod(call.operands[0].shape[2:]) == 1:
        return unsupported("torch.nn.functional.instance_norm takes no single spatial element")
    return "torch.nn.functional.instance_norm({0}, None, None, {1}, {2}, True, 0.1, {epsilon})"


instance_norm = OpSpec(
    "instance_norm",
    "norm",
    operands=(normalizable(3), channel_parameter(), channel_parameter()),
    result=channels_type(3),
    reference=_instance_norm,
    attrs={"epsilon": EPSILON},
    torch=_instance_norm_torch,
    tensorflow="group_norm({args}, {shape0}[1], {epsilon})",
    jax="group_norm({args}, {shape0}[1], {epsilon})",
    relax=_float32_or(
        "relax.op.nn.instance_norm({args}, 1, list(range(2, {rank0})), {epsilon})",
        "group_norm(bb, {args}, {shape0}[1], {epsilon}, {shape0}, {name})",
    ),
    onnx=_float32_or(
        'g.op("InstanceNormalization", {args}, epsilon={epsilon})',
        "group_norm(g, {args}, {shape0}[1], {epsilon}, {shape0}, {name})",
    ),
)


def _groups(d: Draw, operands: Types, attrs: Mapping[str, Attr]) -> int:
    channels = operands[0].shape[1]
    return d.choice(tuple(g for g in range(1, channels + 1) if channels % g == 0))


def _group_norm(args: Sequence[Bounded], call: Call) -> Bounded:
    x, scale, bias = args
    groups, shape = number(call.attrs, "groups"), x.value.shape
    split = (shape[0], groups, prod(shape[1:]) // groups)
    z = standardized(x.map(lambda a: a.reshape(split)), (2,), epsilon_of(call))
    whole = Standard(*(a.reshape(shape) for a in (z.value, z.error, z.size, z.nan, z.top)), dtype=z.dtype)
    return scaled(whole, per_channel(x, scale), per_channel(x, bias))


def _group_norm_torch(call: Call) -> str | Unsupported:
    shape, groups = call.operands[0].shape, number(call.attrs, "groups")
    if shape[0] * shape[1] // groups * prod(shape[2:]) == 1:
        return unsupported("torch.nn.functional.group_norm takes no single element a group")
    return "torch.nn.functional.group_norm({0}, {groups}, {1}, {2}, {epsilon})"


group_norm = OpSpec(
    "group_norm",
    "norm",
    operands=(normalizable(2), channel_parameter(), channel_parameter()),
    result=channels_type(2),
    reference=_group_norm,
    attrs={"groups": _groups, "epsilon": EPSILON},
    torch=_group_norm_torch,
    tensorflow="group_norm({args}, {groups}, {epsilon})",
    jax="group_norm({args}, {groups}, {epsilon})",
    relax=_float32_or(
        "relax.op.nn.group_norm({args}, {groups}, 1, list(range(2, {rank0})), {epsilon})",
        "group_norm(bb, {args}, {groups}, {epsilon}, {shape0}, {name})",
    ),
    onnx="group_norm(g, {args}, {groups}, {epsilon}, {shape0}, {name})",
)

NORM = (layer_norm, rms_norm, batch_norm, instance_norm, group_norm)
