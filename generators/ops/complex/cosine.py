"""Discrete cosine transforms of real signals in the last axis, of types 1 to 4, as scipy.fft.dct defines them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import fft

from generators.bounds.bounded import Bounded
from generators.graph import TensorType
from generators.ops.complex.fourier_pairs import transformed
from generators.ops.slots import draw_dim, draw_dtype, flag, int_of, one_of
from generators.ops.spec import Attrs, Call, Draw, OpSpec, Slot, TypeRuleError, Types, Unsupported, unsupported

Array = np.ndarray

NORMS = ("backward", "ortho")
_FLOATS = ("float32", "float64")


def _signal() -> Slot:
    """Of 2 to 64 elements: type 1 has none of one."""

    def accepts(type_: TensorType, earlier: Types) -> bool:
        return type_.dtype in _FLOATS and 1 <= type_.rank <= 4 and 2 <= type_.shape[-1] <= 64

    def fresh(d: Draw, earlier: Types) -> TensorType:
        batch = [draw_dim(d, 5) for _ in range(d.choice((0, 1, 2)))]
        return TensorType(draw_dtype(d, _FLOATS), (*batch, max(2, draw_dim(d, 64, zero=False))))

    return Slot(accepts, fresh)


def _type(operands: Types, attrs: Attrs) -> TensorType:
    if not _signal().accepts(operands[0], ()) or attrs["norm"] not in NORMS or not 1 <= int_of(attrs, "kind") <= 4:
        raise TypeRuleError(f"no cosine transform of type {attrs['kind']!r} of {operands[0]}")
    return operands[0]


def _length(call: Call) -> int:
    """Of the Fourier transform behind it: twice the signal, less 2 for type 1, four times for type 4."""
    n, kind = call.result.shape[-1], int_of(call.attrs, "kind")
    return {1: 2 * n - 2, 4: 4 * n}.get(kind, 2 * n)


def _periods(call: Call) -> int:
    """What the transform and its inverse multiply by, without a norm."""
    n = call.result.shape[-1]
    return 2 * n - 2 if int_of(call.attrs, "kind") == 1 else 2 * n


def _cosine(args: Sequence[Bounded], call: Call) -> Bounded:
    """Twice the real part of a Fourier transform, each number turned (two roundings, within those counted)."""
    kind, norm, inverse = int_of(call.attrs, "kind"), str(call.attrs["norm"]), bool(call.attrs["inverse"])
    function, n = (fft.idct if inverse else fft.dct), _periods(call)
    scale = n**-0.5 if norm == "ortho" else 1 / n if inverse else 1.0
    return transformed(
        args[0], lambda array: np.asarray(function(array, kind, norm=norm)), (-1,), _length(call), 2 * scale
    )


def _tensorflow(call: Call) -> str | Unsupported:
    """Its inverse is scaled by 1 / (2 n) in the documentation's words, too."""
    norm = "'ortho'" if call.attrs["norm"] == "ortho" else "None"
    if norm != "None" and call.attrs["kind"] == 1:
        return Unsupported("its type 1 has no norm")
    if not call.attrs["inverse"]:
        return f"tf.signal.dct({{0}}, type={{kind}}, norm={norm})"
    text = f"tf.signal.idct({{0}}, type={{kind}}, norm={norm})"
    return text if norm != "None" else f"{text} * {1 / _periods(call)!r}"


def _jax(call: Call) -> str | Unsupported:
    if call.attrs["kind"] != 2:
        return Unsupported("it has type 2 only")
    name = "idct" if call.attrs["inverse"] else "dct"
    return f"jax.scipy.fft.{name}({{0}}, type=2, norm={{norm}})"


cosine_transform = OpSpec(
    "cosine_transform", "fourier", (_signal(),), _type, _cosine,
    attrs={"kind": one_of(2, 1, 3, 4), "norm": one_of(*NORMS), "inverse": flag()},
    torch=unsupported("it has no such transform"), tensorflow=_tensorflow, jax=_jax,
    relax=unsupported("it has no such transform"), onnx=unsupported("it has no such transform"),
)  # fmt: skip

OPERATORS: tuple[OpSpec, ...] = (cosine_transform,)
