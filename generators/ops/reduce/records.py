"""Records of reductions over axes, and what their references share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import numpy as np

from generators.bounds.bounded import Bounded
from generators.graph import TensorType
from generators.ops.slots import axes_of, flag, normalized, reduced, tensor
from generators.ops.spec import (
    AttrRule,
    Attrs,
    Call,
    Draw,
    OpSpec,
    Reference,
    ResultRule,
    Slot,
    Spelling,
    TypeRuleError,
    Types,
    Unsupported,
)

Array = np.ndarray


def axes_in(call: Call) -> tuple[int, ...]:
    """The axes of the call's `axes` or `axis`, counted from the front."""
    return normalized(call.attrs.get("axes", call.attrs.get("axis")), call.operands[0].rank)


def count(call: Call) -> int:
    """How many elements go into one of the result."""
    return prod(call.operands[0].shape[axis] for axis in axes_in(call))


def along(f: Callable, call: Call) -> Callable[[Array], Array]:
    """f, a numpy reduction, along the call's axes."""
    keep = bool(call.attrs["keepdims"])
    axes = axes_in(call)
    return lambda array: np.asarray(f(array, axis=axes, keepdims=keep))


def reduction_of(reduction: OpSpec, f: Callable[[Bounded], Bounded]) -> Reference:
    """The reduction of f, elementwise."""
    return lambda args, call: reduction.reference([f(args[0])], call)


# ---- operands and types -------------------------------------------------------------------------------


def reducible(dtypes: Sequence[str], min_rank: int = 0) -> Slot:
    """A scalar, or a tensor with an axis of at least one element."""
    base = tensor(dtypes, min_rank)

    def accepts(type_: TensorType, earlier: Types) -> bool:
        return base.accepts(type_, earlier) and (type_.rank == 0 or max(type_.shape) > 0)

    def fresh(d: Draw, earlier: Types) -> TensorType:
        type_ = base.fresh(d, earlier)
        return type_ if accepts(type_, earlier) else TensorType(type_.dtype, (1,) * type_.rank)

    return Slot(accepts, fresh)


def _filled(operands: Types) -> tuple[int, ...]:
    """Axes of at least one element."""
    return tuple(i for i, dim in enumerate(operands[0].shape) if dim > 0)


def filled_axis(d: Draw, operands: Types, attrs: Attrs) -> int:
    axes, rank = _filled(operands), operands[0].rank
    return d.choice((*axes, *(a - rank for a in axes)))


def _filled_axes(d: Draw, operands: Types, attrs: Attrs) -> tuple[int, ...]:
    axes, rank = _filled(operands), operands[0].rank
    if not axes:
        return ()
    first = d.choice(axes)
    chosen = [a for a in axes if a == first or d.integer(0, 3) == 3]
    return tuple(a - rank if d.integer(0, 3) == 3 else a for a in chosen)


def reduced_along(dtype: str | None = None, empty: bool = True) -> ResultRule:
    """The common rule, without what dialects read in two ways: no axes of a tensor (all of them, or none?).
    `empty`: the reduction of nothing has a value."""

    def rule(operands: Types, attrs: Attrs) -> TensorType:
        result = reduced(dtype)(operands, attrs)
        axes = normalized(attrs.get("axes", attrs.get("axis")), operands[0].rank)
        if operands[0].rank and not axes:
            raise TypeRuleError(f"no axes of {operands[0]} to reduce")
        if not empty and any(operands[0].shape[axis] == 0 for axis in axes):
            raise TypeRuleError(f"nothing to reduce: {operands[0]} along {axes}")
        return result

    return rule


# ---- records and spellings ----------------------------------------------------------------------------


def reduction(
    name: str,
    slot: Slot,
    reference: Reference,
    *,
    torch: Spelling = "",
    tensorflow: Spelling = "",
    jax: Spelling = "",
    relax: Spelling = "",
    onnx: Spelling = "",
    empty: bool = True,
    signed_zero: bool = False,
) -> OpSpec:
    """A reduction with attributes `axes` and `keepdims`. `empty`: it is defined for nothing."""
    rule: AttrRule = axes_of(0) if empty else _filled_axes
    along = "axis={axes}, keepdims={keepdims}"
    return OpSpec(
        name, "reduction", (slot,), reduced_along(empty=empty), reference,
        attrs={"axes": rule, "keepdims": flag()}, signed_zero=signed_zero,
        torch=torch or f"torch.{name}({{0}}, dim={{axes}}, keepdim={{keepdims}})",
        tensorflow=tensorflow or f"tf.reduce_{name}({{0}}, {along})",
        jax=jax or f"jnp.{name}({{0}}, {along})",
        relax=relax or f"relax.op.{name}({{0}}, axis=list({{axes}}), keepdims={{keepdims}})",
        onnx=onnx or onnx_reduction(f"Reduce{name.capitalize()}"),
    )  # fmt: skip


def onnx_reduction(kind: str, operand: str = "{0}") -> str:
    return f'g.op("{kind}", {operand}, g.const({{axes}}, "int64"), keepdims=int({{keepdims}}))'


def of_something(text: str) -> Spelling:
    """A spelling with ReduceMean."""

    def spell(call: Call) -> str | Unsupported:
        return text if count(call) else Unsupported("ONNX leaves ReduceMean of an empty set undefined")

    return spell
