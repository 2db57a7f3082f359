"""Numbers in equal steps, as many as an operand has along an axis: what frameworks make of an index. Compilers count in
narrow integers where they think that the numbers fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from generators.bounds.bounded import PRECISION, Bounded, exact, rounded
from generators.graph import EVERY, FLOATS, Attr, TensorType
from generators.ops.composed import given
from generators.ops.shape.sizes import line
from generators.ops.slots import axis_in, axis_of, int_of, one_of, tensor
from generators.ops.spec import (
    AttrRule,
    Attrs,
    Call,
    Draw,
    OpSpec,
    Spelling,
    TypeRuleError,
    Types,
    Unsupported,
    unsupported,
)

DTYPES = ("int64", "float32", "int32", "float64")
FORMS = ("range", "scaled", "short", "half")
"""By the framework's own range, or one from 0 in steps of 1, with a product and a sum; by a range that ends less than
a step behind the last number: by 1, or a half, which PyTorch and JAX take of whole numbers, too."""
_NEAR = 2**31
"""Ends and steps up to here have a half, and what divides them loses none of it in float64."""
_STEPS = (1, 2**31 - 1, 3, -1, 10**9, -7, 2**40, -(2**33))
_STARTS = (0, 1, -5, 2**31 - 2, -(2**40))


def _numbers(operands: Types, attrs: Attrs) -> tuple[int, int, int]:
    """How many, the first, the step."""
    return operands[0].shape[axis_in(attrs, operands[0].rank)], int_of(attrs, "start"), int_of(attrs, "step")


def _counted_type(operands: Types, attrs: Attrs) -> TensorType:
    count, start, step = _numbers(operands, attrs)
    if attrs["form"] not in FORMS or attrs["to"] not in DTYPES or not step:
        raise TypeRuleError(f"no range {attrs['form']!r} of {attrs['to']!r} in steps of {step}")
    if max(abs(start), abs(start + count * step)) >= _most(str(attrs["to"])):
        raise TypeRuleError(f"from {start} in steps of {step} leaves {attrs['to']}")
    return TensorType(str(attrs["to"]), (count,))


def _most(dtype: str) -> int:
    """Beyond it lie numbers that the dtype does not hold, or between which a floating one leaves some out."""
    return 2 ** {"int64": 62, "int32": 31, "float32": 23, "float64": 51}[dtype]


def _held(options: Sequence[int]) -> Callable[[Draw, Types, Attrs], Attr]:
    """One of those by which the dtype is not left."""

    def rule(d: Draw, operands: Types, attrs: Attrs) -> Attr:
        count = operands[0].shape[axis_in(attrs, operands[0].rank)]
        start = int(attrs.get("start", 0) or 0)  # type: ignore[arg-type]
        far = [abs(start + count * one) if "start" in attrs else abs(one) + 8 * count for one in options]
        most = _most(str(attrs["to"]))
        return d.choice([one for one, end in zip(options, far, strict=True) if end < most])

    return rule


def _counted(args: Sequence[Bounded], call: Call) -> Bounded:
    """A product and a sum of numbers that the dtype holds; the bound allows a step that is added up."""
    count, start, step = _numbers(call.operands, call.attrs)
    value = start + step * np.arange(count, dtype=np.int64)
    dtype = call.result.dtype
    if dtype not in FLOATS:
        return exact(value.astype(dtype), dtype)
    size = (abs(start) + np.abs(value)) * np.arange(count) * PRECISION[dtype].unit
    whole = value.astype(np.float64)
    return rounded(whole, np.where(np.abs(whole) < 1 / PRECISION[dtype].unit, 0.0, size), dtype, 0)


def _written(ranged: str, scaled: str, halves: bool = False) -> Callable[[Call], str]:
    """The text, with the numbers in place. halves: does a range of whole numbers take a half as its end?"""

    def spell(call: Call) -> str:
        count, start, step = _numbers(call.operands, call.attrs)
        form, text = call.attrs["form"], scaled if call.attrs["form"] == "scaled" else ranged
        stop: float = start + count * step
        if form in ("short", "half") and count:
            one = 1 if step > 0 else -1
            whole = call.result.dtype not in FLOATS and max(abs(stop), abs(step)) < _NEAR
            half = form == "half" and halves and whole
            stop -= step - (one / 2 if half else one)
        return text.replace("COUNT", str(count)).replace("STOP", str(stop))

    return spell


_ONNX = 'g.op("Range", g.const({start}, {name}), g.const(STOP, {name}), g.const({step}, {name}))'
_RELAX = "relax.op.arange({start}, STOP, {step}, {dtype})"
counting = OpSpec(
    "counting", "grids", (tensor(EVERY, min_rank=1),), _counted_type, _counted,
    attrs={"axis": axis_of(), "to": one_of(*DTYPES), "start": _held(_STARTS), "step": _held(_STEPS),
           "form": one_of(*FORMS)},
    torch=_written("torch.arange({start}, STOP, {step}, dtype={dtype}, device={0}.device)",
                   "torch.arange(COUNT, dtype={dtype}, device={0}.device) * {step} + {start}", halves=True),
    tensorflow=_written("tf.range({start}, STOP, {step}, {dtype})",
                        "tf.range(COUNT, dtype={dtype}) * {step} + {start}"),
    jax=_written("jnp.arange({start}, STOP, {step}, dtype={dtype})",
                 "jax.lax.iota({dtype}, COUNT) * {step} + {start}", halves=True),
    relax=_written(_RELAX, _RELAX), onnx=_written(_ONNX, _ONNX), signed_zero=True,
)  # fmt: skip

# ---- between two numbers that the program states ------------------------------------------------------

_FIRST, _LAST = (0.0, -7.0, 2.0, 0.1, 1000.0), (1.0, 10.0, 2.0, -7.0, 0.7)
_KINDS = ("float32", "int64", "float64", "int32")


def _ends(options: tuple[float, ...]) -> AttrRule:
    """Whole ones of whole numbers."""

    def rule(d: Draw, operands: Types, attrs: Attrs) -> Attr:
        return d.choice([one for one in options if attrs["to"] in FLOATS or one == int(one)])

    return rule


def _stated_type(operands: Types, attrs: Attrs) -> TensorType:
    to, start, stop = attrs["to"], attrs["start"], attrs["stop"]
    if to not in _KINDS or start not in _FIRST or stop not in _LAST:
        raise TypeRuleError(f"no numbers of {to!r} between {start!r} and {stop!r}")
    if to not in FLOATS and any(int(one) != one for one in (start, stop)):  # type: ignore[arg-type]
        raise TypeRuleError(f"{start} and {stop} are not of {to}")
    return TensorType(str(to), (operands[0].shape[axis_in(attrs, operands[0].rank)],))


def _stated(args: Sequence[Bounded], call: Call) -> Bounded:
    """As `line`. Whole numbers are those of float64, or of float32, without what is behind the point, as PyTorch's
    kernel has them: undetermined where it is nothing, but the step is no whole number."""
    start, stop, dtype = call.number("start"), call.number("stop"), call.result.dtype
    if dtype in FLOATS:
        return line((given(start, dtype), given(stop, dtype)), call)
    n, first, rise = call.result.shape[0], int(start), int(stop) - int(start)
    counted = first * max(1, n - 1) + np.arange(n, dtype=np.int64) * rise
    value = np.sign(counted) * (np.abs(counted) // max(1, n - 1))
    last = np.arange(n) == n - 1
    open_ = (counted % max(1, n - 1) == 0) & (np.arange(n) > 0) & ~last & (rise % max(1, n - 1) != 0)
    return exact(value.astype(dtype), dtype, open_)


def _spaced(text: str, least: int = 0, floats: str = "") -> Spelling:
    """COUNT: how many. least: the fewest that it takes; floats: why it takes no whole numbers."""

    def spell(call: Call) -> str | Unsupported:
        count = call.result.shape[0]
        if count < least:
            return Unsupported("it has one number at least")
        return Unsupported(floats) if floats and call.result.dtype not in FLOATS else text.replace("COUNT", str(count))

    return spell


linspace = OpSpec(
    "linspace", "grids", (tensor(EVERY, min_rank=1),), _stated_type, _stated,
    attrs={"axis": axis_of(), "to": one_of(*_KINDS), "start": _ends(_FIRST), "stop": _ends(_LAST)},
    torch=_spaced("torch.linspace({start}, {stop}, COUNT, dtype={dtype}, device={0}.device)"),
    tensorflow=_spaced("tf.linspace(tf.constant({start}, {dtype}), tf.constant({stop}, {dtype}), COUNT)", 1,
                        "tf.linspace makes floating numbers"),
    jax=_spaced("jnp.linspace({start}, {stop}, COUNT, dtype={dtype})", 0, "jnp.linspace rounds whole numbers down"),
    relax=unsupported("it has no such operator"), onnx=unsupported("it has no such operator"),
)  # fmt: skip

OPERATORS: tuple[OpSpec, ...] = (counting, linspace)
