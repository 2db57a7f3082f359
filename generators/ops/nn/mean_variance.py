"""Mean 0 and variance 1 along any axes of images, as ONNX defines it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np

from generators.bounds.bounded import PRECISION, U64, Bounded, gamma
from generators.bounds.standardized import scaled, standardized
from generators.graph import TensorType
from generators.ops.composed import given, shared, undetermined
from generators.ops.slots import ints_of, normalized, one_of, tensor
from generators.ops.spec import Attrs, Call, OpSpec, TypeRuleError, Types, only

_EPSILON = 1e-9
"""What ONNX adds to the deviation."""


def _type(operands: Types, attrs: Attrs) -> TensorType:
    x = operands[0]
    if x.rank != 4 or x.size == 0 or not normalized(ints_of(attrs, "axes"), 4):
        raise TypeRuleError(f"{x} holds no images")
    return x


def _normalized(args: Sequence[Bounded], call: Call) -> Bounded:
    """The variance may be the mean of squares without the square of the mean, which is off by gamma of the mean of
    squares: half of that, by the variance, is what the deviation is off by. Undetermined where that is much, but where
    all are the same whole number, small enough that no step rounds: 0 is divided by epsilon (which float16 lacks)."""
    x, axes = args[0], normalized(call.attrs["axes"], 4)
    z = standardized(x, axes, 0.0)
    result = scaled(z, given(1.0, x.dtype), None)
    n = prod(x.value.shape[axis] for axis in axes)
    with np.errstate(all="ignore"):
        squares = np.mean((np.abs(x.value) + x.error) ** 2, axes, keepdims=True)
        lost = gamma(n + 10, PRECISION[x.dtype].unit + U64) * squares * z.top**2 + 2 * _EPSILON * z.top
        wide = ~(lost < 0.25) | (squares * n > PRECISION[x.dtype].largest) | (squares < 64 * PRECISION[x.dtype].tiny)
        error = result.error + 2 * lost * (np.abs(result.value) + result.error)
        low, high = (bound(x.value, axes, keepdims=True) for bound in (np.min, np.max))
        exact = (low == high) & (low == np.round(low)) & ~np.any(x.error, axes, keepdims=True)
        exact &= x.dtype == "float32"
        exact &= (low == 0) | ((n & (n - 1) == 0) & (low**2 * n * PRECISION[x.dtype].unit < 0.5))
    exact = np.broadcast_to(exact, error.shape)
    result = replace(result, value=np.where(exact, 0.0, result.value), error=np.where(exact, 0.0, error))
    return undetermined(result, np.broadcast_to(wide, error.shape) & ~exact)


_SHARED = shared("mean_variance")
mean_variance_normalization = OpSpec(
    "mean_variance_normalization", "norm", (tensor(("float32", "float16"), 4, 4, nonempty=True),), _type, _normalized,
    attrs={"axes": one_of((0, 2, 3), (2, 3), (1,), (0, 1, 2, 3))},
    torch=_SHARED["torch"], tensorflow=_SHARED["tensorflow"], jax=_SHARED["jax"], relax=_SHARED["relax"],
    onnx=only(
        ("float32",), "the function that defines it adds a number of float32",
        'g.op("MeanVarianceNormalization", {0}, axes={axes})',
    ),
)  # fmt: skip

OPERATORS: tuple[OpSpec, ...] = (mean_variance_normalization,)
