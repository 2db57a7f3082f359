"""Records of elementwise operators whose names, or texts, are alike in the frameworks."""

from __future__ import annotations

from collections.abc import Mapping

from generators.graph import TensorType
from generators.ops.slots import broadcast, broadcastable, floating, numeric, same_as
from generators.ops.spec import (
    AttrRule,
    Attrs,
    OpSpec,
    Reference,
    ResultRule,
    Slot,
    Spelling,
    Types,
    Unsupported,
    unsupported,
)

NO_TENSORFLOW = unsupported("TensorFlow has no such operator")
NO_RELAX = unsupported("Relax has no such operator")
NO_ONNX = unsupported("ONNX has no such operator")
NUMERIC_PAIR = (numeric(), broadcastable(0))
FLOAT_PAIR = (floating(), broadcastable(0))


def boolean_result(operands: Types, attrs: Attrs) -> TensorType:
    return TensorType("bool", operands[0].shape)


def by_dtype(text: str, **others: str) -> Spelling:
    """`text`, or another one for the dtypes named. In ONNX attributes are float32, too short for double, and
    ONNX Runtime has few kernels for double: that is spelled out in arithmetic instead."""
    return lambda call: others.get(call.result.dtype, text)


# ---- one operand --------------------------------------------------------------------------------------


def _spelled(
    name: str,
    reference: Reference,
    torch: str,
    tensorflow: str,
    jax: str,
    relax: str | Unsupported,
    onnx: str | Unsupported,
    *,
    operand: Slot | None = None,
    result: ResultRule | None = None,
    signed_zero: bool = False,
) -> OpSpec:
    """A spelling without a parenthesis is the name of a function (or ONNX operator) of the one operand."""

    def applied(text: str | Unsupported, template: str = "{name}({{0}})") -> Spelling:
        return template.format(name=text) if isinstance(text, str) and "(" not in text else text

    return OpSpec(
        name, "unary", (operand or floating(),), result or same_as(0), reference,
        torch=applied(torch), tensorflow=applied(tensorflow), jax=applied(jax), relax=applied(relax),
        onnx=applied(onnx, 'g.op("{name}", {{0}})'), signed_zero=signed_zero,
    )  # fmt: skip


def unary(
    name: str,
    reference: Reference,
    onnx: str | Unsupported,
    *,
    torch: str = "",
    tensorflow: str = "",
    jax: str = "",
    relax: str | Unsupported = "",
    operand: Slot | None = None,
    result: ResultRule | None = None,
    signed_zero: bool = True,
) -> OpSpec:
    """The frameworks call it `name`, except where another name is given."""
    return _spelled(
        name, reference, torch or f"torch.{name}", tensorflow or f"tf.math.{name}", jax or f"jnp.{name}",
        relax or f"relax.op.{name}", onnx, operand=operand, result=result, signed_zero=signed_zero,
    )  # fmt: skip


def numpy_unary(
    name: str,
    reference: Reference,
    *,
    torch: Spelling = "",
    tensorflow: Spelling = "",
    jax: Spelling = "",
    relax: Spelling,
    onnx: Spelling,
    attrs: Mapping[str, AttrRule] | None = None,
    result: ResultRule | None = None,
    signed_zero: bool = False,
) -> OpSpec:
    """PyTorch, and the numpy interfaces of TensorFlow and JAX call it `name`, except where another text is given."""
    return OpSpec(
        name, "unary", (floating(),), result or same_as(0), reference, attrs=attrs or {},
        torch=torch or f"torch.{name}({{0}})", tensorflow=tensorflow or f"tf.experimental.numpy.{name}({{0}})",
        jax=jax or f"jnp.{name}({{0}})", relax=relax, onnx=onnx, signed_zero=signed_zero,
    )  # fmt: skip


# ---- two operands -------------------------------------------------------------------------------------


def binary(
    name: str,
    operands: tuple[Slot, ...],
    reference: Reference,
    *,
    torch: Spelling,
    tensorflow: Spelling,
    jax: Spelling,
    relax: Spelling,
    onnx: Spelling,
    signed_zero: bool = False,
) -> OpSpec:
    return OpSpec(
        name, "binary", operands, broadcast(), reference,
        torch=torch, tensorflow=tensorflow, jax=jax, relax=relax, onnx=onnx, signed_zero=signed_zero,
    )  # fmt: skip


def numpy_binary(
    name: str,
    reference: Reference,
    *,
    torch: Spelling = "",
    tensorflow: Spelling = "",
    jax: Spelling = "",
    relax: Spelling,
    onnx: Spelling,
    operands: tuple[Slot, ...] = FLOAT_PAIR,
    result: ResultRule | None = None,
    attrs: Mapping[str, AttrRule] | None = None,
    signed_zero: bool = False,
) -> OpSpec:
    """PyTorch, and the numpy interfaces of TensorFlow and JAX call it `name`, except where another text is given."""
    return OpSpec(
        name, "binary", operands, result or broadcast(), reference, attrs=attrs or {}, signed_zero=signed_zero,
        torch=torch or f"torch.{name}({{0}}, {{1}})",
        tensorflow=tensorflow or f"tf.experimental.numpy.{name}({{0}}, {{1}})",
        jax=jax or f"jnp.{name}({{0}}, {{1}})", relax=relax, onnx=onnx,
    )  # fmt: skip


# ---- activation functions -----------------------------------------------------------------------------


def activation(
    name: str,
    reference: Reference,
    torch: str,
    tensorflow: Spelling,
    jax: Spelling,
    relax: Spelling,
    onnx: Spelling,
    attrs: Mapping[str, AttrRule] | None = None,
    operands: tuple[Slot, ...] | None = None,
    result: ResultRule | None = None,
) -> OpSpec:
    return OpSpec(
        name, "activation", operands or (floating(),), result or same_as(0), reference, attrs=attrs or {},
        torch=f"torch.nn.functional.{torch}", tensorflow=tensorflow, jax=jax, relax=relax, onnx=onnx,
    )  # fmt: skip
