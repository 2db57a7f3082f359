"""Discrete Fourier transforms over planes and spaces of complex numbers, and of real ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import numpy as np

from generators.bounds.bounded import Bounded
from generators.graph import COMPONENT, TensorType
from generators.ops.complex.elementwise import NO_ONNX, NO_RELAX, NUMBER, PARTS, WHOLE
from generators.ops.complex.fourier_pairs import complex_of, pairs_of, transformed
from generators.ops.complex.tensors import paired, whole
from generators.ops.slots import draw_dim, flag, int_of
from generators.ops.spec import Attrs, Call, Draw, OpSpec, Slot, TypeRuleError, Types


def _signal(of: Slot, axes: int) -> Slot:
    """Of that many last axes, short ones."""

    def accepts(type_: TensorType, earlier: Types) -> bool:
        return of.accepts(type_, ()) and axes <= type_.rank <= 4 and 0 < prod(type_.shape[type_.rank - axes :]) <= 64

    def fresh(d: Draw, earlier: Types) -> TensorType:
        sizes = [min(4 if axes == 3 else 8, draw_dim(d, 8, zero=False)) for _ in range(axes)]
        return TensorType(of.fresh(d, ()).dtype, (*([2] if d.boolean() else []), *sizes))

    return Slot(accepts, fresh)


def _places(axes: int) -> tuple[int, ...]:
    return tuple(range(-axes, 0))


def _full(axes: int) -> OpSpec:
    """The transform or its inverse; the one over a plane goes with it as `fft2`."""
    slot = _signal(NUMBER, axes)

    def result(operands: Types, attrs: Attrs) -> TensorType:
        if not slot.accepts(operands[0], ()):
            raise TypeRuleError(f"no transform of {operands[0]}")
        return operands[0]

    def reference(args: Sequence[Bounded], call: Call) -> Bounded:
        n, inverse = prod(call.result.shape[-axes:]), bool(call.attrs["inverse"])
        f = np.fft.ifftn if inverse else np.fft.fftn
        pairs = transformed(
            paired(args[0]), lambda a: pairs_of(f(complex_of(a), axes=_places(axes))), tuple(range(-axes - 1, 0)), n,
            1 / n if inverse else 1.0,
        )  # fmt: skip
        return whole(pairs, call.result.dtype)

    def text(form: str) -> Callable[[Call], str]:
        return lambda call: form.replace("%i", "i" if call.attrs["inverse"] else "")

    return OpSpec(
        f"complex_fft{axes}", "complex", (slot,), result, reference, attrs={"inverse": flag()},
        torch=text(f"torch.fft.%ifftn({{0}}, dim={_places(axes)})"), tensorflow=text(f"tf.signal.%ifft{axes}d({{0}})"),
        jax=text(f"jnp.fft.%ifftn({{0}}, axes={_places(axes)})"), relax=NO_RELAX, onnx=NO_ONNX,
    )  # fmt: skip


def _real(axes: int) -> OpSpec:
    slot = _signal(PARTS, axes)

    def result(operands: Types, attrs: Attrs) -> TensorType:
        if not slot.accepts(operands[0], ()):
            raise TypeRuleError(f"no transform of {operands[0]}")
        *rest, last = operands[0].shape
        return TensorType(WHOLE[operands[0].dtype], (*rest, last // 2 + 1))

    def reference(args: Sequence[Bounded], call: Call) -> Bounded:
        n = prod(call.operands[0].shape[-axes:])
        pairs = transformed(args[0], lambda a: pairs_of(np.fft.rfftn(a, axes=_places(axes))), _places(axes), n, 1.0)
        return whole(pairs, call.result.dtype)

    return OpSpec(
        f"complex_rfft{axes}", "complex", (slot,), result, reference,
        torch=f"torch.fft.rfftn({{0}}, dim={_places(axes)})", tensorflow=f"tf.signal.rfft{axes}d({{0}})",
        jax=f"jnp.fft.rfftn({{0}}, axes={_places(axes)})", relax=NO_RELAX, onnx=NO_ONNX,
    )  # fmt: skip


def _half(axes: int) -> OpSpec:
    """Back to real numbers, an even or an odd number of them in the last axis. That half of a spectrum is one of real
    numbers is not checked: the first transforms are complex, the last one leaves out the imaginary parts of the first
    number, and of the last one where `size` is even."""
    slot = _signal(NUMBER, axes)

    def result(operands: Types, attrs: Attrs) -> TensorType:
        size = int_of(attrs, "size")
        if not slot.accepts(operands[0], ()) or not 1 <= operands[0].shape[-1] == size // 2 + 1:
            raise TypeRuleError(f"no {size} real numbers from {operands[0]}")
        return TensorType(COMPONENT[operands[0].dtype], (*operands[0].shape[:-1], size))

    def reference(args: Sequence[Bounded], call: Call) -> Bounded:
        sizes = call.result.shape[-axes:]
        return transformed(
            paired(args[0]), lambda a: np.fft.irfftn(complex_of(a), sizes, axes=_places(axes)),
            tuple(range(-axes - 1, 0)), prod(sizes), 1 / prod(sizes),
        )  # fmt: skip

    def size(d: Draw, operands: Types, attrs: Attrs) -> int:
        half = operands[0].shape[-1]
        return d.choice((2 * half - 2, 2 * half - 1)) if half > 1 else 1

    def text(form: str) -> Callable[[Call], str]:
        return lambda call: form.replace("%s", str(call.result.shape[-axes:])).replace("%a", str(_places(axes)))

    return OpSpec(
        f"complex_irfft{axes}", "complex", (slot,), result, reference, attrs={"size": size},
        torch=text("torch.fft.irfftn({0}, %s, dim=%a)"), tensorflow=text(f"tf.signal.irfft{axes}d({{0}}, %s)"),
        jax=text("jnp.fft.irfftn({0}, %s, axes=%a)"), relax=NO_RELAX, onnx=NO_ONNX,
    )  # fmt: skip


OPERATORS: tuple[OpSpec, ...] = (_full(2), _full(3), _real(2), _real(3), _half(2), _half(3))
