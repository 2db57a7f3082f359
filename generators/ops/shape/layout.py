"""What operators share that move elements without computing: what comes out is what went in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from generators.bounds.bounded import Bounded
from generators.graph import EVERY, Attr, TensorType
from generators.ops.slots import MAX_RANK, tensor
from generators.ops.spec import Attrs, Call, Draw, OpSpec, Reference, Shape, Slot, Spelling, Types

Array = np.ndarray

DEEP = MAX_RANK + 1
"""The greatest rank that layout operators make in drawn graphs; one more than new leaves have."""

ANY = replace(tensor(EVERY), usual=DEEP)
ARRAY = replace(tensor(EVERY, min_rank=1), usual=DEEP)


def layout(
    name: str,
    operand: Slot,
    result: Callable[[Types, Attrs], TensorType],
    reference: Reference,
    *,
    torch: Spelling,
    tensorflow: Spelling,
    jax: Spelling,
    relax: Spelling,
    onnx: Spelling,
    attrs: Mapping[str, Callable[[Draw, Types, Attrs], Attr]] | None = None,
    variadic: int = 1,
) -> OpSpec:
    """A record of an operator that only copies: the signs of zeros stay."""
    return OpSpec(
        name, "layout", (operand,), result, reference, attrs=attrs or {}, variadic=variadic, signed_zero=True,
        torch=torch, tensorflow=tensorflow, jax=jax, relax=relax, onnx=onnx,
    )  # fmt: skip


def moved(layout: Callable[[Array, Call], Array]) -> Reference:
    """The reference of an operator that moves elements of its one operand, and their bounds along."""
    return lambda args, call: args[0].map(lambda array: layout(array, call))


def joined(join: Callable[[list[Array], Call], Array]) -> Reference:
    """The reference of an operator that lays out several operands of one dtype, and their bounds alike."""

    def reference(args: Sequence[Bounded], call: Call) -> Bounded:
        value, error = join([x.value for x in args], call), join([x.error for x in args], call)
        return Bounded(value, error, args[0].dtype)

    return reference


def joinable(shapes: Sequence[Shape]) -> Shape:
    """The axes in which the shapes may differ when they are laid end to end; none if their ranks differ."""
    if len({len(shape) for shape in shapes}) != 1:
        return ()
    return tuple(a for a in range(len(shapes[0])) if len({(*s[:a], *s[a + 1 :]) for s in shapes}) == 1)
