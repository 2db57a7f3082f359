"""Rotary embedding: pairs of features, turned by angles of which the cosine and the sine are given."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from generators.bounds.bounded import Bounded, add
from generators.bounds.sums import scaled_product
from generators.graph import FLOATS, TensorType
from generators.ops.composed import shared
from generators.ops.slots import computed, draw_dtype, flag
from generators.ops.spec import Attrs, Call, Draw, OpSpec, Slot, TypeRuleError, Types, only

Array = np.ndarray


def _queries() -> Slot:
    """(batch, heads, length, features), an even number of features."""

    def accepts(type_: TensorType, earlier: Types) -> bool:
        return type_.dtype in FLOATS and type_.rank == 4 and type_.size > 0 and type_.shape[3] % 2 == 0

    def fresh(d: Draw, earlier: Types) -> TensorType:
        shape = d.choice((1, 2)), d.choice((2, 1, 3)), d.choice((3, 1, 5, 8)), d.choice((4, 2, 8, 16))
        return TensorType(draw_dtype(d, FLOATS), shape)

    return Slot(accepts, fresh)


def _angles(earlier: Types) -> TensorType:
    batch, _, length, features = earlier[0].shape
    return TensorType(earlier[0].dtype, (batch, length, features // 2))


def _type(operands: Types, attrs: Attrs) -> TensorType:
    x = operands[0]
    if x.rank != 4 or x.size == 0 or x.shape[3] % 2 or any(other != _angles(operands) for other in operands[1:]):
        raise TypeRuleError(f"no angles {operands[1:]} for the pairs of {x}")
    return x


def _halves(x: Bounded, interleaved: bool) -> tuple[Bounded, Bounded]:
    half = x.value.shape[-1] // 2
    if interleaved:
        return x.map(lambda a: a[..., 0::2]), x.map(lambda a: a[..., 1::2])
    return x.map(lambda a: a[..., :half]), x.map(lambda a: a[..., half:])


def _rotary(args: Sequence[Bounded], call: Call) -> Bounded:
    """Two products and their sum or difference, each rounded once; a fused addition may keep what overflows."""
    cosine, sine = (one.map(lambda a: a[:, None]) for one in args[1:])
    interleaved = bool(call.attrs["interleaved"])
    first, second = _halves(args[0], interleaved)
    real = add(scaled_product(first, cosine), scaled_product(second, sine), -1.0)
    imaginary = add(scaled_product(first, sine), scaled_product(second, cosine))

    def joined(a: Array, b: Array) -> Array:
        return np.stack([a, b], -1).reshape(args[0].value.shape) if interleaved else np.concatenate([a, b], -1)

    return Bounded(joined(real.value, imaginary.value), joined(real.error, imaginary.error), args[0].dtype)


_COMPOSED = shared("rotary_embedding")

OPERATORS: tuple[OpSpec, ...] = (
    OpSpec(
        "rotary_embedding", "attention", (_queries(), computed(_angles), computed(_angles)), _type, _rotary,
        attrs={"interleaved": flag()},
        torch=_COMPOSED["torch"], tensorflow=_COMPOSED["tensorflow"], jax=_COMPOSED["jax"], relax=_COMPOSED["relax"],
        onnx=only(
            ("float32", "float16", "bfloat16"), "its RotaryEmbedding takes no double",
            'g.op("RotaryEmbedding", {0}, {1}, {2}, interleaved=int({interleaved}))',
        ),
    ),
)  # fmt: skip
