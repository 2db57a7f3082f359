"""Normalisation layers: layer, RMS, batch, instance and group normalisation, with and without scale and bias.

Every epsilon is a power of two, so that it is the same number in every dtype (ONNX stores a float32)."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from generators.bounds.bounded import PRECISION, U64, Bounded, gamma
from generators.bounds.standardized import Standard, inverse_root, scaled, standardized
from generators.graph import TensorType
from generators.ops.composed import given, shared
from generators.ops.nn.normalized_operands import (
    EPSILON,
    channel_parameter,
    channels_type,
    check_epsilon,
    epsilon_of,
    full,
    normalizable,
    per_channel,
)
from generators.ops.slots import computed, int_of, one_of
from generators.ops.spec import (
    Attrs,
    Call,
    Draw,
    OpSpec,
    Slot,
    Spelling,
    TypeRuleError,
    Types,
    Unsupported,
    unsupported,
)


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


def _tail(operands: Types, attrs: Attrs) -> TensorType:
    x, scale = operands[:2]
    if any(t != scale for t in operands[2:]):
        raise TypeRuleError("scale and bias differ in type")
    if scale.dtype != x.dtype or not 1 <= scale.rank <= x.rank or x.shape[x.rank - scale.rank :] != scale.shape:
        raise TypeRuleError(f"{scale} is not of the shape of the last axes of {x}")
    if 0 in scale.shape:
        raise TypeRuleError(f"nothing to normalise over in {x}")
    check_epsilon(attrs)
    return x


def _last_axes(call: Call) -> tuple[int, ...]:
    return tuple(range(-call.operands[1].rank, 0))


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
    onnx='g.op("RMSNormalization", {0}, {1}, axis=-{rank1}, epsilon={epsilon}, stash_type={dtype})',
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
    onnx=lambda call: (
        'g.op("GroupNormalization", {args}, num_groups={shape0}[1], epsilon={epsilon}, stash_type={dtype})'
        if call.result.dtype == "float64"
        else 'g.op("InstanceNormalization", {args}, epsilon={epsilon})'
    ),
)


def _groups(d: Draw, operands: Types, attrs: Attrs) -> int:
    channels = operands[0].shape[1]
    return d.choice(tuple(g for g in range(1, channels + 1) if channels % g == 0))


def _group_norm(args: Sequence[Bounded], call: Call) -> Bounded:
    x, scale, bias = args
    groups, shape = int_of(call.attrs, "groups"), x.value.shape
    split = (shape[0], groups, prod(shape[1:]) // groups)
    z = standardized(x.map(lambda a: a.reshape(split)), (2,), epsilon_of(call))
    whole = Standard(*(a.reshape(shape) for a in (z.value, z.error, z.size, z.nan, z.top)), dtype=z.dtype)
    return scaled(whole, per_channel(x, scale), per_channel(x, bias))


def _group_norm_torch(call: Call) -> str | Unsupported:
    shape, groups = call.operands[0].shape, int_of(call.attrs, "groups")
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
    onnx='g.op("GroupNormalization", {0}, {1}, {2}, num_groups={groups}, epsilon={epsilon}, stash_type={dtype})',
)

COARSE = one_of(2.0**-10, 2.0**-5, 1.0)
"""tf.nn.fused_batch_norm raises an epsilon below 1.001e-5, as cuDNN demands."""

# ---- with the statistics of the batch -----------------------------------------------------------------


def _batch_norm_training(args: Sequence[Bounded], call: Call) -> Bounded:
    """Over all axes but the channels'."""
    x, scale, bias = args
    axes = (0, *range(2, x.value.ndim))
    return scaled(standardized(x, axes, epsilon_of(call)), per_channel(x, scale), per_channel(x, bias))


def _single(call: Call) -> bool:
    """One element a channel, which PyTorch refuses."""
    shape = call.operands[0].shape
    return shape[0] * prod(shape[2:]) <= 1


def _training_type(operands: Types, attrs: Attrs) -> TensorType:
    if 0 in operands[0].shape:
        raise TypeRuleError(f"{operands[0]} has no statistics")
    return channels_type(2)(operands, attrs)


def _training_torch(call: Call) -> str | Unsupported:
    if _single(call):
        return unsupported("torch.nn.functional.batch_norm trains on no single element a channel")
    return "torch.nn.functional.batch_norm({0}, None, None, {1}, {2}, True, 0.1, {epsilon})"


def _training_tensorflow(call: Call) -> str:
    if call.result.dtype == "float32" and call.result.rank == 4:
        return "fused_batch_norm({args}, {epsilon})"
    return "normalized(Space, {0}, axes=[0, *range(2, {rank0})], epsilon={epsilon}, scale={1}, bias={2})"


_BATCH = shared("batch_norm_training")

