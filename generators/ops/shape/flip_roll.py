"""Elements turned round along axes: flip, roll, rot90."""

from __future__ import annotations

import numpy as np

from generators.graph import TensorType
from generators.ops.shape.layout import ARRAY, layout, moved
from generators.ops.slots import axes_of, axis_in, axis_of, int_of, ints_of, normalized, tensor
from generators.ops.spec import Attrs, Call, Draw, OpSpec, Shape, Spelling, TypeRuleError, Types

# ---- several axes, and turns --------------------------------------------------------------------------


def _turned_type(operands: Types, attrs: Attrs) -> TensorType:
    *rest, rows, columns = operands[0].shape
    turned = (columns, rows) if int_of(attrs, "k") % 2 else (rows, columns)
    return TensorType(operands[0].dtype, (*rest, *turned))


def _quarter_turns(flip: str, transpose: str) -> Spelling:
    """Counter-clockwise by k quarters: transposed and flipped, or flipped both ways. %x: operand, %a: axes."""

    def spell(call: Call) -> str:
        rank, k = call.result.rank, int_of(call.attrs, "k") % 4
        rows, columns = rank - 2, rank - 1
        if k == 0:
            return "{0}"
        if k == 2:
            return flip.replace("%x", "{0}").replace("%a", f"({rows}, {columns})")
        perm = (*range(rows), columns, rows)
        swapped = transpose.replace("%x", "{0}").replace("%a", str(perm))
        return flip.replace("%x", swapped).replace("%a", f"({rows if k == 1 else columns},)")

    return spell


rot90 = layout(
    "rot90", tensor(min_rank=2), _turned_type, moved(lambda x, call: np.rot90(x, int_of(call.attrs, "k"), (-2, -1))),
    attrs={"k": lambda d, operands, attrs: d.choice((1, 2, 3, -1, 5))},
    torch="torch.rot90({0}, {k}, (-2, -1))", tensorflow=_quarter_turns("tf.reverse(%x, %a)", "tf.transpose(%x, %a)"),
    jax="jnp.rot90({0}, {k}, (-2, -1))", relax=_quarter_turns("flip(%x, %a)", "relax.op.permute_dims(%x, %a)"),
    onnx=_quarter_turns("flip(g, %x, %a)", 'g.op("Transpose", %x, perm=%a)'),
)  # fmt: skip


def _shifts(d: Draw, operands: Types, attrs: Attrs) -> Shape:
    return tuple(d.choice((1, -1, 2, 0, 40, -7)) for _ in ints_of(attrs, "axes"))


def _roll_axes_type(operands: Types, attrs: Attrs) -> TensorType:
    axes = normalized(ints_of(attrs, "axes"), operands[0].rank)
    ints_of(attrs, "shifts", len(axes))
    if not axes:
        raise TypeRuleError("no axes to roll")
    return operands[0]


def _rolled(roll: str, close: str) -> Spelling:
    """`roll` of operand, place and axis, once for each axis: the elements from that place on come first."""

    def spell(call: Call) -> str:
        text, shape = "{0}", call.result.shape
        axes, shifts = ints_of(call.attrs, "axes"), ints_of(call.attrs, "shifts")
        for axis, shift in zip(normalized(axes, len(shape)), shifts, strict=True):
            text = f"{roll}{text}, {-shift % shape[axis] if shape[axis] else 0}, {axis}{close}"
        return text

    return spell


roll_axes = layout(
    "roll_axes", ARRAY, _roll_axes_type,
    moved(lambda x, call: np.roll(x, ints_of(call.attrs, "shifts"), ints_of(call.attrs, "axes"))),
    attrs={"axes": axes_of(0), "shifts": _shifts},
    torch="torch.roll({0}, {shifts}, {axes})", tensorflow="tf.roll({0}, {shifts}, {axes})",
    jax="jnp.roll({0}, {shifts}, {axes})",
    relax=_rolled("bb.emit(roll(", "))"), onnx=_rolled("roll(g, ", ")"),
)  # fmt: skip

# ---- one axis -----------------------------------------------------------------------------------------


def _flip_type(operands: Types, attrs: Attrs) -> TensorType:
    normalized(ints_of(attrs, "axes"), operands[0].rank)
    return operands[0]


def _flipped(d: Draw, operands: Types, attrs: Attrs) -> Shape:
    """Seldom none of them."""
    axes = ints_of({"axes": axes_of(0)(d, operands, attrs)}, "axes")
    return () if d.integer(0, 15) == 15 else axes


def _roll_type(operands: Types, attrs: Attrs) -> TensorType:
    axis_in(attrs, operands[0].rank)
    int_of(attrs, "shift")
    return operands[0]


def _shift(d: Draw, operands: Types, attrs: Attrs) -> int:
    dim = operands[0].shape[axis_in(attrs, operands[0].rank)]
    return d.choice((1, -1, 2, 0, dim, dim + 1, -dim - 2))


def _turn(call: Call) -> str:
    """The helper functions of relax and onnx take the place where the last elements begin that come first."""
    axis = axis_in(call.attrs, call.result.rank)
    dim = call.result.shape[axis]
    return f"{{0}}, {dim - int_of(call.attrs, 'shift') % dim if dim else 0}, {axis}"


def _reversed(call: Call) -> str:
    """The first version takes a flag for each axis; so written where several are counted from the front."""
    axes = ints_of(call.attrs, "axes")
    if len(axes) > 1 and min(axes) >= 0:
        return f"tf.raw_ops.Reverse(tensor={{0}}, dims={[axis in axes for axis in range(call.result.rank)]})"
    return "tf.reverse({0}, {axes})" if axes else "tf.reverse({0}, tf.constant([], tf.int32))"


flip = layout(
    "flip", ARRAY, _flip_type, moved(lambda x, call: np.flip(x, ints_of(call.attrs, "axes"))),
    attrs={"axes": _flipped},
    torch="torch.flip({0}, {axes})", tensorflow=_reversed, jax="jnp.flip({0}, axis={axes})",
    relax="flip({0}, {axes})", onnx="flip(g, {0}, {axes})",
)  # fmt: skip

roll = layout(
    "roll", ARRAY, _roll_type,
    moved(lambda x, call: np.roll(x, int_of(call.attrs, "shift"), int_of(call.attrs, "axis"))),
    attrs={"axis": axis_of(0), "shift": _shift},
    torch="torch.roll({0}, {shift}, {axis})", tensorflow="tf.roll({0}, {shift}, {axis})",
    jax="jnp.roll({0}, {shift}, axis={axis})",
    relax=lambda call: f"roll({_turn(call)})", onnx=lambda call: f"roll(g, {_turn(call)})",
)  # fmt: skip

OPERATORS: tuple[OpSpec, ...] = (flip, roll, roll_axes, rot90)
