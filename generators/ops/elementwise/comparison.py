"""Comparisons: equal to greater_equal, of truth values too, isclose."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from generators.bounds.bounded import PRECISION, U64, Bounded, exact, settled
from generators.ops.elementwise.records import numpy_binary
from generators.ops.slots import boolean, broadcast, broadcastable, numeric, one_of
from generators.ops.spec import Call, OpSpec, Reference, Slot

Array = np.ndarray


def _compare(f: Callable[[Array, Array], Array]) -> Reference:
    """Undetermined where the two intervals meet, unless both are points. NaN compares the same way with all."""

    def reference(args: Sequence[Bounded], call: Call) -> Bounded:
        x, y = args
        if not x.floating:
            return exact(f(x.value, y.value), "bool", x.undetermined | y.undetermined)
        with np.errstate(all="ignore"):
            error = x.error + y.error
            meet = (error > 0) & ~(np.abs(x.value - y.value) > error * (1 + 4 * U64))
            return exact(f(x.value, y.value), "bool", settled(x, y, np.where(meet, np.inf, 0.0)) > 0)

    return reference


def _comparison(name: str, torch: str, onnx: str | tuple[str, str], of: Slot | None = None, said: str = "") -> OpSpec:
    """onnx: the operator, or the one to negate before it (for not_equal). of: what is compared, by default numbers.
    said: the operator's name where it is another one."""
    text = f'g.op("{onnx}", {{0}}, {{1}})'
    if isinstance(onnx, tuple):
        text = f'g.op("{onnx[0]}", g.op("{onnx[1]}", {{0}}, {{1}}))'
    return OpSpec(
        said or name, "comparison", (of or numeric(), broadcastable(0)), broadcast("bool"), _compare(getattr(np, name)),
        torch=f"torch.{torch}({{0}}, {{1}})", tensorflow=f"tf.{name}({{0}}, {{1}})",
        jax=f"jnp.{name}({{0}}, {{1}})", relax=f"relax.op.{name}({{0}}, {{1}})", onnx=text,
    )  # fmt: skip


def _isclose(args: Sequence[Bounded], call: Call) -> Bounded:
    """|x - y| <= atol + rtol |y|; equal infinities are close, others and NaN are not. The left side has one rounding,
    the right one four (both constants, the product, the sum)."""
    x, y = args
    p = PRECISION[x.dtype]
    rtol, atol = (call.number(name) for name in ("rtol", "atol"))
    with np.errstate(all="ignore"):
        finite = np.isfinite(x.value) & np.isfinite(y.value)
        distance = np.where(finite, np.abs(x.value - y.value), np.inf)
        limit = np.where(finite, atol + rtol * np.abs(y.value), 0.0)
        value = np.where(finite, distance <= limit, x.value == y.value)
        error = x.error + (1 + rtol) * y.error + (p.unit + U64) * (distance + 4 * limit) + 4 * p.tiny
        same = (x.value == y.value) & (x.error + y.error == 0)
        unsure = finite & ~same & ~(np.abs(distance - limit) > error)
    return exact(value, "bool", settled(x, y, np.where(unsure, np.inf, 0.0)) > 0)


OPERATORS: tuple[OpSpec, ...] = (
    _comparison("equal", "eq", "Equal"),
    _comparison("not_equal", "ne", ("Not", "Equal")),
    _comparison("less", "lt", "Less"),
    _comparison("less_equal", "le", "LessOrEqual"),
    _comparison("greater", "gt", "Greater"),
    _comparison("greater_equal", "ge", "GreaterOrEqual"),
    _comparison("equal", "eq", "Equal", boolean(), "equal_truth_values"),
    _comparison("not_equal", "ne", ("Not", "Equal"), boolean(), "not_equal_truth_values"),
    numpy_binary(
        "isclose", _isclose, result=broadcast("bool"),
        attrs={"rtol": one_of(1e-5, 0.0, 0.5, 1e-3), "atol": one_of(1e-8, 0.0, 0.25, 1e-3)},
        torch="torch.isclose({0}, {1}, rtol={rtol}, atol={atol})",
        tensorflow="isclose({0}, {1}, {rtol}, {atol})", jax="jnp.isclose({0}, {1}, rtol={rtol}, atol={atol})",
        relax="isclose(bb, {0}, {1}, {rtol}, {atol}, {dtype0})", onnx="isclose(g, {0}, {1}, {rtol}, {atol}, {name0})",
    ),
)  # fmt: skip
