"""Operators of two tensors of different dtypes, or of several that are put together, and of a tensor and a number of a
higher category (`x * 0.5` of whole numbers). PyTorch promotes them, and JAX where both have dimensions; elsewhere the
casts are written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from generators.bounds.bounded import PRECISION, Bounded, multiply
from generators.graph import COMMON, FLOATS, INTEGERS, Attr, TensorType
from generators.ops.composed import compute, given, undetermined
from generators.ops.elementwise.arithmetic import OPERATORS as ARITHMETIC
from generators.ops.elementwise.bitwise import OPERATORS as BITWISE
from generators.ops.elementwise.comparison import OPERATORS as COMPARISONS
from generators.ops.elementwise.division import OPERATORS as DIVISIONS
from generators.ops.elementwise.powers import OPERATORS as POWERS
from generators.ops.elementwise.powers import pow_
from generators.ops.elementwise.records import NO_ONNX, NO_RELAX, NO_TENSORFLOW
from generators.ops.elementwise.scalars import OPERATORS as SCALARS
from generators.ops.elementwise.selection import OPERATORS as SELECTIONS
from generators.ops.elementwise.trigonometric import OPERATORS as WAVES
from generators.ops.reduce.casting import Target, cast_first
from generators.ops.reduce.promotion_rule import DEFAULT, PROMOTED, category, floating, of_all, of_pair
from generators.ops.shape.join_split import OPERATORS as JOINS
from generators.ops.slots import broadcast_shape, broadcastable, tensor
from generators.ops.spec import Attrs, Call, Draw, OpSpec, Slot, TypeRuleError, Types, unsupported

_BASES = {
    spec.name: spec
    for specs in (ARITHMETIC, BITWISE, COMPARISONS, DIVISIONS, JOINS, POWERS, SCALARS, SELECTIONS, WAVES)
    for spec in specs
}


def _other(position: int, dtypes: Sequence[str], alike: bool = False) -> Slot:
    """A tensor that broadcasts with the earlier operands, of another dtype than that at `position`; alike: also of
    the same whole one. A new leaf has a rare dtype only beside a common one, and often no dimensions, since it counts
    less then."""
    base = broadcastable(position, dtypes)

    def accepts(type_: TensorType, earlier: Types) -> bool:
        same = type_.dtype == earlier[position].dtype
        return base.accepts(type_, earlier) and (not same or (alike and category(type_.dtype) < 2))

    def fresh(d: Draw, earlier: Types) -> TensorType:
        first = earlier[position].dtype
        common = [one for one in dtypes if one in COMMON and (one != first or (alike and category(one) < 2))]
        rare = [one for one in dtypes if one == d.dtype != first and first in COMMON and one not in COMMON]
        common.sort(key=lambda one: category(one) != category(first))  # stable: of the same category first
        dtype, shape = d.choice((*rare, *common)), base.fresh(d, earlier).shape
        return TensorType(dtype, () if earlier[position].rank and d.boolean() else shape)

    return Slot(accepts, fresh)


def _both(call: Call) -> bool:
    """JAX has no tensors that count less, and its quotients of whole numbers are of another dtype."""
    first, second = call.operands[-2:]
    return bool(first.rank) == bool(second.rank) and (call.result.dtype in ("bool", first.dtype, second.dtype))


def _pair(name: str, dtypes: Sequence[str] = PROMOTED, real: bool = False, where: bool = False) -> OpSpec:
    """Of two dtypes. real: a function of real numbers, of whole ones, too; where: behind a condition."""
    base, at = _BASES[name], int(where)

    def target(operands: Types, attrs: Attrs) -> str:
        to = of_pair(*operands[at:])
        return floating(to) if real else to

    slots = (*base.operands[:1], broadcastable(0, dtypes)) if where else (tensor(dtypes),)
    other = replace(_other(at, dtypes, alike=real), domain=base.operands[at + 1].domain)
    return cast_first(
        base, f"{name}_mixed", (*slots, other), target, kept=(0,) if where else (),
        promotes={"torch": lambda call: True, "jax": _both},
    )  # fmt: skip


def _beside(to: str) -> Target:
    """A number is of a higher category than the tensor."""

    def target(operands: Types, attrs: Attrs) -> str:
        if category(operands[0].dtype) >= category(to):
            raise TypeRuleError(f"{operands[0]} is promoted by no number of {to}")
        if not isinstance(attrs.get("scalar", 0.0 if to in FLOATS else 0), float if to in FLOATS else int):
            raise TypeRuleError(f"{attrs['scalar']!r} is no number of {to}")
        return to

    return target


def _number(name: str, dtypes: Sequence[str], to: str) -> OpSpec:
    """Of a tensor and a number of a higher category."""
    base, drawn = _BASES[name], _BASES[name].attrs["scalar"]
    kind, suffix = (float, "_floating") if to in FLOATS else (int, "_integer")

    def scalar(d: Draw, operands: Types, attrs: Attrs) -> Attr:
        return kind(drawn(d, operands, attrs))  # type: ignore[arg-type]

    return cast_first(
        replace(base, attrs={**base.attrs, "scalar": scalar}), f"{name}{suffix}", (tensor(dtypes),), _beside(to),
        promotes={"torch": lambda call: True},
    )  # fmt: skip


_WHOLE = tuple(dtype for dtype in PROMOTED if dtype in INTEGERS)
_BITS = (*_WHOLE, "bool")
_SIGNED = tuple(dtype for dtype in PROMOTED if dtype != "bool")
_COMPARED = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
_FLOATING = (
    *("add", "sub", "mul", "div", "pow", "floor_divide", "remainder", "fmod"),
    *_COMPARED,
)


def _taken(name: str) -> tuple[str, ...]:
    """By an operator that takes a floating number, too. PyTorch subtracts no booleans (`sub_check` in its
    BinaryOps.h)."""
    return _WHOLE if name == "sub" else (*_WHOLE, "bool")


# ---- tensors that are put together --------------------------------------------------------------------


def _piece(base: OpSpec) -> Slot:
    """What `base` puts beside the others. The second one is of another dtype than the first."""

    def alike(earlier: Types) -> Types:
        return tuple(replace(one, dtype=earlier[0].dtype) for one in earlier)

    def accepts(type_: TensorType, earlier: Types) -> bool:
        first = earlier[0].dtype
        other = type_.dtype in PROMOTED and (len(earlier) > 1 or type_.dtype != first)
        return other and base.slot(1).accepts(replace(type_, dtype=first), alike(earlier))

    def fresh(d: Draw, earlier: Types) -> TensorType:
        first = earlier[0].dtype
        options = [one for one in PROMOTED if one != first and one in COMMON]
        rare = [one for one in PROMOTED if one == d.dtype != first and first in COMMON and one not in COMMON]
        return TensorType(d.choice((*rare, *options)), base.slot(1).fresh(d, alike(earlier)).shape)

    return Slot(accepts, fresh)


def _together(name: str) -> OpSpec:
    """Of tensors of several dtypes, whose dimensions do not count."""
    base = _BASES[name]

    def target(operands: Types, attrs: Attrs) -> str:
        dtypes = {one.dtype for one in operands}
        if len(dtypes) < 2 or not dtypes <= set(PROMOTED):
            raise TypeRuleError(f"{', '.join(map(str, operands))} are of one dtype, or of dtypes that nothing holds")
        return of_all(operands)

    first = tensor(PROMOTED, min_rank=int(name == "concat"), max_rank=3)
    return cast_first(
        base, f"{name}_mixed", (first, _piece(base)), target,
        promotes={"torch": lambda call: True, "jax": lambda call: True},
    )  # fmt: skip


# ---- whole numbers between floating limits ------------------------------------------------------------


def _between(name: str) -> OpSpec:
    return cast_first(
        _BASES[name], f"{name}_floating", (tensor(_WHOLE),), _beside(DEFAULT),
        promotes={"torch": lambda call: True},
    )  # fmt: skip


# ---- exponents that are no whole numbers --------------------------------------------------------------

_EXPONENTS = broadcastable(0, FLOATS)


def _exponents(d: Draw, earlier: Types) -> TensorType:
    """Of another dtype, or of the same one."""
    first, *rest = (one for one in ("float32", "float16", "float64", "bfloat16") if one != earlier[0].dtype)
    return TensorType(d.choice((first, earlier[0].dtype, *rest)), _EXPONENTS.fresh(d, earlier).shape)


def _scaled_type(operands: Types, attrs: Attrs) -> TensorType:
    shape = broadcast_shape([type_.shape for type_ in operands])
    if shape is None or any(type_.dtype not in FLOATS for type_ in operands):
        raise TypeRuleError(f"{operands[1]} does not scale {operands[0]}")
    return TensorType(of_pair(*operands), shape)


def _scaled(args: Sequence[Bounded], call: Call) -> Bounded:
    """x times 2 to the power n, as torch.ldexp is documented: a power in the dtype of n, a product in that of both. A
    power that leaves the range of normal numbers there may be taken together with x: undetermined."""
    x, n = args
    to, p = call.result.dtype, PRECISION[n.dtype]
    power = compute(pow_, given(2.0, n.dtype), n)
    with np.errstate(all="ignore"):
        inside = (np.abs(power.value) + power.error < p.largest) & (np.abs(power.value) - power.error > p.tiny)
        result = multiply(replace(x, dtype=to), replace(power, dtype=to))
        return undetermined(result, np.broadcast_to(~(inside | np.isnan(power.value)), result.value.shape))


ldexp_mixed = OpSpec(
    "ldexp_mixed", "numerals", (tensor(FLOATS), Slot(_EXPONENTS.accepts, _exponents)), _scaled_type, _scaled,
    promotes=lambda operands, attrs: of_pair(*operands), base="ldexp",
    torch="torch.ldexp({0}, {1})", tensorflow=NO_TENSORFLOW,
    jax=unsupported("jnp.ldexp takes whole exponents only"), relax=NO_RELAX, onnx=NO_ONNX,
)  # fmt: skip

OPERATORS: tuple[OpSpec, ...] = (
    ldexp_mixed,
    *(_pair(name) for name in ("add", "mul", "maximum", "minimum", *_COMPARED)),
    *(_pair(name, _SIGNED) for name in ("sub", "fmod", "floor_divide", "remainder")),
    *(_pair(name, _SIGNED, real=True) for name in ("div", "atan2")),
    *(_pair(f"bitwise_{name}", _BITS) for name in ("and", "or", "xor")),
    _pair("where", where=True),
    *map(_together, ("concat", "stack")),
    *map(_between, ("clip", "clip_one_side")),
    *(_number(f"{name}_scalar", _taken(name), DEFAULT) for name in _FLOATING),
    *(_number(f"scalar_{name}", _taken(name), DEFAULT) for name in ("sub", "div", "pow")),
    *(_number(f"{name}_scalar", ("bool",), "int64") for name in ("add", "mul", *_COMPARED)),
)
