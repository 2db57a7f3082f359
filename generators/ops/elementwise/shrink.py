"""Numbers nearer to zero by a bias, where they are beyond a threshold, and zero within: the soft and the hard shrinkage
in one, of whole numbers, too."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from generators.bounds.bounded import Bounded, add, ends, exact
from generators.graph import FLOATS, Attr, TensorType
from generators.ops.composed import given, undetermined
from generators.ops.slots import numeric, one_of, same_as
from generators.ops.spec import Attrs, Call, Draw, OpSpec, Spelling, TypeRuleError, Types


def _bias(d: Draw, operands: Types, attrs: Attrs) -> Attr:
    return d.choice((0.0, 1.0, 0.5) if operands[0].dtype in FLOATS else (0.0, 1.0, 3.0))


def _type(operands: Types, attrs: Attrs) -> TensorType:
    lambd, bias, dtype = attrs["lambd"], attrs["bias"], operands[0].dtype
    if not isinstance(lambd, float) or not isinstance(bias, float) or lambd < 0 or bias < 0:
        raise TypeRuleError(f"no threshold {lambd!r} and bias {bias!r}")
    if dtype not in FLOATS and (bias % 1 or bias > 100):
        raise TypeRuleError(f"{bias} is no {dtype}")
    return same_as(0)(operands, attrs)


def _floating(x: Bounded, lambd: float, bias: float) -> Bounded:
    """One rounding beyond the threshold. NaN is undetermined: it is "0 otherwise", and may stay NaN."""
    low, high = ends(x)
    with np.errstate(all="ignore"):
        side = np.where(x.value > lambd, 1.0, np.where(x.value < -lambd, -1.0, 0.0))
        moved = add(x, given(-bias * side, x.dtype))
        other = (np.sign(low) * (np.abs(low) > lambd) != side) | (np.sign(high) * (np.abs(high) > lambd) != side)
        other |= x.undetermined | np.isnan(x.value)
    result = Bounded(np.where(side == 0, 0.0, moved.value), np.where(side == 0, 0.0, moved.error), x.dtype)
    return undetermined(result, other)


def _shrink(args: Sequence[Bounded], call: Call) -> Bounded:
    x, lambd, bias = args[0], call.number("lambd"), call.number("bias")
    if x.floating:
        return _floating(x, lambd, bias)
    info, step, edge = np.iinfo(x.dtype), int(bias), int(np.floor(lambd))
    with np.errstate(all="ignore"):
        above, below = x.value > edge, x.value < -edge if info.min else np.zeros(x.value.shape, bool)
        value = np.where(above, x.value - x.value.dtype.type(step), 0)
        value = np.where(below, x.value + x.value.dtype.type(step), value)
    return exact(value, x.dtype, x.undetermined)


def _signed(whole: str, upper: str) -> Spelling:
    """The text with numbers for <high>, <low> and <step>: what numbers have to be beyond, and by what they move; of
    numbers without a sign `upper`, which asks only above."""

    def spell(call: Call) -> str:
        dtype, lambd, bias = call.result.dtype, call.number("lambd"), call.number("bias")
        if dtype not in FLOATS:
            lambd, bias = int(np.floor(lambd)), int(bias)
        text = upper if dtype.startswith("u") else whole
        return text.replace("<high>", repr(lambd)).replace("<low>", repr(-lambd)).replace("<step>", repr(bias))

    return spell


def _by_where(where: str, zeros: str) -> Spelling:
    upper = f"{where}({{0}} > <high>, {{0}} - <step>, %s)"
    return _signed(upper % f"{where}({{0}} < <low>, {{0}} + <step>, {zeros})", upper % zeros)


_RELAX = "relax.op.where(relax.op.greater({0}, relax.const(<high>, {dtype})), "
_RELAX += "relax.op.subtract({0}, relax.const(<step>, {dtype})), %s)"
_ZEROS = "relax.op.zeros_like({0})"
_BELOW = "relax.op.where(relax.op.less({0}, relax.const(<low>, {dtype})), "
_BELOW += f"relax.op.add({{0}}, relax.const(<step>, {{dtype}})), {_ZEROS})"

shrink = OpSpec(
    "shrink", "activation", (numeric(),), _type, _shrink,
    attrs={"lambd": one_of(0.5, 1.5, 0.0, 3.0), "bias": _bias},
    torch=_by_where("torch.where", "torch.zeros_like({0})"), tensorflow=_by_where("tf.where", "tf.zeros_like({0})"),
    jax=_by_where("jnp.where", "jnp.zeros_like({0})"), relax=_signed(_RELAX % _BELOW, _RELAX % _ZEROS),
    onnx='g.op("Shrink", {0}, lambd={lambd}, bias={bias})',
)  # fmt: skip

OPERATORS: tuple[OpSpec, ...] = (shrink,)
