"""Numbers that are scaled by powers of 2 whose exponents are no whole numbers, and may be of another dtype."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from generators.bounds.bounded import PRECISION, Bounded
from generators.graph import TensorType
from generators.ops.composed import compute, undetermined
from generators.ops.elementwise.arithmetic import mul
from generators.ops.elementwise.cast import cast
from generators.ops.elementwise.exponential import OPERATORS as EXPONENTIALS
from generators.ops.reduce.promotion_rule import PROMOTED, category, of_pair
from generators.ops.slots import broadcastable, tensor
from generators.ops.spec import Attrs, Call, OpSpec, TypeRuleError, Types, unsupported

_POWER = next(spec for spec in EXPONENTIALS if spec.name == "exp2")
_FLOATS = tuple(dtype for dtype in PROMOTED if category(dtype) == 2)
_NONE = unsupported("its exponents are whole numbers")
_EXPONENT = replace(broadcastable(0, _FLOATS), span=(-24, 24))


def _type(operands: Types, attrs: Attrs) -> TensorType:
    x, n = operands
    if n.dtype not in _FLOATS:
        raise TypeRuleError(f"{n} is no floating exponent")
    to = of_pair(x, n)
    return mul.result(tuple(TensorType(to, one.shape) for one in operands), {})


def _scaled(args: Sequence[Bounded], call: Call) -> Bounded:
    """torch.ldexp is documented as x * 2 ** n: a power in the dtype of n, which promotes with x. What overflows there
    may be finite where it is computed in a wider dtype."""
    x, n = args
    power, to = compute(_POWER, n), call.result.dtype
    with np.errstate(all="ignore"):
        wide = np.exp2(n.value) * (1 + 32 * PRECISION[n.dtype].unit) > PRECISION[n.dtype].largest
    power = undetermined(power, wide & (n.value != np.inf))
    x, power = (one if one.dtype == to else compute(cast, one, to=to) for one in (x, power))
    return compute(mul, x, power)


OPERATORS: tuple[OpSpec, ...] = (
    OpSpec(
        "ldexp_mixed", "numerals", (tensor(PROMOTED), _EXPONENT), _type, _scaled, signed_zero=True, promotes=True,
        torch="torch.ldexp({0}, {1})", tensorflow=_NONE, jax=_NONE, relax=_NONE, onnx=_NONE,
    ),
)  # fmt: skip
