"""What is made of the rows that a mask keeps, put back at their places: how many there are is known only while the
program runs, and what follows has a size that compilers know a bound of, or nothing. Rows that are not kept are 0."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from generators.bounds.bounded import Bounded
from generators.graph import TensorType
from generators.ops.composed import compute, given, joined
from generators.ops.reduce.cumulative import cumprod, cumsum
from generators.ops.slots import NUMBERS, computed, draw_dim, draw_dtype, flag, int_of, numeric, one_of
from generators.ops.spec import AttrRule, Attrs, Call, Draw, OpSpec, Slot, Spelling, Types, unsupported

_SIZES = (7, 3, 17, 33, 5, 64, 37, 2, 1)
"""Of the rows, of which about half are kept: XLA computes running sums of more than 16 otherwise."""
_NO_JAX = unsupported("what is chosen by a mask has no shape before the program runs, which jax.jit asks for")
_NO_RELAX = unsupported("what relax.op.nonzero chooses is of unknown shape")
Made = Callable[[Bounded, Call], Bounded]


def _fresh(d: Draw, earlier: Types) -> TensorType:
    columns = () if d.boolean() else (draw_dim(d, 9, zero=False),)
    return TensorType(draw_dtype(d, NUMBERS), (d.choice(_SIZES), *columns))


_ROWS = Slot(numeric(1, 2, nonempty=True).accepts, _fresh)
_MASK = computed(lambda earlier: TensorType("bool", earlier[0].shape[:1]))


def _put_back(made: Made) -> Callable[[Sequence[Bounded], Call], Bounded]:
    """A row that may be kept or not moves all others."""

    def reference(args: Sequence[Bounded], call: Call) -> Bounded:
        x, mask = args
        rows = made(x.map(lambda a: a[mask.value]), call)
        value, error = np.zeros(x.value.shape, x.value.dtype), np.zeros(x.value.shape)
        value[mask.value], error[mask.value] = rows.value, rows.error
        error[np.broadcast_to(mask.undetermined.any(), error.shape)] = np.inf
        return Bounded(value, error, x.dtype)

    return reference


def _running(base: OpSpec, first: float) -> Made:
    """Forwards or backwards; where it is exclusive, of what comes before."""

    def made(rows: Bounded, call: Call) -> Bounded:
        turned: Callable[[Bounded], Bounded] = lambda x: x.map(lambda a: a[::-1]) if call.attrs["reverse"] else x  # noqa: E731
        rows = turned(rows)
        if call.attrs["exclusive"] and len(rows.value):
            front = given(np.full((1, *rows.value.shape[1:]), first), rows.dtype)
            front = replace(front, value=front.value.astype(rows.value.dtype))
            rows = joined(front, rows.map(lambda a: a[:-1]), axis=0)
        return turned(compute(base, rows, axis=0))

    return made


def _rolled(rows: Bounded, call: Call) -> Bounded:
    return rows.map(lambda a: np.roll(a, int_of(call.attrs, "shift"), 0))


def _kept(
    name: str, made: Made, torch: str, tensorflow: str, onnx: str, attrs: Mapping[str, AttrRule] | None = None
) -> OpSpec:  # fmt: skip
    """torch, tensorflow, onnx: what is made of `rows`."""
    rules = attrs or {}

    def result(operands: Types, attrs: Attrs) -> TensorType:
        if "shift" in rules:
            int_of(attrs, "shift")
        return operands[0]

    def said(text: str) -> Spelling:
        return f"kept({{0}}, {{1}}, lambda rows: {text})"

    return OpSpec(
        f"kept_{name}", "kept", (_ROWS, _MASK), result, _put_back(made), attrs=rules, base=name,
        torch=said(torch), tensorflow=said(tensorflow), jax=_NO_JAX, relax=_NO_RELAX,
        onnx=f"kept(g, {{0}}, {{1}}, lambda rows: {onnx}, {{shape}}, {{name}})",
    )  # fmt: skip


def _scan(name: str, base: OpSpec, first: float, kind: str) -> OpSpec:
    return _kept(
        name, _running(base, first), f"running_rows(torch.{name}, rows, {first:.0f}, {{exclusive}}, {{reverse}})",
        f"tf.math.{name}(rows, exclusive={{exclusive}}, reverse={{reverse}})",
        f'g.op("{kind}", rows, g.const(0, "int64"), exclusive=int({{exclusive}}), reverse=int({{reverse}}))',
        {"exclusive": flag(), "reverse": flag()},
    )  # fmt: skip


OPERATORS: tuple[OpSpec, ...] = (
    _scan("cumsum", cumsum, 0.0, "CumSum"),
    _scan("cumprod", cumprod, 1.0, "CumProd"),
    _kept("roll", _rolled, "torch.roll(rows, {shift}, 0)", "tf.roll(rows, {shift}, 0)", "roll_rows(g, rows, {shift})",
          {"shift": one_of(1, -1)}),
    _kept("flip", lambda rows, call: rows.map(np.flipud), "torch.flip(rows, [0])", "tf.reverse(rows, [0])",
          'g.op("Slice", rows, *(g.const([k], "int64") for k in (-1, -(2**63) + 1, 0, -1)))'),
)  # fmt: skip
