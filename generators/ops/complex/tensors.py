"""Operators of whole tensors of complex numbers: sums, products, transforms, views as pairs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import numpy as np

from generators.bounds import complex_values
from generators.bounds.bounded import Bounded
from generators.graph import COMPLEX, COMPONENT, TensorType
from generators.ops.complex.elementwise import NO_ONNX, NO_RELAX, NUMBER, PARTS, WHOLE, part_type
from generators.ops.complex.fourier_pairs import complex_of, pairs_of, scale_of, transformed
from generators.ops.shape.reshape import Attrs, int_of
from generators.ops.slots import (
    MAX_ELEMENTS,
    axes_of,
    draw_dim,
    draw_dtype,
    draw_shape,
    flag,
    like,
    normalized,
    one_of,
    reduced,
    tensor,
)
from generators.ops.spec import Call, Draw, OpSpec, Slot, Spelling, TypeRuleError, Types, Unsupported

# ---- views --------------------------------------------------------------------------------------------


def _pairs_type(operands: Types, attrs: Attrs) -> TensorType:
    parts = part_type(operands, attrs)
    return TensorType(parts.dtype, (*parts.shape, 2))


def _paired(x: Bounded) -> Bounded:
    real, imag = complex_values.parts(x)
    return Bounded(np.stack([real.value, imag.value], -1), np.stack([x.error] * 2, -1), real.dtype)


def _whole(x: Bounded, dtype: str) -> Bounded:
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


_VIEWS = (
    OpSpec(
        "view_as_real", "complex", (NUMBER,), _pairs_type, lambda args, call: _paired(args[0]), signed_zero=True,
        torch="torch.view_as_real(torch.resolve_conj({0}))",
        tensorflow="tf.stack([tf.math.real({0}), tf.math.imag({0})], -1)",
        jax="jnp.stack([jnp.real({0}), jnp.imag({0})], -1)", relax=NO_RELAX, onnx=NO_ONNX,
    ),
    OpSpec(
        "view_as_complex", "complex", (Slot(_accepts_pairs, _fresh_pairs),), _unpaired_type,
        lambda args, call: _whole(args[0], call.result.dtype), signed_zero=True,
        # it wants pairs that lie side by side
        torch="torch.view_as_complex({0}.contiguous())", tensorflow="tf.complex({0}[..., 0], {0}[..., 1])",
        jax="jax.lax.complex({0}[..., 0], {0}[..., 1])", relax=NO_RELAX, onnx=NO_ONNX,
    ),
)  # fmt: skip

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


_SUMS = (
    _reduction("complex_sum", _summed, "sum", "reduce_sum", "sum", nonempty=False),
    _reduction("complex_mean", _mean, "mean", "reduce_mean", "mean", nonempty=True),
)

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


_PRODUCTS = (
    OpSpec(
        "complex_matmul", "complex", (_MATRIX, Slot(_accepts_right, _fresh_right)), _product_type,
        lambda args, call: complex_values.contracted(np.matmul, args[0], args[1], call.operands[0].shape[-1]),
        torch="torch.matmul({0}, {1})", tensorflow="tf.linalg.matmul({0}, {1})", jax="jnp.matmul({0}, {1})",
        relax=NO_RELAX, onnx=NO_ONNX,
    ),
    OpSpec(
        "complex_inner", "complex", (tensor(COMPLEX, min_rank=1), like(0)), _inner_type, _inner,
        torch="torch.linalg.vecdot({0}, {1}, dim=-1)", tensorflow="tf.reduce_sum(tf.math.conj({0}) * {1}, axis=-1)",
        jax="jnp.vecdot({0}, {1}, axis=-1)", relax=NO_RELAX, onnx=NO_ONNX,
    ),
    OpSpec(
        "adjoint", "complex", (tensor(COMPLEX, min_rank=2),), _adjoint_type, _adjoint, signed_zero=True,
        torch="torch.adjoint({0})", tensorflow="tf.linalg.adjoint({0})",
        jax="jnp.conj(jnp.matrix_transpose({0}))", relax=NO_RELAX, onnx=NO_ONNX,
    ),
)  # fmt: skip

# ---- transforms ---------------------------------------------------------------------------------------

NORMS = ("backward", "ortho", "forward")


def _signal(of: Slot, least: int = 1) -> Slot:
    """Signals in the last axis, of `least` to 64 elements."""

    def accepts(type_: TensorType, earlier: Types) -> bool:
        return of.accepts(type_, ()) and type_.rank >= 1 and least <= type_.shape[-1] <= 64

    def fresh(d: Draw, earlier: Types) -> TensorType:
        batch = [draw_dim(d, 5) for _ in range(d.choice((0, 1, 2)))]
        length = max(least, draw_dim(d, 64, zero=False))
        return TensorType(of.fresh(d, ()).dtype, (*batch, length))

    return Slot(accepts, fresh)


_NUMBERS, _HALF, _REALS = _signal(NUMBER), _signal(NUMBER, 2), _signal(PARTS)


def _length(operands: Types, attrs: Attrs, slot: Slot) -> int:
    if attrs["norm"] not in NORMS or not slot.accepts(operands[0], ()):
        raise TypeRuleError(f"no transform of {operands[0]}")
    return operands[0].shape[-1]


def _fft_type(operands: Types, attrs: Attrs) -> TensorType:
    _length(operands, attrs, _NUMBERS)
    return operands[0]


def _rfft_type(operands: Types, attrs: Attrs) -> TensorType:
    n = _length(operands, attrs, _REALS)
    return TensorType(WHOLE[operands[0].dtype], (*operands[0].shape[:-1], n // 2 + 1))


def _irfft_type(operands: Types, attrs: Attrs) -> TensorType:
    half, n = _length(operands, attrs, _HALF), int_of(attrs, "size")
    if n not in (2 * half - 2, 2 * half - 1):
        raise TypeRuleError(f"no real signal of {n} numbers from {operands[0]}")
    return TensorType(COMPONENT[operands[0].dtype], (*operands[0].shape[:-1], n))


def _fft(args: Sequence[Bounded], call: Call) -> Bounded:
    n, norm, inverse = call.result.shape[-1], str(call.attrs["norm"]), bool(call.attrs["inverse"])
    f = np.fft.ifft if inverse else np.fft.fft
    pairs = transformed(
        _paired(args[0]), lambda array: pairs_of(f(complex_of(array), norm=norm)),  # type: ignore[arg-type]
        (-2, -1), n, scale_of(norm, n, inverse),
    )  # fmt: skip
    return _whole(pairs, call.result.dtype)


def _rfft(args: Sequence[Bounded], call: Call) -> Bounded:
    n, norm = call.operands[0].shape[-1], str(call.attrs["norm"])
    pairs = transformed(
        args[0], lambda array: pairs_of(np.fft.rfft(array, norm=norm)), (-1,), n, scale_of(norm, n, False)  # type: ignore[arg-type]
    )  # fmt: skip
    return _whole(pairs, call.result.dtype)


def _irfft(args: Sequence[Bounded], call: Call) -> Bounded:
    """The imaginary parts of the first number, and of the last one where `size` is even, count for nothing."""
    n, norm = int_of(call.attrs, "size"), str(call.attrs["norm"])
    return transformed(
        _paired(args[0]), lambda array: np.fft.irfft(complex_of(array), n, norm=norm),  # type: ignore[arg-type]
        (-2, -1), n, scale_of(norm, n, True),
    )  # fmt: skip


def _plain(text: str) -> Spelling:
    """TensorFlow's transforms are not normalised."""

    def spell(call: Call) -> str | Unsupported:
        if call.attrs["norm"] != "backward":
            return Unsupported("its transforms have no norm but 'backward'")
        return text.replace("%f", "ifft" if call.attrs.get("inverse") else "fft")

    return spell


