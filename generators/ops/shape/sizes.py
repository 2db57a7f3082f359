"""Numbers of elements, of axes, and the shape, as integers; tensors of zeros, ones and another number of the
same shape; numbers on a line between two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from generators.bounds.bounded import PRECISION, U64, Bounded, exact, rounded
from generators.graph import COMMON, DTYPES, EVERY, FLOATS, TensorType
from generators.ops.slots import draw_dtype, int_of, one_of, same_as, tensor
from generators.ops.spec import Attrs, Call, Draw, OpSpec, Slot, TypeRuleError, Types, unsupported

# ---- sizes --------------------------------------------------------------------------------------------

KINDS = ("size", "rank", "shape")


def _numbers(call: Call) -> int | list[int]:
    type_ = call.operands[0]
    return {"size": type_.size, "rank": type_.rank, "shape": list(type_.shape)}[str(call.attrs["kind"])]


def _size_type(operands: Types, attrs: Attrs) -> TensorType:
    if attrs["kind"] not in KINDS or (attrs["kind"] == "shape" and operands[0].rank == 0):
        raise TypeRuleError(f"no {attrs['kind']!r} of {operands[0]}")
    return TensorType("int64", (operands[0].rank,) if attrs["kind"] == "shape" else ())


def _size_text(call: Call) -> str:
    return {
        "size": "tf.size({0}, out_type=tf.int64)", "rank": "tf.cast(tf.rank({0}), tf.int64)",
        "shape": "tf.shape_n([{0}], out_type=tf.int64)[0]",
    }[str(call.attrs["kind"])]  # fmt: skip


def _onnx_size(call: Call) -> str:
    return {
        "size": 'g.op("Size", {0})', "rank": 'g.op("Size", g.op("Shape", {0}))', "shape": 'g.op("Shape", {0})',
    }[str(call.attrs["kind"])]  # fmt: skip


tensor_size = OpSpec(
    "tensor_size", "grids", (tensor(EVERY),), _size_type, lambda args, call: exact(np.asarray(_numbers(call)), "int64"),
    attrs={"kind": lambda d, operands, attrs: d.choice(KINDS if operands[0].rank else KINDS[:2])},
    torch=lambda call: {"size": "torch.tensor({0}.numel(), device={0}.device)",
                        "rank": "torch.tensor({0}.dim(), device={0}.device)",
                        "shape": "torch.tensor({0}.shape, device={0}.device)"}[str(call.attrs["kind"])],
    tensorflow=_size_text,
    jax=lambda call: {"size": "jnp.asarray(jnp.size({0}), jnp.int64)", "rank": "jnp.asarray(jnp.ndim({0}), jnp.int64)",
                      "shape": "jnp.asarray(jnp.shape({0}), jnp.int64)"}[str(call.attrs["kind"])],
    relax=unsupported("its shapes are no tensors"), onnx=_onnx_size,
)  # fmt: skip

# ---- constants ----------------------------------------------------------------------------------------


def _filled(name: str, value: int) -> OpSpec:
    def reference(args: Sequence[Bounded], call: Call) -> Bounded:
        shape, dtype = call.result.shape, call.result.dtype
        return Bounded(np.full(shape, value, args[0].value.dtype), np.zeros(shape), dtype)

    return OpSpec(
        name, "grids", (tensor(EVERY),), same_as(0), reference, torch=f"torch.{name}({{0}})",
        tensorflow=f"tf.raw_ops.{'Zeros' if value == 0 else 'Ones'}Like(x={{0}})", jax=f"jnp.{name}({{0}})",
        relax=f"relax.op.{name}({{0}})",
        onnx=f'g.op("Expand", g.const({value}, {{name}}), g.op("Shape", {{0}}))', signed_zero=True,
    )  # fmt: skip


def _filled_of(name: str, value: int) -> OpSpec:
    """Of another dtype than the operand's."""

    def result(operands: Types, attrs: Attrs) -> TensorType:
        if attrs["to"] not in EVERY or attrs["to"] == operands[0].dtype:
            raise TypeRuleError(f"{attrs['to']!r} is no other dtype than {operands[0].dtype}")
        return TensorType(str(attrs["to"]), operands[0].shape)

    def reference(args: Sequence[Bounded], call: Call) -> Bounded:
        shape, dtype = call.result.shape, call.result.dtype
        held = np.float64 if dtype in FLOATS else np.dtype(dtype)
        return Bounded(np.full(shape, value, held), np.zeros(shape), dtype)

    def other(d: Draw, operands: Types, attrs: Attrs) -> str:
        return d.choice([one for one in COMMON if one != operands[0].dtype])

    return OpSpec(
        f"{name}_to", "grids", (tensor(EVERY),), result, reference, attrs={"to": other},
        torch=f"torch.{name}({{0}}, dtype={{dtype}})", tensorflow=f"tf.{name}({{0}}, {{dtype}})",
        jax=f"jnp.{name}({{0}}, {{dtype}})", relax=f"relax.op.{name}({{0}}, {{dtype}})",
        onnx=f'g.op("Expand", g.const({value}, {{name}}), g.op("Shape", {{0}}))', signed_zero=True,
    )  # fmt: skip


