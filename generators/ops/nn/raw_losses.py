"""Losses and scores as TensorFlow has them beside the common ones: cross entropy with probabilities as labels, its
derivative by the scores, half the sum of squares, and whether a class is among the best."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from generators.bounds.bounded import Bounded, add, exact, multiply
from generators.bounds.products import bilinear
from generators.bounds.sums import scaled_square, summed
from generators.graph import FLOATS, TensorType
from generators.ops.composed import compute, undetermined
from generators.ops.reduce.softmax import log_softmax, softmax
from generators.ops.slots import floating, int_of, like, one_of, tensor
from generators.ops.spec import Attrs, Call, OpSpec, Slot, TypeRuleError, Types, unsupported

# ---- cross entropy ------------------------------------------------------------------------------------


def _entropy_type(operands: Types, attrs: Attrs) -> TensorType:
    x = operands[0]
    if x.rank != 2 or x.size == 0 or operands[1] != x or x.dtype not in FLOATS:
        raise TypeRuleError(f"no labels {operands[1]} of scores {x}")
    if attrs["output"] not in ("loss", "backprop"):
        raise TypeRuleError(f"no result {attrs['output']!r}")
    return x if attrs["output"] == "backprop" else TensorType(x.dtype, x.shape[:1])


def _entropy(args: Sequence[Bounded], call: Call) -> Bounded:
    """The sum of labels by logarithms of softmax, negative; softmax minus labels. Where a score is not finite, 0 by
    infinity is left open."""
    x, labels = args
    if call.attrs["output"] == "backprop":
        return add(compute(softmax, x, axis=-1), labels, -1.0)
    logarithms = compute(log_softmax, x, axis=-1)
    negative = Bounded(-logarithms.value, logarithms.error, x.dtype)
    loss = bilinear(lambda a, b: np.sum(a * b, axis=-1), labels, negative, x.value.shape[-1])
    wild = ~np.isfinite(x.value) | ~np.isfinite(labels.value) | ~np.isfinite(logarithms.value)
    open_ = wild.any(-1) | ~np.isfinite(loss.value)
    return undetermined(Bounded(np.where(open_, 0.0, loss.value), loss.error, x.dtype), open_)


softmax_cross_entropy = OpSpec(
    "softmax_cross_entropy", "loss", (floating(2, 2, nonempty=True), like(0)), _entropy_type, _entropy,
    attrs={"output": one_of("loss", "backprop")},
    torch=lambda call: "torch.nn.functional.cross_entropy({0}, {1}, reduction='none')"
    if call.attrs["output"] == "loss" else "torch.softmax({0}, 1) - {1}",
    tensorflow="tf.raw_ops.SoftmaxCrossEntropyWithLogits(features={0}, labels={1}).{output}".replace(
        ".{output}", "[{output} == 'backprop']"),
    jax=lambda call: "-jnp.sum({1} * jax.nn.log_softmax({0}, 1), 1)"
    if call.attrs["output"] == "loss" else "jax.nn.softmax({0}, 1) - {1}",
    relax=unsupported("it has no such operator"), onnx=unsupported("it has no such operator"),
)  # fmt: skip

# ---- half the sum of squares --------------------------------------------------------------------------


def _half_squares(args: Sequence[Bounded], call: Call) -> Bounded:
    squares = scaled_square(args[0])
    total = summed(squares, np.sum, args[0].value.size, overflows=False)
    half = Bounded(np.asarray(0.5), np.zeros(()), total.dtype)
    return multiply(total, half)


l2_loss = OpSpec(
    "l2_loss", "loss", (floating(min_rank=1, nonempty=True),),
    lambda operands, attrs: TensorType(operands[0].dtype, ()), _half_squares,
    torch="torch.sum({0} * {0}) / 2", tensorflow="tf.nn.l2_loss({0})", jax="jnp.sum(jnp.square({0})) / 2",
    relax="relax.op.multiply(relax.op.sum(relax.op.square({0})), relax.const(0.5, {name}))",
    onnx='g.op("Mul", g.op("ReduceSumSquare", {0}, keepdims=0), g.const(0.5, {name}))',
)  # fmt: skip

# ---- among the best -----------------------------------------------------------------------------------


def _accepts_targets(type_: TensorType, earlier: Types) -> bool:
    return type_.dtype in ("int32", "int64") and type_.shape == earlier[0].shape[:1]


def _best_type(operands: Types, attrs: Attrs) -> TensorType:
    if operands[0].rank != 2 or not _accepts_targets(operands[1], operands) or int_of(attrs, "k") < 1:
        raise TypeRuleError(f"no {attrs['k']} best of {operands[0]}")
    return TensorType("bool", operands[1].shape)


def _best(args: Sequence[Bounded], call: Call) -> Bounded:
    """Fewer than k scores are greater: those that are equal to the k-th are all among the best. A class that there is
    not is not among them (kernels/in_topk_op.h). Nothing is said of other rows with NaN and infinities, or of scores
    too near each other to be compared."""
    x, classes = args
    there = (classes.value >= 0) & (classes.value < x.value.shape[1])
    place = np.where(there, classes.value, 0)[:, None].astype(np.int64)
    own, error = np.take_along_axis(x.value, place, 1), np.take_along_axis(x.error, place, 1)
    with np.errstate(all="ignore"):
        room = x.error + error
        surely = x.value - own > room
        perhaps = (np.abs(x.value - own) <= room) & (room > 0)
        perhaps[np.arange(len(own)), place[:, 0]] = False
    k = int_of(call.attrs, "k")
    low = surely.sum(1)
    high = low + (perhaps & ~surely).sum(1)
    loose = there & (~np.isfinite(x.value).all(1) | (low < k) & (high >= k) | x.undetermined.any(1))
    return exact(there & ((x.value > own).sum(1) < k), "bool", loose)


_THERE = "({1} >= 0) & ({1} < {0}.shape[1])"
"""Frameworks without the operator: a class outside is that of the nearest end, and then left out."""


in_top_k = OpSpec(
    "in_top_k", "sorting",
    (tensor(("float32",), 2, 2, nonempty=True),
     Slot(_accepts_targets, lambda d, e: TensorType(d.choice(("int32", "int64")), e[0].shape[:1]),
          lambda e: (-1, e[0].shape[1]))),
    _best_type, _best, attrs={"k": one_of(1, 2, 3, 40)},
    torch="(torch.sum({0} > torch.gather({0}, 1, {1}[:, None].long().clamp(0, {0}.shape[1] - 1)), 1) < {k}) & "
    + _THERE,
    tensorflow=lambda call: "tf.raw_ops.InTopK(predictions={0}, targets={1}, k={k})" if int_of(call.attrs, "k") == 3
    else "tf.math.in_top_k({1}, {0}, tf.constant({k}, {1}.dtype))",
    jax="(jnp.sum({0} > jnp.take_along_axis({0}, jnp.clip({1}, 0, {0}.shape[1] - 1)[:, None], 1), 1) < {k}) & "
    + _THERE,
    relax=unsupported("it has no such operator"), onnx=unsupported("it has no such operator"),
)  # fmt: skip

OPERATORS: tuple[OpSpec, ...] = (softmax_cross_entropy, l2_loss, in_top_k)