def _either(text: str) -> Callable[[Call], str]:
    return lambda call: text.replace("%f", "ifft" if call.attrs["inverse"] else "fft")


_TRANSFORMS = (
    OpSpec(
        "complex_fft", "complex", (_NUMBERS,), _fft_type, _fft, attrs={"inverse": flag(), "norm": one_of(*NORMS)},
        torch=_either("torch.fft.%f({0}, norm={norm})"), tensorflow=_plain("tf.signal.%f({0})"),
        jax=_either("jnp.fft.%f({0}, norm={norm})"), relax=NO_RELAX, onnx=NO_ONNX,
    ),
    OpSpec(
        "complex_rfft", "complex", (_REALS,), _rfft_type, _rfft, attrs={"norm": one_of(*NORMS)},
        torch="torch.fft.rfft({0}, norm={norm})", tensorflow=_plain("tf.signal.rfft({0})"),
        jax="jnp.fft.rfft({0}, norm={norm})", relax=NO_RELAX, onnx=NO_ONNX,
    ),
    OpSpec(
        "complex_irfft", "complex", (_HALF,), _irfft_type, _irfft,
        attrs={"size": lambda d, operands, attrs: 2 * operands[0].shape[-1] - d.choice((2, 1)), "norm": one_of(*NORMS)},
        torch="torch.fft.irfft({0}, n={size}, norm={norm})", tensorflow=_plain("tf.signal.irfft({0}, [{size}])"),
        jax="jnp.fft.irfft({0}, n={size}, norm={norm})", relax=NO_RELAX, onnx=NO_ONNX,
    ),
)  # fmt: skip

COMPLEX_TENSORS: tuple[OpSpec, ...] = (*_VIEWS, *_SUMS, *_PRODUCTS, *_TRANSFORMS)
