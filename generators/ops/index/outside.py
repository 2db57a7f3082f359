"""Places beyond the end of an axis, which mean the last one (JAX' mode "clip"; other dialects take the lesser of both),
and places that are bytes, on an axis that is longer than they count."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from generators.bounds.bounded import Bounded
from generators.graph import TensorType
from generators.ops.index.gather import gather, take
from generators.ops.index.scatter import scatter, scatter_add, scatter_max, scatter_min, written
from generators.ops.slots import axis_in, computed, draw_dim, draw_dtype
from generators.ops.spec import (
    Attrs,
    Call,
    Domain,
    Draw,
    OpSpec,
    Slot,
    Spelling,
    TypeRuleError,
    Types,
    said,
    unsupported,
)

BEYOND = 3
"""As far as places lie beyond the end."""
_NO_CLIPPING = unsupported("it has no such places")


def _last(call: Call) -> int:
    return call.operands[0].shape[axis_in(call.attrs, call.operands[0].rank)] - 1


def _within(spelling: Spelling, text: str) -> Spelling:
    """`spelling` with `text` for the places; %s: the last one."""

    def spell(call: Call) -> str:
        return str(said(spelling, call)).replace("{1}", text.replace("%s", str(_last(call))))

    return spell


def clipped(base: OpSpec, jax: str) -> OpSpec:
    """`base` with places that may lie beyond the end."""
    places = base.operands[1]

    def domain(earlier: Types) -> Domain:
        return 0, (places.domain(earlier) or (0, 0))[1] + BEYOND

    def reference(args: Sequence[Bounded], call: Call) -> Bounded:
        x, at, *rest = args
        inside = np.minimum(at.value, np.asarray(_last(call), at.value.dtype))
        return base.reference((x, replace(at, value=inside), *rest), call)

    return replace(
        base, name=f"{base.name}_clipped", base=base.name, reference=reference,
        operands=(base.operands[0], replace(places, domain=domain), *base.operands[2:]),
        torch=_within(base.torch, "torch.clamp({1}, max=%s)"),
        tensorflow=_within(base.tensorflow, "tf.minimum({1}, %s)"),
        jax=jax, relax=_NO_CLIPPING, onnx=_NO_CLIPPING,
    )  # fmt: skip


# ---- bytes --------------------------------------------------------------------------------------------

_LONG, _FEW, _HELD = (300, 257), 6, ("float32", "int64")
"""Axes that places of 8 bits do not count, how many places there are at most, and the dtypes of what stands there."""
_COUNTED: dict[str, Domain] = {"uint8": (0, 255), "int8": (-128, 127)}
"""What the places of a dtype may be: signed ones count from the end, too."""


def _accepts_long(type_: TensorType, earlier: Types) -> bool:
    return type_.dtype in _HELD and 1 <= type_.rank <= 2 and type_.shape[0] in _LONG and type_.size <= _FEW * _LONG[0]


def _fresh_long(d: Draw, earlier: Types) -> TensorType:
    row = (d.choice((3, 1, _FEW)),) if d.boolean() else ()
    return TensorType(draw_dtype(d, _HELD), (d.choice(_LONG), *row))


def _bytes(dtype: str) -> Slot:
    return Slot(
        lambda t, e: t.dtype == dtype and t.rank == 1 and t.size <= _FEW,
        lambda d, e: TensorType(dtype, (draw_dim(d, _FEW),)),
        lambda e: _COUNTED[dtype],
    )


def _rows(operands: Types) -> TensorType:
    return TensorType(operands[0].dtype, (*operands[1].shape, *operands[0].shape[1:]))


def _taken_type(operands: Types, attrs: Attrs) -> TensorType:
    x, places = operands[:2]
    if not _accepts_long(x, ()) or places.dtype not in _COUNTED or places.rank != 1:
        raise TypeRuleError(f"no rows of {x} at {places}")
    return _rows(operands)


def _written_type(operands: Types, attrs: Attrs) -> TensorType:
    if _taken_type(operands, attrs) != operands[2]:
        raise TypeRuleError(f"{operands[2]} are no rows of {operands[0]} at {operands[1]}")
    return operands[0]


def _front(x: Bounded, places: Bounded) -> np.ndarray:
    return places.value.astype(np.int64) % x.value.shape[0]


def _of_bytes(dtype: str, name: str) -> tuple[OpSpec, OpSpec]:
    source = Slot(_accepts_long, _fresh_long)
    size = "%s" if dtype == "int8" else ""

    def counted(text: str, remainder: str) -> Callable[[Call], str]:
        """<at>: places from the front, of 64 bits, or of 32."""

        def spell(call: Call) -> str:
            return text.replace("<at>", remainder.replace("%s", str(call.operands[0].shape[0])))

        return spell

    torch = "({1}.long() % %s)" if size else "{1}.long()"
    tensorflow = "(tf.cast({1}, tf.int32) % %s)" if size else "tf.cast({1}, tf.int32)"
    relax = "relax.op.astype({1}, 'int64')"
    relax = f"relax.op.floor_mod({relax}, relax.const(%s, 'int64'))" if size else relax
    onnx = 'g.op("Cast", {1}, to=TensorProto.INT64)'
    read = OpSpec(
        f"take_{name}", "indexing", (source, _bytes(dtype)), _taken_type,
        lambda args, call: args[0].map(lambda array: array[_front(*args)]), signed_zero=True,
        torch=counted("torch.index_select({0}, 0, <at>)", torch),
        tensorflow=counted("tf.gather({0}, <at>)", tensorflow),
        jax="{0}[{1}]", relax=counted("relax.op.take({0}, <at>, axis=0)", relax),
        onnx=f'g.op("Gather", {{0}}, {onnx}, axis=0)',
    )  # fmt: skip
    write = OpSpec(
        f"write_{name}", "indexing", (source, _bytes(dtype), computed(_rows)), _written_type,
        lambda args, call: written(args[0], args[2], (_front(args[0], args[1]),)), signed_zero=True,
        torch=counted("torch.index_put({0}, (<at>,), {2})", torch),
        tensorflow=counted("tf.tensor_scatter_nd_update({0}, <at>[:, tf.newaxis], {2})", tensorflow),
        jax="{0}.at[{1}].set({2})", relax=unsupported("the same is asked of it as scatter_nd"),
        onnx=f'g.op("ScatterND", {{0}}, g.op("Unsqueeze", {onnx}, g.const([1], "int64")), {{2}})',
    )  # fmt: skip
    return read, write


def _at(word: str) -> str:
    return f'at_elements({{0}}, {{1}}, {{axis}}).{word}({{2}}, mode="clip")'


OPERATORS: tuple[OpSpec, ...] = (
    clipped(take, 'jnp.take({0}, {1}, axis={axis}, mode="clip")'),
    clipped(gather, 'jnp.take_along_axis({0}, {1}, axis={axis}, mode="clip")'),
    clipped(scatter, _at("set")),
    clipped(scatter_add, _at("add")),
    clipped(scatter_max, _at("max")),
    clipped(scatter_min, _at("min")),
    *_of_bytes("uint8", "bytes"),
    *_of_bytes("int8", "signed_bytes"),
)
