"""Normalisation by neighbouring channels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from generators.bounds.bounded import PRECISION, U64, Bounded, gamma, rounded
from generators.graph import TensorType
from generators.ops.composed import shared
from generators.ops.nn.normalized_operands import full, normalizable
from generators.ops.slots import int_of, one_of
from generators.ops.spec import AttrRule, Attrs, Call, OpSpec, TypeRuleError, Types

Array = np.ndarray

BETAS = (0.75, 0.5, 1.0)


def _windows(x: Array, size: int) -> Array:
    """Of `size` channels around each, of an even number one more in front, zeros beyond the ends: in a last axis."""
    wide = np.pad(x, [(0, 0), (size // 2, (size - 1) // 2), *[(0, 0)] * (x.ndim - 2)])
    return np.stack([wide[:, i : i + x.shape[1]] for i in range(size)], axis=-1)


def _local_response(args: Sequence[Bounded], call: Call) -> Bounded:
    """x / (k + alpha / size * sum of the squares of `size` channels) ^ beta. The squares' sum takes size + 4 roundings;
    pow 16 ulp and the division 2.5 (OpenCL), or a product with the power of minus beta. k is positive. With an
    infinity among the squares, or sums that may overflow, the result is undetermined, unless x is NaN."""
    x, size = args[0], int_of(call.attrs, "size")
    p = PRECISION[x.dtype]
    unit = p.unit + U64
    alpha, beta, k = (call.number(name) for name in ("alpha", "beta", "k"))
    with np.errstate(all="ignore"):
        finite = np.isfinite(x.value) & np.isfinite(x.error)
        value, error = np.where(finite, x.value, 0.0), np.where(finite, x.error, 0.0)
        squares = np.sum(_windows(value * value, size), -1)
        moved = np.sum(_windows(error * (2 * np.abs(value) + error), size), -1)
        total = k + alpha / size * squares
        off = alpha / size * moved + gamma(size + 4, unit) * (total + alpha / size * moved) + 2 * p.tiny
        power, top = total**-beta, np.maximum(total - off, k * (1 - 4 * unit)) ** -beta
        relative = np.maximum(top / power - 1, 1 - ((total + off) / total) ** -beta) + 34 * unit
        spread = error * power * (1 + relative) + np.abs(value) * power * relative
        wild = np.sum(_windows(~finite * 1.0, size), -1) > 0
        wild |= size * (np.max(_windows(np.abs(value) + error, size), -1)) ** 2 > p.largest / (4 * max(1.0, alpha))
        nan = np.isnan(x.value) & ~x.undetermined
        spread = np.where(nan, 0.0, np.where(wild, np.inf, spread))
        return rounded(np.where(nan, np.nan, value * power), spread, x.dtype, 2.5)


def _local_type(operands: Types, attrs: Attrs) -> TensorType:
    x, size = operands[0], int_of(attrs, "size")
    if x.rank != 4 or x.size == 0 or size < 1:
        raise TypeRuleError(f"no response over {size} channels of {x}")
    if attrs["beta"] not in BETAS:
        raise TypeRuleError(f"beta {attrs['beta']!r} is none of {BETAS}")
    for name in ("alpha", "k"):
        value = attrs[name]
        if not isinstance(value, float) or value <= 0:
            raise TypeRuleError(f"{name} {value!r} is not a positive float")
    return x


def _local_tensorflow(call: Call) -> str:
    if call.result.dtype != "float32" or int_of(call.attrs, "size") % 2 == 0:  # as many on both sides
        composed = _LOCAL["tensorflow"]
        assert callable(composed)
        return str(composed(call))
    return "local_response_norm_native({0}, {size}, {alpha}, {beta}, {k})"


def _local_onnx(call: Call) -> str:
    if call.result.dtype == "float64":  # ONNX Runtime has a kernel for float only, and casts float16 around it
        composed = _LOCAL["onnx"]
        assert callable(composed)
        return str(composed(call))
    if int_of(call.attrs, "size") % 2:
        return 'g.op("LRN", {0}, size={size}, alpha={alpha}, beta={beta}, bias={k})'
    turn = f"g.const({list(range(call.result.shape[1]))[::-1]}, 'int64'), axis=1)"  # it takes one more behind
    return (
        f'g.op("Gather", g.op("LRN", g.op("Gather", {{0}}, {turn}, size={{size}}, alpha={{alpha}}, beta={{beta}}, '
        f"bias={{k}}), {turn}"
    )


_LOCAL = shared("local_response_norm")

_RULES: dict[str, AttrRule] = {
    "size": one_of(3, 1, 5, 2, 4), "alpha": one_of(1.0, 0.5, 2.0**-10), "beta": one_of(*BETAS), "k": one_of(1.0, 2.0),
}  # fmt: skip
local_response_norm = OpSpec(
    "local_response_norm", "norm", (full(normalizable(4, 4)),), _local_type, _local_response, attrs=_RULES,
    torch="torch.nn.functional.local_response_norm({0}, {size}, {alpha}, {beta}, {k})",
    tensorflow=_local_tensorflow, jax=_LOCAL["jax"], relax=_LOCAL["relax"], onnx=_local_onnx,
)  # fmt: skip

OPERATORS: tuple[OpSpec, ...] = (local_response_norm,)