_NUMBERS = (2.0, 1.5, 0.5, -1.5, 0.0)
"""Exact in every floating dtype; what integers hold of them lies nearer to zero, and truth values of all but 0 are true
(as `numpy.full_like` has it)."""


def _number_type(operands: Types, attrs: Attrs) -> TensorType:
    if attrs["to"] not in DTYPES or float(attrs["value"]) not in _held(str(attrs["to"])):  # type: ignore[arg-type]
        raise TypeRuleError(f"no {attrs['to']!r} of {attrs['value']!r}")
    return TensorType(str(attrs["to"]), operands[0].shape)


def _held(dtype: str) -> tuple[float, ...]:
    return tuple(one for one in _NUMBERS if one >= 0 or not dtype.startswith("u"))


def _number(args: Sequence[Bounded], call: Call) -> Bounded:
    shape, dtype = call.result.shape, call.result.dtype
    held = np.float64 if dtype in FLOATS else np.dtype(dtype)
    return Bounded(np.full(shape, call.number("value")).astype(held), np.zeros(shape), dtype)


full_like_to = OpSpec(
    "full_like_to", "grids", (tensor(EVERY),), _number_type, _number,
    attrs={"to": one_of(*COMMON), "value": lambda d, operands, attrs: d.choice(_held(str(attrs["to"])))},
    torch="torch.full_like({0}, {value}, dtype={dtype})",
    tensorflow="tf.experimental.numpy.full_like({0}, {value}, {dtype})",
    jax="jnp.full_like({0}, {value}, {dtype})",
    relax="relax.op.full_like({0}, relax.const(np.array({value}).astype({name})), {dtype})",
    onnx='g.op("Expand", g.const(np.array({value}).astype({name}), {name}), g.op("Shape", {0}))', signed_zero=True,
)  # fmt: skip


# ---- between two numbers ------------------------------------------------------------------------------


def _line_type(operands: Types, attrs: Attrs) -> TensorType:
    size = int_of(attrs, "size")
    if operands[0].rank or operands[1] != operands[0] or not 1 <= size <= 200 or operands[0].dtype not in FLOATS:
        raise TypeRuleError(f"no {size} numbers between {operands[0]} and {operands[1]}")
    return TensorType(operands[0].dtype, (size,))


def line(args: Sequence[Bounded], call: Call) -> Bounded:
    """start + i (stop - start) / (n - 1), or (1 - t) start + t stop: six roundings of the size of the ends (quotients
    of 2.5 ulp), of which a step may overflow. Of infinite ends nothing is said. The first number is the start, as all
    document it, also where the step overflows."""
    first, last = args
    n, p = call.result.shape[0], PRECISION[first.dtype]
    share = np.arange(n) / max(1, n - 1)
    with np.errstate(all="ignore"):
        value = (1 - share) * first.value + share * last.value
        size = np.abs(first.value) + np.abs(last.value) + first.error + last.error
        error = first.error + last.error + 12 * (p.unit + U64) * size + n * p.tiny
        bad = ~np.isfinite(size) | (n * size > p.largest)
        found = rounded(
            np.where(bad, 0.0, value), np.broadcast_to(np.where(bad, np.inf, error), value.shape), first.dtype
        )
        starts = (np.arange(n) == 0) & bad & np.isfinite(first.value) & np.isfinite(last.value) & ~last.undetermined
        starts = starts & (first.error == 0) & ((np.abs(first.value) >= p.tiny) | (first.value == 0))
    return replace(found, value=np.where(starts, first.value, found.value), error=np.where(starts, 0.0, found.error))


_SCALAR = Slot(lambda t, e: t.dtype in FLOATS and t.rank == 0, lambda d, e: TensorType(draw_dtype(d, FLOATS), ()))
line_between = OpSpec(
    "line_between", "grids", (_SCALAR, Slot(lambda t, e: t == e[0], lambda d, e: e[0])), _line_type, line,
    attrs={"size": one_of(5, 1, 2, 33)}, torch="torch.linspace({0}, {1}, {size}, dtype={dtype}, device={0}.device)",
    tensorflow="tf.raw_ops.LinSpace(start={0}, stop={1}, num={size})", jax="jnp.linspace({0}, {1}, {size})",
    relax=unsupported("it has no such operator"), onnx=unsupported("it has no such operator"),
)  # fmt: skip

OPERATORS: tuple[OpSpec, ...] = (
    tensor_size,
    *(maker(name, value) for maker in (_filled, _filled_of) for name, value in (("zeros_like", 0), ("ones_like", 1))),
    full_like_to,
    line_between,
)
