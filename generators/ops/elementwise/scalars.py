"""Operators one of whose operands is a number of the program (`x ** 2`, `1 - x`): what models write most. PyTorch has
overloads of their own for it, JAX takes it for weakly typed, TensorFlow, Relax and ONNX make a constant of it.

A record follows from that of the operator of tensors, and the position of the number: its reference, with a constant
(rounded once, where the dtype does not hold it), and its spelling in every dialect, with a literal in its place."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf, isfinite, nan
from typing import Any

import numpy as np

from generators.bounds.bounded import PRECISION, Bounded
from generators.graph import FLOATS, INTEGERS, Attr, TensorType
from generators.ops.elementwise.arithmetic import OPERATORS as ARITHMETIC
from generators.ops.elementwise.bitwise import OPERATORS as BITWISE
from generators.ops.elementwise.comparison import OPERATORS as COMPARISONS
from generators.ops.elementwise.division import OPERATORS as DIVISIONS
from generators.ops.elementwise.exponential import OPERATORS as EXPONENTIALS
from generators.ops.elementwise.floating import OPERATORS as FLOATING
from generators.ops.elementwise.incomplete import OPERATORS as INCOMPLETE
from generators.ops.elementwise.normal import OPERATORS as NORMAL
from generators.ops.elementwise.polynomials import MOST, chebyshev, orthogonal
from generators.ops.elementwise.powers import OPERATORS as POWERS
from generators.ops.elementwise.references import constant
from generators.ops.elementwise.selection import OPERATORS as SELECTIONS
from generators.ops.slots import NUMBERS, boolean, broadcastable, floating, tensor, within
from generators.ops.spec import (
    Attrs,
    Call,
    Draw,
    OpSpec,
    ResultRule,
    Slot,
    Spelling,
    TypeRuleError,
    Types,
    Unsupported,
    said,
)

_LITERALS = {
    "torch": "{scalar}",
    "jax": "{scalar}",
    "tensorflow": "tf.constant({scalar}, {dtype#})",
    "relax": "relax.const({scalar}, {dtype#})",
    "onnx": "g.const({scalar}, {name#})",
}
_FIELD = re.compile(r"\{(dtype|name|shape|rank|)(\d+)\}")


def _inserted(position: int, types: Types, like: int) -> Types:
    """The operands of the operator of tensors: the number has no dimensions, and the dtype of the operand `like`."""
    return (*types[:position], TensorType(types[like].dtype, ()), *types[position:])


def _spelling(spelling: Spelling, dialect: str, position: int, like: int) -> Spelling:
    def field(match: re.Match[str]) -> str:
        kind, number = match[1], int(match[2])
        if number != position:
            return f"{{{kind}{number - (number > position)}}}"
        of_like = {"dtype": f"{{dtype{like}}}", "name": f"{{name{like}}}", "shape": "()", "rank": "0"}
        return of_like.get(kind) or _LITERALS[dialect].replace("#", str(like))

    def spell(call: Call) -> str | Unsupported:
        whole = replace(call, operands=_inserted(position, call.operands, like))
        text = said(spelling, whole)
        return _FIELD.sub(field, text) if isinstance(text, str) else text

    return spelling if isinstance(spelling, Unsupported) else spell


def number(value: Attr, like: Bounded) -> Bounded:
    """A number of the program as an operand of the dtype: kept as it is (PyTorch's arithmetic of float16 and bfloat16
    is in float32), or rounded."""
    if like.dtype not in PRECISION:
        return Bounded(np.asarray(value, like.dtype), np.zeros(()), like.dtype, zero_sign=True)
    x = constant(float(value), Bounded(np.zeros(()), np.zeros(()), like.dtype))  # type: ignore[arg-type]
    with np.errstate(all="ignore"):
        held = np.isnan(x.value) or float(x.value.astype(like.dtype)) == float(x.value)
    return replace(x, error=np.zeros(()) if held else x.error, zero_sign=True)


def with_scalar(
    base: OpSpec,
    position: int,
    floats: Sequence[float] = (),
    integers: Sequence[int] = (),
    *,
    name: str = "",
    slots: tuple[Slot, ...] | None = None,
    like: int = 0,
    result: ResultRule | None = None,
    attrs: Mapping | None = None,
    **spellings: Spelling,
) -> OpSpec:
    """`base` with a number in place of the operand at `position`. It is one of `floats` or of `integers`, as the
    operand `like` of those that remain is; integers are kept within the dtype. spellings: dialects that write it in
    another way."""

    def drawn(d: Draw, operands: Types, attrs: Attrs) -> Attr:
        dtype = operands[like].dtype
        if dtype in FLOATS:
            return d.choice(floats)
        return d.choice(tuple(one for one in dict.fromkeys(within(dtype, integers)) if one or 0 in integers))

    def typed(operands: Types, attrs: Attrs) -> TensorType:
        value, dtype = attrs["scalar"], operands[like].dtype
        if isinstance(value, bool) or not isinstance(value, int | float) or dtype not in (*FLOATS, *INTEGERS):
            raise TypeRuleError(f"{value!r} is no number beside {operands[like]}")
        if dtype in INTEGERS and not (isinstance(value, int) and value in within(dtype, (value,))):
            raise TypeRuleError(f"{value!r} is not an {dtype}")
        if dtype in INTEGERS and not value and 0 not in integers:
            raise TypeRuleError(f"{base.name} of whole numbers has no result by 0")
        if dtype in FLOATS and not (
            abs(value) <= PRECISION[dtype].largest or (not isfinite(value) and value in floats)
        ):
            raise TypeRuleError(f"{value!r} is beyond {dtype}")
        if not floats if dtype in FLOATS else not integers:
            raise TypeRuleError(f"no number beside {dtype}")
        return base.result(_inserted(position, operands, like), attrs)

    def reference(args: Sequence[Bounded], call: Call) -> Bounded:
        given = (*args[:position], number(call.attrs["scalar"], args[like]), *args[position:])
        return base.reference(given, replace(call, operands=_inserted(position, call.operands, like)))

    remaining = tuple(slot for i, slot in enumerate(base.operands) if i != position)
    spelt = {
        dialect: spellings.get(dialect) or _spelling(getattr(base, dialect), dialect, position, like)
        for dialect in _LITERALS
    }
    return OpSpec(
        name or f"{base.name}_scalar", base.family, slots or remaining, result or typed, reference,
        attrs={**base.attrs, "scalar": drawn}, signed_zero=base.signed_zero, thresholds=base.thresholds,
        torch=spelt["torch"], tensorflow=spelt["tensorflow"], jax=spelt["jax"], relax=spelt["relax"],
        onnx=spelt["onnx"],
    )  # fmt: skip


_BASES = {
    spec.name: spec
    for specs in (
        *(ARITHMETIC, BITWISE, COMPARISONS, DIVISIONS, EXPONENTIALS),
        *(FLOATING, INCOMPLETE, NORMAL, POWERS, SELECTIONS),
    )
    for spec in specs
}


def _second(name: str, floats: Sequence[float] = (), integers: Sequence[int] = (), **options: Any) -> OpSpec:
    """The number is the last operand."""
    return with_scalar(_BASES[name], len(_BASES[name].operands) - 1, floats, integers, **options)


def _first(name: str, floats: Sequence[float] = (), integers: Sequence[int] = (), **options: Any) -> OpSpec:
    """The number is the first of two operands. The other one is of the types that the first one may have."""
    slots = options.pop("slots", _BASES[name].operands[:1])
    return with_scalar(_BASES[name], 0, floats, integers, name=f"scalar_{name}", slots=slots, **options)


def _confined(name: str, low: int, high: int) -> tuple[Slot, ...]:
    """The slot of the first operand, of leaves within an interval."""
    return (replace(_BASES[name].operands[0], domain=lambda _: (low, high)),)


NEAR = 1.000004
"""What compilers with a relative tolerance of 1e-5 take for 1, and less 1 for 0; float32 holds both."""
_SPECIAL = (inf, -inf, nan)
"""What stands for a number that was never met: starts of extremes, masks, limits, what is missing."""
_FLOATS, _INTEGERS = (1.0, 2, 0.5, -1, 0.1, 0.0, 3, -2.5, NEAR, 4e-9), (1, 2, -1, 0, 7, -100, 2**31 - 1)
_EXTENDED, _MASKING = (*_FLOATS, *_SPECIAL), (1.0, -inf, nan, inf, *_FLOATS[1:])
_COMPUTED = (*_EXTENDED, 0)
"""Of sums and products: a 0 without a point, too, which compilers may take to stand beside whole numbers alone."""
_BITS = (1, 0, -1, 7, 128, 2**31 - 1)
_CHOSEN = (boolean(), broadcastable(dtypes=NUMBERS))
_DIVISORS = (2, 1, 7, -3, 100)

OPERATORS: tuple[OpSpec, ...] = (
    *(_second(name, _COMPUTED, _INTEGERS) for name in ("add", "sub", "mul")),
    _second("div", tuple(value for value in _EXTENDED if value)),
    _second("pow", (2, 0.5, 3, -1, 2.0, -0.5, 1, 0, 2 * NEAR, 1.5, *_SPECIAL)),
    _first("sub", _COMPUTED, _INTEGERS, torch="torch.rsub({0}, {scalar})"),
    _first("div", _EXTENDED, torch="{scalar} / {0}"),
    _first("pow", (2, 0.5, 10.0, 1, 0, -1.0, 3)),
    *(_second(name, tuple(v for v in _FLOATS if v), _DIVISORS) for name in ("floor_divide", "remainder", "fmod")),
    _second("trunc_divide", (), _DIVISORS, jax="jax.lax.div({0}, jnp.full_like({0}, {scalar}))"),
    _first("remainder", _FLOATS, _INTEGERS, slots=_confined("remainder", 1, 40)),
    *(
        side(f"bitwise_{name}", (), _BITS, slots=(tensor(INTEGERS),))
        for name in ("and", "or", "xor")
        for side in (_second, _first)
    ),
    *(_second(f"{side}_shift", (), (1, 0, 3, 7)) for side in ("left", "right")),
    *(_first(name, (), (1, -1, 100, 0), slots=_confined(name, 0, 7)) for name in ("left_shift", "right_shift")),
    *(
        _second(name, _EXTENDED, _INTEGERS)
        for name in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
    ),
    _second("copysign", (1.0, -1.0, 0.0, -2, -0.0)),
    _second("xlogy", (2.0, 0.5, 1, 0.0, 3, -1.0)),
    _first("xlogy", (2.0, 0.0, 1, -1.0, 0.5)),
    _second("xlog1py", (2.0, -0.5, 1, 0.0, 3, -1.0)),
    _first("xlog1py", (2.0, 0.0, 1, -1.0, 0.5)),
    _second("zeta", (1.0, 2, 0.5, 10.0)),
    _first("zeta", (2.0, 3, 1.5, 1.25), slots=(replace(_BASES["zeta"].operands[0], span=(0, 20)),)),
    *(
        with_scalar(spec, 1, tuple(range(MOST + 1)), slots=(floating(),))
        for spec in (chebyshev, orthogonal)
    ),
    _second("lerp", (0.5, 0.25, 0.75, 0.0, 1.0, 1.5, -1)),
    with_scalar(_BASES["where"], 2, _MASKING, _INTEGERS, name="where_scalar", like=1, slots=_CHOSEN),
    with_scalar(_BASES["where"], 1, _MASKING, _INTEGERS, name="scalar_where", like=1, slots=_CHOSEN),
)  # fmt: skip
