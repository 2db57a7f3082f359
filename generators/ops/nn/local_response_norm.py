"""Normalisation by what stands in the batch itself or without scale and bias, and by neighbouring channels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

import numpy as np

from generators.bounds.bounded import PRECISION, U64, Bounded, gamma, rounded
from generators.bounds.standardized import Standard, scaled, standardized
from generators.graph import Attr, TensorType
from generators.ops.composed import given, shared
from generators.ops.nn.normalization import (
    EPSILON,
    channel_parameter,
    channels_type,
    check_epsilon,
    epsilon_of,
    normalizable,
    per_channel,
)
from generators.ops.nn.windows import number
from generators.ops.slots import one_of
from generators.ops.spec import (
    AttrRule,
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

Array = np.ndarray
Attrs = Mapping[str, Attr]
BETAS = (0.75, 0.5, 1.0)
COARSE = one_of(2.0**-10, 2.0**-5, 1.0)
"""tf.nn.fused_batch_norm raises an epsilon below 1.001e-5, as cuDNN demands."""


def _full(slot: Slot) -> Slot:
    """Without dimensions of size 0."""

    def fresh(d: Draw, earlier: Types) -> TensorType:
        type_ = slot.fresh(d, earlier)
        return replace(type_, shape=tuple(max(1, dim) for dim in type_.shape))

    return Slot(lambda type_, earlier: type_.size > 0 and slot.accepts(type_, earlier), fresh)


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


def _of(function: str, **extra) -> dict[str, Spelling]:
    return {**shared(function, **extra)}  # type: ignore[dict-item]


_BATCH = _of("batch_norm_training")
batch_norm_training = OpSpec(
    "batch_norm_training", "norm", (_full(normalizable(2)), channel_parameter(), channel_parameter()), _training_type,
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


def _layer_norm(args: Sequence[Bounded], call: Call) -> Bounded:
    return _plain(standardized(args[0], tuple(range(-number(call.attrs, "last"), 0)), epsilon_of(call)))


def _instance_norm(args: Sequence[Bounded], call: Call) -> Bounded:
    return _plain(standardized(args[0], tuple(range(2, args[0].value.ndim)), epsilon_of(call)))


def _last(d: Draw, operands: Types, attrs: Attrs) -> int:
    """How many axes, counted from the last one; axis 0 may be empty."""
    rank = operands[0].rank
    return d.integer(1, max(1, rank - 1 if 0 in operands[0].shape else rank))


def _layer_type(operands: Types, attrs: Attrs) -> TensorType:
    x, last = operands[0], number(attrs, "last")
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


_LAYER, _INSTANCE = _of("layer_norm_plain"), _of("instance_norm_plain")
layer_norm_plain = OpSpec(
    "layer_norm_plain", "norm", (normalizable(1),), _layer_type, _layer_norm,
    attrs={"last": _last, "epsilon": EPSILON},
    torch="torch.nn.functional.layer_norm({0}, {shape0}[-{last}:], eps={epsilon})",
    tensorflow=_LAYER["tensorflow"], jax="jax.nn.standardize({0}, axis=tuple(range(-{last}, 0)), epsilon={epsilon})",
    relax=_LAYER["relax"],
    onnx='g.op("LayerNormalization", {0}, g.const(np.ones({shape0}[-{last}:]), {name}), axis=-{last}, '
    "epsilon={epsilon}, stash_type={dtype})",
)  # fmt: skip

instance_norm_plain = OpSpec(
    "instance_norm_plain", "norm", (normalizable(3),), channels_type(3), _instance_norm, attrs={"epsilon": EPSILON},
    torch=_instance_torch, tensorflow=_INSTANCE["tensorflow"], jax=_INSTANCE["jax"], relax=_INSTANCE["relax"],
    onnx=_instance_onnx,
)  # fmt: skip


# ---- by neighbouring channels -------------------------------------------------------------------------


def _windows(x: Array, size: int) -> Array:
    """Of `size` channels around each, zeros beyond the ends: in a new last axis."""
    half = size // 2
    wide = np.pad(x, [(0, 0), (half, half), *[(0, 0)] * (x.ndim - 2)])
    return np.stack([wide[:, i : i + x.shape[1]] for i in range(size)], axis=-1)


def _local_response(args: Sequence[Bounded], call: Call) -> Bounded:
    """x / (k + alpha / size * sum of the squares of `size` channels) ^ beta. The squares' sum takes size + 4 roundings;
    pow 16 ulp and the division 2.5 (OpenCL), or a product with the power of minus beta. k is positive. With an
    infinity among the squares, or sums that may overflow, the result is undetermined, unless x is NaN."""
    x, size = args[0], number(call.attrs, "size")
    p = PRECISION[x.dtype]
    unit = p.unit + U64
    alpha, beta, k = (call.number(name) for name in ("alpha", "beta", "k"))
    with np.errstate(all="ignore"):
        finite = np.isfinite(x.value) & np.isfinite(x.error)
        value, error = np.where(finite, x.value, 0.0), np.where(finite, x.error, 0.0)
        squares = np.sum(_windows(value * value, size), -1)
        moved = np.sum(_windows(error * (2 * np.abs(value) + error), size), -1)
        total = k + alpha / size * squares
        off = alpha / size * moved + gamma(size + 4, unit) * (total + alpha / size * moved) + 2 * p.tiny
        power, top = total**-beta, np.maximum(total - off, k * (1 - 4 * unit)) ** -beta
        relative = np.maximum(top / power - 1, 1 - ((total + off) / total) ** -beta) + 34 * unit
        spread = error * power * (1 + relative) + np.abs(value) * power * relative
        wild = np.sum(_windows(~finite * 1.0, size), -1) > 0
        wild |= size * (np.max(_windows(np.abs(value) + error, size), -1)) ** 2 > p.largest / (4 * max(1.0, alpha))
        nan = np.isnan(x.value) & ~x.undetermined
        spread = np.where(nan, 0.0, np.where(wild, np.inf, spread))
        return rounded(np.where(nan, np.nan, value * power), spread, x.dtype, 2.5)


def _local_type(operands: Types, attrs: Attrs) -> TensorType:
    x, size = operands[0], number(attrs, "size")
    if x.rank != 4 or x.size == 0 or size < 1 or size % 2 == 0:
        raise TypeRuleError(f"no response over {size} channels of {x}")
    if attrs["beta"] not in BETAS:
        raise TypeRuleError(f"beta {attrs['beta']!r} is none of {BETAS}")
    for name in ("alpha", "k"):
        value = attrs[name]
        if not isinstance(value, float) or value <= 0:
            raise TypeRuleError(f"{name} {value!r} is not a positive float")
    return x


def _local_tensorflow(call: Call) -> str:
    if call.result.dtype != "float32":
        composed = _LOCAL["tensorflow"]
        assert callable(composed)
        return str(composed(call))
    return "local_response_norm_native({0}, {size}, {alpha}, {beta}, {k})"


def _local_onnx(call: Call) -> str:
    if call.result.dtype != "float32":  # ONNX Runtime has a kernel for float only
        composed = _LOCAL["onnx"]
        assert callable(composed)
        return str(composed(call))
    return 'g.op("LRN", {0}, size={size}, alpha={alpha}, beta={beta}, bias={k})'


_LOCAL = _of("local_response_norm")
_RULES: dict[str, AttrRule] = {
    "size": one_of(3, 1, 5), "alpha": one_of(1.0, 0.5, 2.0**-10), "beta": one_of(*BETAS), "k": one_of(1.0, 2.0),
}  # fmt: skip
local_response_norm = OpSpec(
    "local_response_norm", "norm", (_full(normalizable(4, 4)),), _local_type, _local_response, attrs=_RULES,
    torch="torch.nn.functional.local_response_norm({0}, {size}, {alpha}, {beta}, {k})",
    tensorflow=_local_tensorflow, jax=_LOCAL["jax"], relax=_LOCAL["relax"], onnx=_local_onnx,
)  # fmt: skip

STANDARDS: tuple[OpSpec, ...] = (batch_norm_training, layer_norm_plain, instance_norm_plain, local_response_norm)
