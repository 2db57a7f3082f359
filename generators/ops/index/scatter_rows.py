"""Rows written to where coordinates say, in TensorFlow's other ways: subtracted, the lesser or the greater kept, added
to a tensor that is not to be changed, or put among zeros."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from generators.bounds.bounded import Bounded
from generators.graph import TensorType
from generators.ops.index.gather import gather_nd
from generators.ops.index.scatter import extremes, summed_at
from generators.ops.slots import NUMBERS, computed, one_of, tensor
from generators.ops.spec import Attrs, Call, OpSpec, Spelling, TypeRuleError, Types, Unsupported

KINDS = {"sub": "TensorScatterSub", "min": "TensorScatterMin", "max": "TensorScatterMax",
         "add": "ScatterNdNonAliasingAdd", "zeros": "ScatterNd"}  # fmt: skip


def _rows(operands: Types) -> TensorType:
    return gather_nd.result(operands[:2], {})


def _type(operands: Types, attrs: Attrs) -> TensorType:
    if operands[2] != _rows(operands) or attrs["kind"] not in KINDS:
        raise TypeRuleError(f"{operands[2]} does not go with the coordinates {operands[1]}")
    return operands[0]


def _reference(args: Sequence[Bounded], call: Call) -> Bounded:
    """Extremes say nothing of NaN: kernels compare."""
    x, coordinates, update = args
    places, kind = tuple(np.moveaxis(coordinates.value, -1, 0)), call.attrs["kind"]
    if kind in ("min", "max"):
        found = extremes(np.minimum if kind == "min" else np.maximum, x, update, places)
        return (
            Bounded(found.value, np.where(np.isnan(found.value), np.inf, found.error), x.dtype)
            if x.floating
            else (found)
        )
    if kind == "zeros":
        x = Bounded(np.zeros_like(x.value), np.zeros(x.value.shape), x.dtype)
    with np.errstate(all="ignore"):
        return summed_at(x, Bounded(-update.value, update.error, x.dtype) if kind == "sub" else update, places)


def _tensorflow(call: Call) -> str:
    kind = KINDS[str(call.attrs["kind"])]
    if kind == "ScatterNd":
        return "tf.scatter_nd({1}, {2}, tf.constant({shape}, tf.int64))"
    return (
        f"tf.raw_ops.{kind}({'input' if kind.startswith('Scatter') else 'tensor'}={{0}}, indices={{1}}, updates={{2}})"
    )


def _jax(call: Call) -> str:
    kind = str(call.attrs["kind"])
    return (
        ("jnp.zeros_like({0})" if kind == "zeros" else "{0}")
        + ".at[tuple(jnp.moveaxis({1}, -1, 0))]."
        + (f"{ {'sub': 'subtract', 'zeros': 'add'}.get(kind, kind) }({{2}})")
    )


def _torch(call: Call) -> str | Unsupported:
    kind = str(call.attrs["kind"])
    if kind in ("min", "max"):
        return Unsupported("torch.index_put adds only")
    x = "torch.zeros_like({0})" if kind == "zeros" else "{0}"
    return f"torch.index_put({x}, torch.unbind({{1}}, -1), {'-' if kind == 'sub' else ''}{{2}}, accumulate=True)"


def _reduction(text: str) -> Spelling:
    def spell(call: Call) -> str | Unsupported:
        kind = str(call.attrs["kind"])
        return text.replace("%r", kind) if kind in ("add", "min", "max") else Unsupported("it has no such reduction")

    return spell


scatter_rows = OpSpec(
    "scatter_rows", "indexing", (tensor(NUMBERS, min_rank=1, nonempty=True), gather_nd.operands[1], computed(_rows)),
    _type, _reference, attrs={"kind": one_of(*KINDS)}, torch=_torch, tensorflow=_tensorflow, jax=_jax,
    relax=_reduction('relax.op.scatter_nd({0}, {1}, {2}, "%r")'),
    onnx=_reduction('g.op("ScatterND", {0}, {1}, {2}, reduction="%r")'),
)  # fmt: skip

OPERATORS: tuple[OpSpec, ...] = (scatter_rows,)
