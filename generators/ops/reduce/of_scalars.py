"""Operators along an axis, of a tensor without dimensions. PyTorch takes it for one of one element, along axes 0 and -1
(`torch.sum(torch.tensor(2.0), dim=-1)`); the others refuse it, so that PyTorch alone is asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from generators.bounds.bounded import Bounded
from generators.graph import TensorType
from generators.ops.composed import compute
from generators.ops.elementwise.records import NO_ONNX, NO_RELAX, NO_TENSORFLOW
from generators.ops.index.gather import OPERATORS as GATHERS
from generators.ops.index.scatter import OPERATORS as SCATTERS
from generators.ops.reduce.cumulative import OPERATORS as SCANS
from generators.ops.reduce.nan_reductions import OPERATORS as WITHOUT_NAN
from generators.ops.reduce.norms import OPERATORS as NORMS
from generators.ops.reduce.picks import OPERATORS as PICKS
from generators.ops.reduce.reductions import OPERATORS as REDUCTIONS
from generators.ops.reduce.softmax import OPERATORS as SOFTMAX
from generators.ops.reduce.sorting import OPERATORS as SORTS
from generators.ops.reduce.statistics import OPERATORS as STATISTICS
from generators.ops.shape.flip_roll import OPERATORS as TURNS
from generators.ops.shape.reshape import OPERATORS as RESHAPES
from generators.ops.spec import (
    AttrRule,
    Attrs,
    Call,
    OpSpec,
    Slot,
    TypeRuleError,
    Types,
    Unsupported,
    said,
    unsupported,
)

_BASES = {
    spec.name: spec
    for specs in (
        *(GATHERS, NORMS, PICKS, REDUCTIONS, RESHAPES, SCANS, SCATTERS, SOFTMAX, SORTS, STATISTICS, TURNS),
        WITHOUT_NAN,
    )
    for spec in specs
}
OF_SCALAR = "_of_scalar"
"""How their names end."""
_NAMES = """
    sum mean max min argmax argmin any all variance std l2_norm max_along min_along median_along
    softmax log_softmax cumsum cumprod cummax sort argsort topk topk_indices flip gather take scatter squeeze
    logsumexp cummin logcumsumexp l1_norm nansum nanmean kth_value mode
"""
"""The bases, whose spelling in PyTorch gives an axis."""


def _one(type_: TensorType) -> TensorType:
    return TensorType(type_.dtype, (1,))


def _lifted(types: Types) -> Types:
    return tuple(map(_one, types))


def _slot(base: Slot) -> Slot:
    """Of no dimensions, where `base` takes one element."""

    def accepts(type_: TensorType, earlier: Types) -> bool:
        return type_.rank == 0 and base.accepts(_one(type_), _lifted(earlier))

    return Slot(
        accepts,
        lambda d, earlier: TensorType(base.fresh(d, _lifted(earlier)).dtype, ()),
        lambda earlier: base.domain(_lifted(earlier)),
        span=base.span,
    )


def _of_scalar(base: OpSpec) -> OpSpec:
    def lifted(call: Call) -> Call:
        types = _lifted(call.operands)
        return Call(types, call.attrs, base.result(types, call.attrs))

    def result(operands: Types, attrs: Attrs) -> TensorType:
        if any(one.rank for one in operands):
            raise TypeRuleError(f"{', '.join(map(str, operands))}: not without dimensions")
        return TensorType(base.result(_lifted(operands), attrs).dtype, ())

    def reference(args: Sequence[Bounded], call: Call) -> Bounded:
        found = compute(base, *(x.map(lambda a: np.reshape(a, (1,))) for x in args), **call.attrs)
        return found.map(lambda a: np.reshape(a, ()))

    def drawn(rule: AttrRule) -> AttrRule:
        return lambda d, operands, attrs: rule(d, _lifted(operands), attrs)

    def torch(call: Call) -> str | Unsupported:
        return said(base.torch, lifted(call))

    return replace(
        base, name=f"{base.name}{OF_SCALAR}", operands=tuple(map(_slot, base.operands)), result=result,
        reference=reference, attrs={name: drawn(rule) for name, rule in base.attrs.items()}, base=base.name,
        torch=torch, tensorflow=NO_TENSORFLOW, relax=NO_RELAX, onnx=NO_ONNX,
        jax=unsupported("tensors without dimensions have no axis"),
    )  # fmt: skip


OPERATORS: tuple[OpSpec, ...] = tuple(_of_scalar(_BASES[name]) for name in _NAMES.split())