batch_norm_training = OpSpec(
    "batch_norm_training", "norm", (full(normalizable(2)), channel_parameter(), channel_parameter()), _training_type,
    _batch_norm_training, attrs={"epsilon": COARSE}, torch=_training_torch, tensorflow=_training_tensorflow,
    jax=_BATCH["jax"],
    relax="relax.op.nn.batch_norm({0}, {1}, {2}, relax.op.zeros_like({1}), relax.op.ones_like({1}), axis=1, "
    "epsilon={epsilon}, training=True)[0]",
    onnx='g.op("BatchNormalization", {0}, {1}, {2}, g.const([0] * {shape0}[1], {name}), '
    "g.const([1] * {shape0}[1], {name}), epsilon={epsilon}, training_mode=1, outputs=3)",
)  # fmt: skip

# ---- without scale and bias ---------------------------------------------------------------------------


def _plain(z: Standard) -> Bounded:
    return scaled(z, given(1.0, z.dtype), None)


def _layer_norm_plain(args: Sequence[Bounded], call: Call) -> Bounded:
    return _plain(standardized(args[0], tuple(range(-int_of(call.attrs, "last"), 0)), epsilon_of(call)))


def _instance_norm_plain(args: Sequence[Bounded], call: Call) -> Bounded:
    return _plain(standardized(args[0], tuple(range(2, args[0].value.ndim)), epsilon_of(call)))


def _last(d: Draw, operands: Types, attrs: Attrs) -> int:
    """How many axes, counted from the last one; axis 0 may be empty."""
    rank = operands[0].rank
    return d.integer(1, max(1, rank - 1 if 0 in operands[0].shape else rank))


def _layer_type(operands: Types, attrs: Attrs) -> TensorType:
    x, last = operands[0], int_of(attrs, "last")
    if not 1 <= last <= x.rank or 0 in x.shape[x.rank - last :]:
        raise TypeRuleError(f"cannot normalise the last {last} axes of {x}")
    check_epsilon(attrs)
    return x


def _instance_torch(call: Call) -> str | Unsupported:
    if prod(call.operands[0].shape[2:]) == 1:
        return unsupported("torch.nn.functional.instance_norm takes no single spatial element")
    return "torch.nn.functional.instance_norm({0}, eps={epsilon})"


def _instance_onnx(call: Call) -> str:
    if call.result.dtype == "float32":
        channels = "g.const([%d] * {shape0}[1], {name})"
        return f'g.op("InstanceNormalization", {{0}}, {channels % 1}, {channels % 0}, epsilon={{epsilon}})'
    composed = _INSTANCE["onnx"]
    assert callable(composed)
    return str(composed(call))


_LAYER, _INSTANCE = shared("layer_norm_plain"), shared("instance_norm_plain")

layer_norm_plain = OpSpec(
    "layer_norm_plain", "norm", (normalizable(1),), _layer_type, _layer_norm_plain,
    attrs={"last": _last, "epsilon": EPSILON},
    torch="torch.nn.functional.layer_norm({0}, {shape0}[-{last}:], eps={epsilon})",
    tensorflow=_LAYER["tensorflow"],
    jax="jax.nn.standardize({0}, axis=tuple(range(-{last}, 0)), epsilon={epsilon}, algorithm='stable')",
    relax=_LAYER["relax"],
    onnx='g.op("LayerNormalization", {0}, g.const(np.ones({shape0}[-{last}:]), {name}), axis=-{last}, '
    "epsilon={epsilon}, stash_type={dtype})",
)  # fmt: skip

instance_norm_plain = OpSpec(
    "instance_norm_plain", "norm", (normalizable(3),), channels_type(3), _instance_norm_plain,
    attrs={"epsilon": EPSILON},
    torch=_instance_torch, tensorflow=_INSTANCE["tensorflow"], jax=_INSTANCE["jax"], relax=_INSTANCE["relax"],
    onnx=_instance_onnx,
)  # fmt: skip


def _group_norm_plain(args: Sequence[Bounded], call: Call) -> Bounded:
    x, shape = args[0], args[0].value.shape
    split = (shape[0], int_of(call.attrs, "groups"), -1) if x.value.size else (*shape[:1], 1, 0)
    z = standardized(x.map(lambda a: a.reshape(split)), (2,), epsilon_of(call))
    return _plain(z).map(lambda a: a.reshape(shape))


def _group_plain_torch(call: Call) -> str | Unsupported:
    text = _group_norm_torch(call)
    return text.replace("{1}, {2}, {epsilon}", "eps={epsilon}") if isinstance(text, str) else text


_GROUP = shared("group_norm_plain")

group_norm_plain = OpSpec(
    "group_norm_plain", "norm", (normalizable(2),), channels_type(2), _group_norm_plain,
    attrs={"groups": _groups, "epsilon": EPSILON}, torch=_group_plain_torch,
    tensorflow=_GROUP["tensorflow"], jax=_GROUP["jax"], relax=_GROUP["relax"], onnx=_GROUP["onnx"],
)  # fmt: skip

OPERATORS: tuple[OpSpec, ...] = (
    layer_norm, layer_norm_plain, rms_norm, batch_norm, batch_norm_training, instance_norm, instance_norm_plain,
    group_norm, group_norm_plain,
)  # fmt: skip
