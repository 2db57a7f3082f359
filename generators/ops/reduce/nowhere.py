"""Reductions along no axes: each element alone, as numpy and ONNX (noop_with_empty_axes) have it. Functions of PyTorch
for which no axes mean all of them are said in the records of what is reduced otherwise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from generators.bounds.bounded import Bounded
from generators.graph import TensorType
from generators.ops.reduce.reductions import OPERATORS as REDUCTIONS
from generators.ops.slots import flag, reduced
from generators.ops.spec import Attrs, Call, OpSpec, Spelling, Types, Unsupported, said, unsupported

NAMES = ("sum", "mean", "max", "min", "prod", "all", "any")
_ALONE = ("all", "any")
"""Those that PyTorch, too, reduces along no axes where it is given none."""
_ALL = unsupported("no axes mean all of them to it")


def _without(attrs: Attrs) -> dict:
    return {**attrs, "axes": ()}


def _nowhere(base: OpSpec) -> OpSpec:
    def result(operands: Types, attrs: Attrs) -> TensorType:
        return reduced()(operands, _without(attrs))

    def reference(args: Sequence[Bounded], call: Call) -> Bounded:
        return base.reference(args, replace(call, attrs=_without(call.attrs)))

    def spelled(spelling: Spelling, change: Callable[[str], str] = lambda text: text) -> Spelling:
        def spell(call: Call) -> str | Unsupported:
            text = said(spelling, replace(call, attrs=_without(call.attrs)))
            return text if isinstance(text, Unsupported) else change(str(text)).replace("{axes}", "()")

        return spell

    return replace(
        base, name=f"{base.name}_nowhere", base=base.name, result=result, reference=reference,
        attrs={"keepdims": flag()}, torch=spelled(base.torch) if base.name in _ALONE else _ALL,
        tensorflow=spelled(base.tensorflow), jax=spelled(base.jax), relax=spelled(base.relax),
        onnx=spelled(base.onnx, lambda text: text.replace("keepdims=", "noop_with_empty_axes=1, keepdims=")),
    )  # fmt: skip


OPERATORS: tuple[OpSpec, ...] = tuple(_nowhere(spec) for spec in REDUCTIONS if spec.name in NAMES)
