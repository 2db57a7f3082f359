"""Discrete Fourier transforms of floats. A complex number is a pair, real and imaginary part,
in a last dimension of 2."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import log2, prod

import numpy as np

from generators.bounds.bounded import PRECISION, U64, Bounded, rounded
from generators.graph import FLOATS, TensorType
from generators.ops.slots import draw_dim, draw_dtype, flag, int_of, one_of
from generators.ops.spec import Attrs, Call, Draw, OpSpec, Slot, TypeRuleError, Types

Array = np.ndarray

NORMS = ("backward", "ortho", "forward")

# ---- operands -----------------------------------------------------------------------------------------


def _signal(axes: int, pairs: bool, least: int = 1) -> Slot:
    """Signals in the last axes (before that of pairs), each of `least` elements or more."""
    tail = axes + pairs

    def accepts(type_: TensorType, earlier: Types) -> bool:
        if type_.dtype not in FLOATS or not tail <= type_.rank <= 5 or (pairs and type_.shape[-1] != 2):
            return False
        sizes = type_.shape[type_.rank - tail : type_.rank - pairs]
        return min(sizes) >= least and prod(sizes) <= 64

    def fresh(d: Draw, earlier: Types) -> TensorType:
        sizes = [max(least, draw_dim(d, 64 if axes == 1 else 6, zero=False)) for _ in range(axes)]
        batch = [draw_dim(d, 5) for _ in range(d.choice((0, 1, 2)))]
        return TensorType(draw_dtype(d, FLOATS), (*batch, *sizes, *[2] * pairs))

    return Slot(accepts, fresh)


_REAL, _COMPLEX, _HALF, _PLANE = _signal(1, False), _signal(1, True), _signal(1, True, 2), _signal(2, True)


def _norm(attrs: Attrs) -> str:
    if attrs["norm"] not in NORMS:
        raise TypeRuleError(f"no norm {attrs['norm']!r}")
    return str(attrs["norm"])


# ---- references ---------------------------------------------------------------------------------------


def complex_of(pairs: Array) -> Array:
    return pairs[..., 0] + 1j * pairs[..., 1]


def pairs_of(numbers: Array) -> Array:
    return np.stack([np.real(numbers), np.imag(numbers)], axis=-1)


def transformed(x: Bounded, f: Callable[[Array], Array], axes: tuple[int, ...], n: int, scale: float) -> Bounded:
    """f, a transform of n numbers over these axes of x (that of pairs among them), each result times `scale`.

    Higham, section 24.1: a fast transform is off by log2(n) (mu + gamma_4 (sqrt 2 + mu)) |y|, |y| = sqrt(n) |x| in the
    2-norm, with twiddle factors of mu = u: 7 u log2(n). Where n is no product of small primes, Bluestein's algorithm
    takes three of them of length 4 n at most: 24 (log2(n) + 3) u covers those. Some back ends (and a product with the
    matrix) add up n terms: gamma_{n+4} of sum |x| <= sqrt(n) |x|. Errors of x go into every result."""
    p = PRECISION[x.dtype]
    with np.errstate(all="ignore"):
        plain = np.isfinite(x.value) & np.isfinite(x.error)
        values, error = np.where(plain, x.value, 0.0), np.where(plain, x.error, 0.0)
        size = np.abs(values) + error
        most = np.max(size, axis=axes, keepdims=True)  # its square may underflow
        size = 2**0.5 * most * np.sqrt(np.sum((size / np.where(most > 0, most, 1.0)) ** 2, axis=axes, keepdims=True))
        steps = (n + 4 + 24 * (log2(n) + 3)) * (p.unit + U64) * (1 + 2.0**-10)
        off = 2 * np.sum(error, axis=axes, keepdims=True) + steps * n**0.5 * size
        off = scale * (off + np.where(size > 0, 16 * n * n * p.tiny, 0.0)) + np.where(size > 0, n * p.tiny, 0.0)
        bad = ~plain.all(axes, keepdims=True) | (16 * n * n * size > p.largest)
        value = f(values)
        bound = np.where(bad | np.isnan(off), np.inf, off)
        shape = (*bound.shape[: bound.ndim - len(axes)], *[1] * (value.ndim - bound.ndim + len(axes)))
        bound = np.broadcast_to(bound.reshape(shape), value.shape)
    return rounded(value, bound, x.dtype)


def scale_of(norm: str, n: int, inverse: bool) -> float:
    if norm == "ortho":
        return n**-0.5
    return 1 / n if (norm == "forward") != inverse else 1.0


# ---- real signals -------------------------------------------------------------------------------------


def _rfft_type(operands: Types, attrs: Attrs) -> TensorType:
    size = int_of(attrs, "size")
    _norm(attrs)
    if not _REAL.accepts(operands[0], ()) or not 1 <= size <= 64:
        raise TypeRuleError(f"no transform of {size} numbers of {operands[0]}")
    return TensorType(operands[0].dtype, (*operands[0].shape[:-1], size // 2 + 1, 2))


def _rfft(args: Sequence[Bounded], call: Call) -> Bounded:
    n, norm = int_of(call.attrs, "size"), _norm(call.attrs)
    x = args[0].map(lambda array: array[..., :n])
    return transformed(
        x, lambda array: pairs_of(np.fft.rfft(array, n, norm=norm)), (-1,), n, scale_of(norm, n, False)  # type: ignore[arg-type]
    )  # fmt: skip


def _length(d: Draw, operands: Types, attrs: Attrs) -> int:
    """The signal's own, or padded with zeros, or cut."""
    n = operands[0].shape[-1]
    return d.choice((n, min(n + 3, 64), max(1, n - 1)))


