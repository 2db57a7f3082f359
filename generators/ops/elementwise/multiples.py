"""Sums and differences with a multiple of the second operand, which PyTorch has an argument for."""

from __future__ import annotations

from collections.abc import Sequence

from generators.bounds.bounded import Bounded, add
from generators.bounds.sums import scaled_product
from generators.graph import FLOATS, INTEGERS, Attr, TensorType
from generators.ops.elementwise.records import NUMERIC_PAIR
from generators.ops.elementwise.references import wrapping
from generators.ops.elementwise.scalars import number
from generators.ops.slots import broadcast, within
from generators.ops.spec import Attrs, Call, Draw, OpSpec, TypeRuleError, Types

_FLOATS, _INTEGERS = (2, 0.5, -1, 3, 0.1, -2.5, 0.0), (2, -1, 3, 7, 0)


def _factor(d: Draw, operands: Types, attrs: Attrs) -> Attr:
    return d.choice(_FLOATS if operands[0].dtype in FLOATS else within(operands[0].dtype, _INTEGERS))


def _typed(operands: Types, attrs: Attrs) -> TensorType:
    value, result = attrs["scalar"], broadcast()(operands, attrs)
    known = _FLOATS if result.dtype in FLOATS else within(result.dtype, _INTEGERS) if result.dtype in INTEGERS else ()
    if isinstance(value, bool) or value not in known:
        raise TypeRuleError(f"no multiple by {value!r} of {operands[1]}")
    return result


def _multiple(name: str, sign: int, symbol: str, relax: str, onnx: str, turned: bool = False) -> OpSpec:
    """The product is rounded, or it is not, as in fused multiply-add, where it does not overflow either; so is the sum.
    turned: it is the first operand that is multiplied, and taken from the second."""
    x, y = ("{1}", "{0}") if turned else ("{0}", "{1}")

    def reference(args: Sequence[Bounded], call: Call) -> Bounded:
        x, y = reversed(args) if turned else args
        factor = number(call.attrs["scalar"], y)
        if x.floating:
            return add(x, scaled_product(y, factor), sign)
        return wrapping(lambda a, b: a + b if sign > 0 else a - b, x, wrapping(lambda a, b: a * b, y, factor))

    return OpSpec(
        f"{name}_multiple", "binary", NUMERIC_PAIR, _typed, reference, attrs={"scalar": _factor},
        torch=f"torch.{name}({{0}}, {{1}}, alpha={{scalar}})",
        tensorflow=f"{x} {symbol} tf.constant({{scalar}}, {{dtype}}) * {y}",
        jax=f"{x} {symbol} {{scalar}} * {y}",
        relax=f"relax.op.{relax}({x}, relax.op.multiply({y}, relax.const({{scalar}}, {{dtype}})))",
        onnx=f'g.op("{onnx}", {x}, g.op("Mul", {y}, g.const({{scalar}}, {{name}})))',
    )  # fmt: skip


OPERATORS: tuple[OpSpec, ...] = (
    _multiple("add", 1, "+", "add", "Add"),
    _multiple("sub", -1, "-", "subtract", "Sub"),
    _multiple("rsub", -1, "-", "subtract", "Sub", turned=True),
)
