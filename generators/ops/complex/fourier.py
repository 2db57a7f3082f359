"""Discrete Fourier transforms of complex numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from generators.bounds.bounded import Bounded
from generators.graph import COMPONENT, TensorType
from generators.ops.complex.elementwise import NO_ONNX, NO_RELAX, NUMBER, PARTS, WHOLE
from generators.ops.complex.fourier_pairs import complex_of, pairs_of, scale_of, transformed
from generators.ops.complex.tensors import paired, whole
from generators.ops.slots import draw_dim, flag, int_of, one_of
from generators.ops.spec import Attrs, Call, Draw, OpSpec, Slot, Spelling, TypeRuleError, Types, Unsupported

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
        paired(args[0]), lambda array: pairs_of(f(complex_of(array), norm=norm)),  # type: ignore[arg-type]
        (-2, -1), n, scale_of(norm, n, inverse),
    )  # fmt: skip
    return whole(pairs, call.result.dtype)


def _rfft(args: Sequence[Bounded], call: Call) -> Bounded:
    n, norm = call.operands[0].shape[-1], str(call.attrs["norm"])
    pairs = transformed(
        args[0], lambda array: pairs_of(np.fft.rfft(array, norm=norm)), (-1,), n, scale_of(norm, n, False)  # type: ignore[arg-type]
    )  # fmt: skip
    return whole(pairs, call.result.dtype)


def _irfft(args: Sequence[Bounded], call: Call) -> Bounded:
    """The imaginary parts of the first number, and of the last one where `size` is even, count for nothing."""
    n, norm = int_of(call.attrs, "size"), str(call.attrs["norm"])
    return transformed(
        paired(args[0]), lambda array: np.fft.irfft(complex_of(array), n, norm=norm),  # type: ignore[arg-type]
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


OPERATORS: tuple[OpSpec, ...] = (
    OpSpec(
        "complex_fft",
        "complex",
        (_NUMBERS,),
        _fft_type,
        _fft,
        attrs={"inverse": flag(), "norm": one_of(*NORMS)},
        torch=_either("torch.fft.%f({0}, norm={norm})"),
        tensorflow=_plain("tf.signal.%f({0})"),
        jax=_either("jnp.fft.%f({0}, norm={norm})"),
        relax=NO_RELAX,
        onnx=NO_ONNX,
    ),
    OpSpec(
        "complex_rfft",
        "complex",
        (_REALS,),
        _rfft_type,
        _rfft,
        attrs={"norm": one_of(*NORMS)},
        torch="torch.fft.rfft({0}, norm={norm})",
        tensorflow=_plain("tf.signal.rfft({0})"),
        jax="jnp.fft.rfft({0}, norm={norm})",
        relax=NO_RELAX,
        onnx=NO_ONNX,
    ),
    OpSpec(
        "complex_irfft",
        "complex",
        (_HALF,),
        _irfft_type,
        _irfft,
        attrs={"size": lambda d, operands, attrs: 2 * operands[0].shape[-1] - d.choice((2, 1)), "norm": one_of(*NORMS)},
        torch="torch.fft.irfft({0}, n={size}, norm={norm})",
        tensorflow=_plain("tf.signal.irfft({0}, [{size}])"),
        jax="jnp.fft.irfft({0}, n={size}, norm={norm})",
        relax=NO_RELAX,
        onnx=NO_ONNX,
    ),
)
