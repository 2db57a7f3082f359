"""TensorFlow's fused batch normalisation, all three versions: channels last, with given statistics or those of the
batch, of which mean and variance are results, too."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from generators.bounds.bounded import Bounded, multiply
from generators.bounds.sums import average, summed, variance_of
from generators.graph import TensorType
from generators.ops.composed import compute, given, undetermined
from generators.ops.nn.normalization import COARSE, batch_norm, batch_norm_training
from generators.ops.slots import computed, draw_dim, flag, int_of, one_of
from generators.ops.spec import Attrs, Call, Draw, OpSpec, Slot, TypeRuleError, Types, unsupported

Array = np.ndarray

OUTPUTS = ("y", "mean", "variance")


def _accepts(type_: TensorType, earlier: Types) -> bool:
    return type_.dtype == "float32" and type_.rank in (4, 5) and 0 < type_.size <= 2048


def _fresh(d: Draw, earlier: Types) -> TensorType:
    axes = d.choice((2, 3))
    spatial = [draw_dim(d, 7 - axes, zero=False) for _ in range(axes)]  # no more elements than are accepted
    return TensorType("float32", (d.choice((2, 1, 3)), *spatial, d.choice((2, 1, 3, 9))))


def _channels(earlier: Types) -> TensorType:
    return TensorType("float32", earlier[0].shape[-1:])


def _type(operands: Types, attrs: Attrs) -> TensorType:
    if not _accepts(operands[0], ()) or attrs["output"] not in OUTPUTS or int_of(attrs, "last") not in (1, 2, 3):
        raise TypeRuleError(f"no normalisation of {operands[0]}")
    if int_of(attrs, "last") < 3 and operands[0].rank == 5:
        raise TypeRuleError("volumes came with the third version")
    return operands[0] if attrs["output"] == "y" else _channels(operands)


def _version(d: Draw, operands: Types, attrs: Attrs) -> int:
    return 3 if operands[0].rank == 5 else d.choice((3, 2, 1))


def _reference(args: Sequence[Bounded], call: Call) -> Bounded:
    x, scale, offset, mean, variance = args
    last = x.value.ndim - 1
    axes, count = tuple(range(last)), x.value.size // x.value.shape[-1]
    output, training = call.attrs["output"], call.attrs["training"]
    if output == "y":
        epsilon = call.number("epsilon")
        front = x.map(lambda a: np.moveaxis(a, -1, 1))
        y = (
            compute(batch_norm_training, front, scale, offset, epsilon=epsilon)
            if training
            else compute(batch_norm, front, scale, offset, mean, variance, epsilon=epsilon)
        )
        y = y.map(lambda a: np.moveaxis(a, 1, -1))
        return undetermined(y, ~np.isfinite(x.value).all(axes) | ~np.isfinite(y.value)) if training else y
    if not training:
        return mean if output == "mean" else variance
    if output == "mean":
        found = average(summed(x, lambda a: np.sum(a, axis=axes), count, overflows=False), count)
    else:  # of a sample, which divides by one less
        whole = variance_of(x, axes, False)
        bessel = given(count / max(1, count - 1), x.dtype)
        found = multiply(multiply(whole, bessel), given(1.0, x.dtype))
    wild = ~np.isfinite(x.value).all(axes) | ~np.isfinite(found.value)
    return undetermined(Bounded(np.where(wild, 0.0, found.value), found.error, x.dtype), wild)


def _text(call: Call) -> str:
    last = int_of(call.attrs, "last")
    place = OUTPUTS.index(str(call.attrs["output"]))
    form = '"NDHWC"' if call.operands[0].rank == 5 else '"NHWC"'
    return (
        f"tf.raw_ops.FusedBatchNorm{'' if last == 1 else f'V{last}'}(x={{0}}, scale={{1}}, offset={{2}}, "
        f"mean={{3}}, variance={{4}}, epsilon={{epsilon}}, data_format={form}, is_training={{training}})[{place}]"
    )


_WHY = unsupported("it has no operator of these results; batch_norm and batch_norm_training are the common ones")
OPERATORS: tuple[OpSpec, ...] = (
    OpSpec(
        "fused_batch_norm", "norm",
        (Slot(_accepts, _fresh), *(computed(_channels) for _ in range(3)), computed(_channels, lambda earlier: (0, 4))),
        _type, _reference,
        attrs={"training": flag(), "output": one_of(*OUTPUTS), "epsilon": COARSE, "last": _version},
        torch=_WHY, tensorflow=_text, jax=_WHY, relax=_WHY, onnx=_WHY,
    ),
)  # fmt: skip