rfft = OpSpec(
    "rfft", "fourier", (_REAL,), _rfft_type, _rfft, attrs={"size": _length, "norm": one_of(*NORMS)},
    torch="torch.view_as_real(torch.fft.rfft({0}, n={size}, norm={norm}))",
    tensorflow="rfft({0}, {size}, {norm})", jax="pairs_of(jnp.fft.rfft({0}, n={size}, norm={norm}))",
    relax="transformed(bb, {0}, lambda x: pairs_of(np.fft.rfft(x, {size}, norm={norm})), {shape0}, 1, {name})",
    onnx="rfft(g, {0}, {size}, {norm}, {name})",
)  # fmt: skip


def _irfft_type(operands: Types, attrs: Attrs) -> TensorType:
    half = operands[0].shape[-2] if _HALF.accepts(operands[0], ()) else 0
    _norm(attrs)
    if not half or attrs["size"] not in (2 * half - 2, 2 * half - 1):
        raise TypeRuleError(f"no real signal of {attrs['size']} numbers from {operands[0]}")
    return TensorType(operands[0].dtype, (*operands[0].shape[:-2], int_of(attrs, "size")))


def _irfft(args: Sequence[Bounded], call: Call) -> Bounded:
    """The imaginary parts of the first number, and of the last one where `size` is even, count for nothing."""
    n, norm = int_of(call.attrs, "size"), _norm(call.attrs)
    return transformed(
        args[0], lambda array: np.fft.irfft(complex_of(array), n, norm=norm),  # type: ignore[arg-type]
        (-2, -1), n, scale_of(norm, n, True),
    )  # fmt: skip


irfft = OpSpec(
    "irfft", "fourier", (_HALF,), _irfft_type, _irfft,
    attrs={"size": lambda d, operands, attrs: 2 * operands[0].shape[-2] - d.choice((2, 1)), "norm": one_of(*NORMS)},
    torch="torch.fft.irfft(torch.complex({0}[..., 0], {0}[..., 1]), n={size}, norm={norm})",
    tensorflow="irfft({0}, {size}, {norm})", jax="jnp.fft.irfft(complex_of({0}), n={size}, norm={norm})",
    relax="transformed(bb, {0}, lambda x: np.fft.irfft(complex_of(x), {size}, norm={norm}), {shape0}, 2, {name})",
    onnx="irfft(g, {0}, {size}, {norm}, {name})",
)  # fmt: skip

# ---- complex signals ----------------------------------------------------------------------------------


def _complex(name: str, axes: int, operand: Slot, tensorflow: str) -> OpSpec:
    """The transform and its inverse over the last axes before that of pairs."""

    def result(operands: Types, attrs: Attrs) -> TensorType:
        _norm(attrs)
        if not operand.accepts(operands[0], ()):
            raise TypeRuleError(f"no transform of {operands[0]}")
        return operands[0]

    def reference(args: Sequence[Bounded], call: Call) -> Bounded:
        norm, inverse = _norm(call.attrs), bool(call.attrs["inverse"])
        n = prod(call.result.shape[-axes - 1 : -1])
        places = tuple(range(-axes, 0))
        function = np.fft.ifftn if inverse else np.fft.fftn

        def transform(array: Array) -> Array:
            return pairs_of(function(complex_of(array), axes=places, norm=norm))  # type: ignore[arg-type]

        return transformed(args[0], transform, tuple(range(-axes - 1, 0)), n, scale_of(norm, n, inverse))

    def text(pattern: str) -> Callable[[Call], str]:
        return lambda call: pattern.replace("%f", ("i" if call.attrs["inverse"] else "") + name)

    return OpSpec(
        name, "fourier", (operand,), result, reference, attrs={"inverse": flag(), "norm": one_of(*NORMS)},
        torch=text("torch.view_as_real(torch.fft.%f(torch.complex({0}[..., 0], {0}[..., 1]), norm={norm}))"),
        tensorflow=f"transformed({{0}}, {tensorflow}, {{inverse}}, {axes}, {{norm}})",
        jax=text("pairs_of(jnp.fft.%f(complex_of({0}), norm={norm}))"),
        relax=text(f"transformed(bb, {{0}}, lambda x: pairs_of(np.fft.%f(complex_of(x), norm={{norm}})), {{shape0}}, "
                   f"{axes + 1}, {{name}})"),
        onnx=f"transformed(g, {{0}}, {{inverse}}, {{shape}}, {axes}, {{norm}}, {{name}})",
    )  # fmt: skip


fft = _complex("fft", 1, _COMPLEX, '"fft"')
fft2 = _complex("fft2", 2, _PLANE, '"fft2d"')

OPERATORS: tuple[OpSpec, ...] = (rfft, irfft, fft, fft2)
