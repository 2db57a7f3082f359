"""Prefix sums and products along an axis, and triangles of matrices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from generators.bounds.bounded import Bounded, exact
from generators.bounds.sums import multiplied, summed
from generators.graph import Attr, TensorType
from generators.ops.slots import axis_of, normalized, numeric, tensor
from generators.ops.spec import Call, Draw, OpSpec, Reference, ResultRule, Spelling, TypeRuleError, Types, unsupported


def _prefixes(f: Callable, bound: Callable[..., Bounded]) -> Reference:
    """np.cumsum or np.cumprod, inclusive. Parallel scans associate in any way, so that a prefix of k terms is
    any tree of k - 1 additions; none of them may touch later elements."""

    def reference(args: Sequence[Bounded], call: Call) -> Bounded:
        x = args[0]
        axis = normalized(call.attrs["axis"], x.value.ndim)[0]
        if x.floating:
            terms = np.arange(1, x.value.shape[axis] + 1).reshape([-1] + [1] * (x.value.ndim - axis - 1))
            return bound(x, partial(f, axis=axis), terms)
        unknown = np.logical_or.accumulate(x.undetermined, axis=axis)
        with np.errstate(all="ignore"):
            return exact(f(x.value, axis=axis, dtype=x.dtype), x.dtype, unknown)

    return reference


def _scanned() -> ResultRule:
    def rule(operands: Types, attrs: Mapping[str, Attr]) -> TensorType:
        normalized(attrs["axis"], operands[0].rank)
        return operands[0]

    return rule


def _scan(name: str, reference: Reference, tensorflow: str, onnx: Spelling, *, signed_zero: bool = False) -> OpSpec:
    return OpSpec(
        name, "scan", (numeric(min_rank=1),), _scanned(), reference, attrs={"axis": axis_of(0)},
        torch=f"torch.{name}({{0}}, dim={{axis}}, dtype={{dtype}})",
        tensorflow=f"{tensorflow}({{0}}, axis={{axis}})",
        jax=f"jnp.{name}({{0}}, axis={{axis}}, dtype={{dtype}})",
        relax=f"relax.op.{name}({{0}}, axis={{axis}}, dtype={{dtype}})",
        onnx=onnx, signed_zero=signed_zero,
    )  # fmt: skip


def _diagonal(d: Draw, operands: Types, attrs: Mapping[str, Attr]) -> int:
    """From beyond the lower left corner, which leaves nothing, to beyond the upper right one."""
    rows, columns = operands[0].shape[-2:]
    return d.choice((0, 1, -1, 2, -2, columns, -rows, columns - 1, 1 - rows))


def _matrices(operands: Types, attrs: Mapping[str, Attr]) -> TensorType:
    if operands[0].rank < 2:
        raise TypeRuleError(f"{operands[0]} holds no matrix")
    if type(attrs["k"]) is not int:
        raise TypeRuleError(f"diagonal {attrs['k']!r} is not an int")
    return operands[0]


def _triangle(name: str, upper: int) -> OpSpec:
    """`k` counts diagonals upwards from the main one. Elements are copied or zero."""
    f = getattr(np, name)

    def reference(args: Sequence[Bounded], call: Call) -> Bounded:
        return args[0].map(lambda array: f(array, call.attrs["k"]).astype(array.dtype))

    return OpSpec(
        name, "scan", (tensor(min_rank=2),), _matrices, reference, attrs={"k": _diagonal}, signed_zero=True,
        torch=f"torch.{name}({{0}}, diagonal={{k}})", tensorflow=f"{name}({{0}}, {{k}})",
        jax=f"jnp.{name}({{0}}, k={{k}})", relax=f"relax.op.{name}({{0}}, k={{k}})",
        onnx=f'g.op("Trilu", {{0}}, g.const({{k}}, "int64"), upper={upper})',
    )  # fmt: skip


cumsum = _scan("cumsum", _prefixes(np.cumsum, summed), "tf.cumsum", 'g.op("CumSum", {0}, g.const({axis}, "int64"))')

SCAN: tuple[OpSpec, ...] = (
    cumsum,
    _scan(
        "cumprod",
        _prefixes(np.cumprod, multiplied),
        "tf.math.cumprod",
        unsupported("ONNX has no CumProd before opset 26"),
        signed_zero=True,
    ),
    _triangle("tril", 0),
    _triangle("triu", 1),
)
