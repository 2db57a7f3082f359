"""Are all numbers along axes other than 0, or any? PyTorch and JAX ask it of numbers, the others of booleans alone.
PyTorch documents that the answer to bytes is a byte."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from generators.bounds.bounded import Bounded, exact
from generators.bounds.extremes import flushable
from generators.graph import TensorType
from generators.ops.reduce.records import reduction_of
from generators.ops.reduce.reductions import OPERATORS as REDUCTIONS
from generators.ops.slots import numeric, tensor
from generators.ops.spec import Attrs, Call, OpSpec, Spelling, Types, Unsupported, said


def _truth(x: Bounded) -> Bounded:
    """NaN is true; so is a subnormal number, if it is not read as zero."""
    zero = (x.error > 0) & ~(np.abs(x.value) > x.error) if x.floating else False
    return exact(x.value != 0, "bool", x.undetermined | zero | flushable(x))


def _changed(spelling: Spelling, change: Callable[[str], str]) -> Spelling:
    """What is said, changed; what cannot be said stays so."""

    def spell(call: Call) -> str | Unsupported:
        plain = said(spelling, call)
        return plain if isinstance(plain, Unsupported) else change(str(plain))

    return spell


def _of_numbers(base: OpSpec) -> OpSpec:
    def result(operands: Types, attrs: Attrs) -> TensorType:
        return base.result((replace(operands[0], dtype="bool"), *operands[1:]), attrs)

    def cast(dialect: str, text: str) -> Spelling:
        return _changed(getattr(base, dialect), lambda plain: plain.replace("{0}", text))

    def torch(call: Call) -> str:
        """Of uint8 PyTorch documents to return uint8."""
        return str(base.torch).replace("{0}", "{0} != 0" if call.operands[0].dtype == "uint8" else "{0}")

    return replace(
        base, name=f"{base.name}_of_numbers", base=base.name, operands=(numeric(nonempty=True),), result=result,
        reference=reduction_of(base, _truth), torch=torch, tensorflow=cast("tensorflow", "tf.cast({0}, tf.bool)"),
        onnx=cast("onnx", 'g.op("Cast", {0}, to=TensorProto.BOOL)'),
    )  # fmt: skip


def _of_bytes(base: OpSpec) -> OpSpec:
    """The answer is a byte, 0 or 1: elsewhere a cast."""
    answer = _of_numbers(base)

    def result(operands: Types, attrs: Attrs) -> TensorType:
        return replace(answer.result(operands, attrs), dtype="uint8")

    def reference(args: Sequence[Bounded], call: Call) -> Bounded:
        found = answer.reference(args, call)
        return exact(found.value.astype(np.uint8), "uint8", found.undetermined)

    def cast(dialect: str, text: str) -> Spelling:
        return _changed(getattr(answer, dialect), lambda plain: text.replace("#", plain))

    return replace(
        answer, name=f"{base.name}_of_bytes", operands=(tensor(("uint8",), nonempty=True),), result=result,
        reference=reference, torch=base.torch, tensorflow=cast("tensorflow", "tf.cast(#, tf.uint8)"),
        jax=cast("jax", "(#).astype({dtype})"), onnx=cast("onnx", 'g.op("Cast", #, to=TensorProto.UINT8)'),
    )  # fmt: skip


_BASES = tuple(spec for spec in REDUCTIONS if spec.name in ("all", "any"))
OPERATORS: tuple[OpSpec, ...] = (*map(_of_numbers, _BASES), *map(_of_bytes, _BASES))
