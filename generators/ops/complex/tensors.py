"""Operators of whole tensors of complex numbers: views as pairs, sums, products."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import numpy as np

from generators.bounds import complex_values
from generators.bounds.bounded import Bounded
from generators.graph import COMPLEX, COMPONENT, TensorType
from generators.ops.complex.elementwise import NO_ONNX, NO_RELAX, NUMBER, WHOLE, part_type
from generators.ops.slots import (
    MAX_ELEMENTS,
    axes_of,
    draw_dim,
    draw_dtype,
    draw_shape,
    flag,
    like,
    normalized,
    reduced,
    tensor,
)
from generators.ops.spec import Attrs, Call, Draw, OpSpec, Slot, TypeRuleError, Types

# ---- views --------------------------------------------------------------------------------------------


def _pairs_type(operands: Types, attrs: Attrs) -> TensorType:
    parts = part_type(operands, attrs)
    return TensorType(parts.dtype, (*parts.shape, 2))


def paired(x: Bounded) -> Bounded:
    real, imag = complex_values.parts(x)
    return Bounded(np.stack([real.value, imag.value], -1), np.stack([x.error] * 2, -1), real.dtype)


def whole(x: Bounded, dtype: str) -> Bounded:
    real, imag = (x.map(lambda array, i=i: array[..., i]) for i in (0, 1))
    return complex_values.joined(real, imag, dtype)


def _accepts_pairs(type_: TensorType, earlier: Types) -> bool:
    return type_.dtype in WHOLE and 1 <= type_.rank <= 5 and type_.shape[-1] == 2


def _fresh_pairs(d: Draw, earlier: Types) -> TensorType:
    return TensorType(draw_dtype(d, tuple(WHOLE)), (*draw_shape(d)[:3], 2))


def _unpaired_type(operands: Types, attrs: Attrs) -> TensorType:
    if not _accepts_pairs(operands[0], ()):
        raise TypeRuleError(f"{operands[0]} holds no pairs")
    return TensorType(WHOLE[operands[0].dtype], operands[0].shape[:-1])


# ---- sums ---------------------------------------------------------------------------------------------


def _summed(args: Sequence[Bounded], call: Call) -> Bounded:
    axes = normalized(call.attrs["axes"], call.operands[0].rank)
    count = prod(call.operands[0].shape[axis] for axis in axes)
    return complex_values.added_up(args[0], axes, bool(call.attrs["keepdims"]), count)


def _mean(args: Sequence[Bounded], call: Call) -> Bounded:
    """The sum by its number of terms, which may be done as a quotient of complex numbers."""
    axes = normalized(call.attrs["axes"], call.operands[0].rank)
    count = prod(call.operands[0].shape[axis] for axis in axes)
    total = _summed(args, call)
    return complex_values.rounded(
        total.value / count, total.error / count, total.dtype, complex_values.QUOTIENT, total.undetermined
    )


def _reduction(name: str, reference: Callable, torch: str, tensorflow: str, jax: str, nonempty: bool) -> OpSpec:
    return OpSpec(
        name, "complex", (tensor(COMPLEX, min_rank=1, nonempty=nonempty),), reduced(), reference,
        attrs={"axes": axes_of(), "keepdims": flag()},
        torch=f"torch.{torch}({{0}}, dim={{axes}}, keepdim={{keepdims}})",
        tensorflow=f"tf.{tensorflow}({{0}}, axis={{axes}}, keepdims={{keepdims}})",
        jax=f"jnp.{jax}({{0}}, axis={{axes}}, keepdims={{keepdims}})", relax=NO_RELAX, onnx=NO_ONNX,
    )  # fmt: skip


# ---- products -----------------------------------------------------------------------------------------

_MATRIX = tensor(COMPLEX, min_rank=2, max_rank=3)


def _accepts_right(type_: TensorType, earlier: Types) -> bool:
    left = earlier[0]
    if type_.dtype != left.dtype or type_.rank != left.rank or type_.shape[:-2] != left.shape[:-2]:
        return False
    return type_.shape[-2] == left.shape[-1] and prod((*left.shape[:-1], type_.shape[-1])) <= MAX_ELEMENTS


def _fresh_right(d: Draw, earlier: Types) -> TensorType:
    left = earlier[0]
    most = MAX_ELEMENTS // max(1, max(left.size, prod(left.shape[:-1])))
    return TensorType(left.dtype, (*left.shape[:-2], left.shape[-1], draw_dim(d, min(33, most), like=left.shape[-2])))


def _product_type(operands: Types, attrs: Attrs) -> TensorType:
    if not _MATRIX.accepts(operands[0], ()) or not _accepts_right(operands[1], operands[:1]):
        raise TypeRuleError(f"no product of {operands[0]} and {operands[1]}")
    return TensorType(operands[0].dtype, (*operands[0].shape[:-1], operands[1].shape[-1]))


def _inner_type(operands: Types, attrs: Attrs) -> TensorType:
    if operands[0] != operands[1] or operands[0].rank < 1 or operands[0].dtype not in COMPONENT:
        raise TypeRuleError(f"no inner product of {operands[0]} and {operands[1]}")
    return TensorType(operands[0].dtype, operands[0].shape[:-1])


def _inner(args: Sequence[Bounded], call: Call) -> Bounded:
    x = Bounded(np.conj(args[0].value), args[0].error, args[0].dtype)
    terms = call.operands[0].shape[-1]
    return complex_values.contracted(lambda a, b: np.sum(a * b, axis=-1), x, args[1], terms)


def _adjoint_type(operands: Types, attrs: Attrs) -> TensorType:
    if operands[0].rank < 2:
        raise TypeRuleError(f"{operands[0]} is no matrix")
    *batch, rows, columns = operands[0].shape
    return TensorType(operands[0].dtype, (*batch, columns, rows))


def _adjoint(args: Sequence[Bounded], call: Call) -> Bounded:
    x = args[0].map(lambda array: np.swapaxes(array, -1, -2))
    return Bounded(np.conj(x.value), x.error, x.dtype)


OPERATORS: tuple[OpSpec, ...] = (
    OpSpec(
        "view_as_real",
        "complex",
        (NUMBER,),
        _pairs_type,
        lambda args, call: paired(args[0]),
        signed_zero=True,
        torch="torch.view_as_real(torch.resolve_conj({0}))",
        tensorflow="tf.stack([tf.math.real({0}), tf.math.imag({0})], -1)",
        jax="jnp.stack([jnp.real({0}), jnp.imag({0})], -1)",
        relax=NO_RELAX,
        onnx=NO_ONNX,
    ),
    OpSpec(
        "view_as_complex",
        "complex",
        (Slot(_accepts_pairs, _fresh_pairs),),
        _unpaired_type,
        lambda args, call: whole(args[0], call.result.dtype),
        signed_zero=True,
        # it wants pairs that lie side by side
        torch="torch.view_as_complex({0}.contiguous())",
        tensorflow="tf.complex({0}[..., 0], {0}[..., 1])",
        jax="jax.lax.complex({0}[..., 0], {0}[..., 1])",
        relax=NO_RELAX,
        onnx=NO_ONNX,
    ),
    _reduction("complex_sum", _summed, "sum", "reduce_sum", "sum", nonempty=False),
    _reduction("complex_mean", _mean, "mean", "reduce_mean", "mean", nonempty=True),
    OpSpec(
        "complex_matmul",
        "complex",
        (_MATRIX, Slot(_accepts_right, _fresh_right)),
        _product_type,
        lambda args, call: complex_values.contracted(np.matmul, args[0], args[1], call.operands[0].shape[-1]),
        torch="torch.matmul({0}, {1})",
        tensorflow="tf.linalg.matmul({0}, {1})",
        jax="jnp.matmul({0}, {1})",
        relax=NO_RELAX,
        onnx=NO_ONNX,
    ),
    OpSpec(
        "complex_inner",
        "complex",
        (tensor(COMPLEX, min_rank=1), like(0)),
        _inner_type,
        _inner,
        torch="torch.linalg.vecdot({0}, {1}, dim=-1)",
        tensorflow="tf.reduce_sum(tf.math.conj({0}) * {1}, axis=-1)",
        jax="jnp.vecdot({0}, {1}, axis=-1)",
        relax=NO_RELAX,
        onnx=NO_ONNX,
    ),
    OpSpec(
        "adjoint",
        "complex",
        (tensor(COMPLEX, min_rank=2),),
        _adjoint_type,
        _adjoint,
        signed_zero=True,
        torch="torch.adjoint({0})",
        tensorflow="tf.linalg.adjoint({0})",
        jax="jnp.conj(jnp.matrix_transpose({0}))",
        relax=NO_RELAX,
        onnx=NO_ONNX,
    ),
)
