"""The statistics that a batch normalisation keeps while it is trained: a part of the old ones, and the rest from the
batch. ONNX' momentum is the share of the old ones, PyTorch's and Relax' that of the new ones; ONNX and Relax keep the
variance of the batch itself, PyTorch that of the population it is a sample of."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from generators.bounds.bounded import Bounded, add, multiply
from generators.bounds.sums import average, summed, variance_of
from generators.graph import TensorType
from generators.ops.composed import given, undetermined
from generators.ops.nn.normalized_operands import channel_parameter, full, normalizable
from generators.ops.slots import one_of
from generators.ops.spec import Attrs, Call, OpSpec, TypeRuleError, Types

OUTPUTS, MOMENTA = ("mean", "variance"), (0.75, 0.5, 0.875, 0.125)
"""Every dtype holds both shares."""


def _type(operands: Types, attrs: Attrs) -> TensorType:
    x, old = operands
    if 0 in x.shape or old != TensorType(x.dtype, x.shape[1:2]):
        raise TypeRuleError(f"{x} has no statistics beside {old}")
    if attrs["output"] not in OUTPUTS or attrs["momentum"] not in MOMENTA:
        raise TypeRuleError(f"no {attrs['output']!r} by {attrs['momentum']!r}")
    return old


def _axes(call: Call) -> tuple[int, ...]:
    return (0, *range(2, call.operands[0].rank))


def _reference(args: Sequence[Bounded], call: Call) -> Bounded:
    """Two products and a sum; what the batch has is undetermined where an element is not finite."""
    (x, old), axes, kept = args, _axes(call), call.number("momentum")
    count = x.value.size // x.value.shape[1]
    if call.attrs["output"] == "mean":
        new = average(summed(x, lambda a: np.sum(a, axis=axes), count, overflows=False), count)
    else:
        new = variance_of(x, axes, False)
    wild = ~np.isfinite(x.value).all(axes) | x.undetermined.any(axes) | ~np.isfinite(new.value)
    new = Bounded(np.where(wild, 0.0, new.value), new.error, x.dtype)
    whole = add(multiply(old, given(kept, x.dtype)), multiply(new, given(1 - kept, x.dtype)))
    return undetermined(whole, wild)


def _by(mean: str, variance: str, *, whole: str = "{momentum} * {1} + <rest> * (%s)") -> Callable[[Call], str]:
    """A dialect's spelling, by what it writes for the mean and for the variance in place of %s."""

    def spell(call: Call) -> str:
        text = whole % (mean if call.attrs["output"] == "mean" else variance)
        place = str(1 + OUTPUTS.index(str(call.attrs["output"])))
        said = {"<rest>": repr(1 - call.number("momentum")), "<axes>": repr(_axes(call)), "<place>": place}
        for name, value in said.items():
            text = text.replace(name, value)
        return text

    return spell


def _torch(call: Call) -> str:
    """The function that exporters meet; of one element a channel, and of the variance, what it would compute."""
    x = call.operands[0]
    if call.attrs["output"] == "variance" or x.size <= x.shape[1]:
        return _by("torch.mean({0}, <axes>)", "torch.var({0}, <axes>, correction=0)")(call)
    share = 1 - call.number("momentum")
    operands = f"{{0}}, None, None, {{1}}, torch.ones_like({{1}}), True, {share!r}, 2.0**-10"
    return f"torch.ops.aten._native_batch_norm_legit_functional({operands})[3]"


_ONES, _ZEROS = "relax.op.ones_like({1})", "relax.op.zeros_like({1})"


def _onnx(number: int) -> str:
    return f"g.const([{number}] * {{shape0}}[1], {{name}})"


OPERATORS: tuple[OpSpec, ...] = (
    OpSpec(
        "running_statistics", "norm", (full(normalizable(2)), channel_parameter()), _type, _reference,
        attrs={"output": one_of(*OUTPUTS), "momentum": one_of(*MOMENTA)},
        torch=_torch, tensorflow=_by("tf.reduce_mean({0}, <axes>)", "tf.math.reduce_variance({0}, <axes>)"),
        jax=_by("jnp.mean({0}, <axes>)", "jnp.var({0}, <axes>)"),
        relax=_by(
            f"{{1}}, {_ONES}", f"{_ZEROS}, {{1}}",
            whole=f"relax.op.nn.batch_norm({{0}}, {_ONES}, {_ZEROS}, %s, axis=1, epsilon=2.0**-10, momentum=<rest>, "
            "training=True)[<place>]",
        ),
        onnx=_by(
            f"{{1}}, {_onnx(1)}", f"{_onnx(0)}, {{1}}",
            whole=f'g.op("BatchNormalization", {{0}}, {_onnx(1)}, {_onnx(0)}, %s, epsilon=2.0**-10, '
            "momentum={momentum}, training_mode=1, outputs=3, pick=<place>)",
        ),
    ),
)  # fmt: skip
