"""Bands of diagonals of matrices: laid out, taken, put into a matrix (TensorFlow's matrix_diag, matrix_diag_part,
matrix_set_diag), and the diagonal of a tensor of twice the rank.

Row i of a band is diagonal high - i; shorter ones are filled up on the left or on the right, as `form` says of those
above the main diagonal and of those below it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod

import numpy as np

from generators.bounds.bounded import Bounded
from generators.graph import EVERY, INTEGERS, Attr, TensorType
from generators.ops.composed import shared
from generators.ops.shape.layout import Array
from generators.ops.slots import draw_dim, draw_dtype, ints_of, one_of
from generators.ops.spec import AttrRule, Attrs, Call, Draw, OpSpec, Shape, Slot, TypeRuleError, Types

FORMS = ("RIGHT_LEFT", "LEFT_LEFT", "LEFT_RIGHT", "RIGHT_RIGHT")
BANDS: tuple[Shape, ...] = ((0, 0), (-1, 1), (1, 1), (-1, 0), (0, 2), (-2, -1), (-2, -2))

# ---- the places of a band -----------------------------------------------------------------------------


def _band(attrs: Attrs) -> tuple[int, int]:
    low, high = ints_of(attrs, "band", 2)
    if low > high or max(-low, high) > 9:
        raise TypeRuleError(f"no band from {low} to {high}")
    if attrs["form"] not in FORMS:
        raise TypeRuleError(f"no form {attrs['form']!r}")
    return low, high


def _width(rows: int, columns: int, low: int, high: int) -> int:
    """Of the longest diagonal; raises TypeRuleError where one has no element."""
    if not -rows < low <= high < columns:
        raise TypeRuleError(f"no band from {low} to {high} in {rows} x {columns}")
    return min(rows + min(high, 0), columns - max(low, 0))


def _places(rows: int, columns: int, attrs: Attrs) -> Array:
    """(diagonals, width) -> the place in a matrix laid out as a row, -1 where the diagonal is filled up."""
    low, high = _band(attrs)
    width = _width(rows, columns, low, high)
    above, below = (word == "LEFT" for word in str(attrs["form"]).split("_"))
    table = np.full((high - low + 1, width), -1)
    for i, k in enumerate(range(high, low - 1, -1)):
        length = min(rows + min(k, 0), columns - max(k, 0))
        first = 0 if (k >= 0 and above) or (k <= 0 and below) else width - length
        places = (np.arange(length) + max(-k, 0)) * columns + np.arange(length) + max(k, 0)
        table[i, first : first + length] = places
    return table


def _filling(d: Draw, operands: Types, attrs: Attrs) -> Attr:
    dtype = operands[0].dtype
    if dtype in INTEGERS:
        return d.choice((0, 1, 7))
    return False if dtype == "bool" else d.choice((0.0, 1.0, -0.5))


def _checked(value: Attr, dtype: str) -> Attr:
    kind = int if dtype in INTEGERS else bool if dtype == "bool" else float
    if type(value) is not kind or (kind is int and value < 0):  # type: ignore[operator]
        raise TypeRuleError(f"cannot fill {dtype} with {value!r}")
    return value


def _placed(rows: Sequence[Array], table: Array, value: Attr, shape: Shape) -> Array:
    """Elements of the rows beside each other by their places, the value where it is -1."""
    row = np.concatenate(rows, -1)
    filling = np.full((*row.shape[:-1], 1), value).astype(row.dtype)
    return np.concatenate([row, filling], -1)[..., table].reshape(shape)


def _record(
    name: str, operands: tuple[Slot, ...], result: Callable[[Types, Attrs], TensorType], table: Callable[[Call], Array],
    batch: Callable[[Call], int], tensorflow: Callable[[Call], str], attrs: Mapping[str, AttrRule] | None = None,
) -> OpSpec:  # fmt: skip
    """table: places among the elements of all operands side by side; batch: how many axes stand before them."""

    def reference(args: Sequence[Bounded], call: Call) -> Bounded:
        places, n = table(call), batch(call)

        def moved(arrays: Sequence[Array], value: Attr) -> Array:
            return _placed([a.reshape(*a.shape[:n], -1) for a in arrays], places, value, call.result.shape)

        value = moved([x.value for x in args], call.attrs.get("value", 0))
        return Bounded(value, moved([x.error for x in args], 0.0), args[0].dtype)

    composed = shared(
        "placed", table=lambda call: table(call).ravel().tolist(), batch=batch, result=lambda call: call.result.shape
    )
    return OpSpec(
        name, "layout", operands, result, reference, attrs=attrs or {}, signed_zero=True,
        **{**composed, "tensorflow": tensorflow},
    )  # fmt: skip


def _version(call: Call, name: str, operand: str, sizes: str = "") -> str:
    """The first version has the main diagonal only, the second one form."""
    low, high = _band(call.attrs)
    value = "tf.constant({value}, {dtype})"
    filled = f", padding_value={value}" if "value" in call.attrs else ""
    if call.attrs["form"] == "LEFT_LEFT":
        if low == high == 0 and not call.attrs.get("value") and not sizes.replace("-1", "").strip(", num_rowscl="):
            return f"tf.raw_ops.{name}({operand})"
        return f"tf.raw_ops.{name}V2({operand}, k=[{low}, {high}]{sizes}{filled})"
    return f"tf.raw_ops.{name}V3({operand}, k=[{low}, {high}]{sizes}{filled}, align={{form}})"


# ---- taken, and put into a matrix ---------------------------------------------------------------------


def _small_matrix(type_: TensorType, earlier: Types) -> bool:
    return type_.dtype in EVERY and 2 <= type_.rank <= 3 and 0 < type_.size <= 256 and max(type_.shape) <= 9


def _fresh_matrix(d: Draw, earlier: Types) -> TensorType:
    batch = (d.choice((2, 1, 3)),) if d.boolean() else ()
    return TensorType(draw_dtype(d, EVERY), (*batch, draw_dim(d, 5, zero=False), draw_dim(d, 5, zero=False)))


_MATRIX = Slot(_small_matrix, _fresh_matrix)


def _fits(rows: int, columns: int) -> tuple[Shape, ...]:
    return tuple(b for b in BANDS if -rows < b[0] and b[1] < columns)


def _inside(d: Draw, operands: Types, attrs: Attrs) -> Shape:
    rows, columns = operands[0].shape[-2:]
    if len(operands) == 1:
        return d.choice(_fits(rows, columns))
    options = [b for b in _fits(rows, columns) if _row(operands[0].shape, *b) == operands[1].shape]
    return d.choice(options)


def _row(shape: Shape, low: int, high: int) -> Shape:
    """The shape of a band."""
    *batch, rows, columns = shape
    return (*batch, *((high - low + 1,) if low < high else ()), _width(rows, columns, low, high))


def _matrices(operands: Types) -> TensorType:
    if not _small_matrix(operands[0], ()):
        raise TypeRuleError(f"{operands[0]} holds no matrix")
    return operands[0]


def _taken_type(operands: Types, attrs: Attrs) -> TensorType:
    x = _matrices(operands)
    _checked(attrs["value"], x.dtype)
    return TensorType(x.dtype, _row(x.shape, *_band(attrs)))


def _accepts_row(type_: TensorType, earlier: Types) -> bool:
    shape = earlier[0].shape
    shapes = [_row(shape, *b) for b in _fits(*shape[-2:])]
    return type_.dtype == earlier[0].dtype and type_.shape in shapes


def _fresh_row(d: Draw, earlier: Types) -> TensorType:
    shape = earlier[0].shape
    return TensorType(earlier[0].dtype, _row(shape, *d.choice(_fits(*shape[-2:]))))


def _set_type(operands: Types, attrs: Attrs) -> TensorType:
    x = _matrices(operands)
    if operands[1] != TensorType(x.dtype, _row(x.shape, *_band(attrs))):
        raise TypeRuleError(f"{operands[1]} is no such band of {x}")
    return x


def _taken_table(call: Call) -> Array:
    rows, columns = call.operands[0].shape[-2:]
    return _places(rows, columns, call.attrs)


def _set_table(call: Call) -> Array:
    rows, columns = call.result.shape[-2:]
    table = np.arange(rows * columns)
    places = _places(rows, columns, call.attrs).ravel()
    table[places[places >= 0]] = rows * columns + np.flatnonzero(places >= 0)
    return table


# ---- laid out -----------------------------------------------------------------------------------------


def _accepts_band(type_: TensorType, earlier: Types) -> bool:
    return type_.dtype in EVERY and 1 <= type_.rank <= 3 and 0 < type_.size <= 64 and max(type_.shape) <= 9


def _fresh_band(d: Draw, earlier: Types) -> TensorType:
    batch = [d.choice((3, 2, 1)) for _ in range(d.choice((1, 0, 2)))]
    return TensorType(draw_dtype(d, EVERY), (*batch, d.choice((3, 2, 1, 4))))


def _laid_band(d: Draw, operands: Types, attrs: Attrs) -> Shape:
    """Of one diagonal, or of as many as the operand has rows."""
    *front, width = shape = operands[0].shape
    options = [b for b in BANDS if b[0] == b[1]]
    if front and front[-1] > 1:
        options = [*(b for b in BANDS if b[1] - b[0] + 1 == front[-1]), *options]
    return d.choice([b for b in options if _holds((max(_least(shape, *b)),) * 2, b, width)])


def _least(shape: Shape, low: int, high: int) -> tuple[int, int]:
    return shape[-1] - min(high, 0), shape[-1] + max(low, 0)


def _holds(sizes: Shape, band: Shape, width: int) -> bool:
    """Are these diagonals in such a matrix, the longest of that width?"""
    (rows, columns), (low, high) = sizes, band
    return -rows < low and high < columns and _width(rows, columns, low, high) == width


def _sizes(d: Draw, operands: Types, attrs: Attrs) -> Shape:
    """Square, as small as it can be, or longer one way."""
    shape, band = operands[0].shape, ints_of(attrs, "band")
    rows, columns = _least(shape, *band)
    options: tuple[Shape, ...] = ((rows, columns), (rows + 2, columns), (rows, columns + 1))
    return d.choice(((), *(sizes for sizes in options if _holds(sizes, band, shape[-1]))))


def _laid_type(operands: Types, attrs: Attrs) -> TensorType:
    x, (low, high) = operands[0], _band(attrs)
    if not _accepts_band(x, ()):
        raise TypeRuleError(f"{x} is no band")
    _checked(attrs["value"], x.dtype)
    batch = x.shape[:-1]
    if low < high:
        if not batch or batch[-1] != high - low + 1:
            raise TypeRuleError(f"{x} has no diagonals {low} to {high}")
        batch = batch[:-1]
    rows, columns = _least(x.shape, low, high)
    sizes = ints_of(attrs, "sizes") or (max(rows, columns),) * 2
    if len(sizes) != 2 or max(sizes) > 20:
        raise TypeRuleError(f"no matrices of {sizes}")
    if (
        sizes != (max(rows, columns),) * 2
        and (sizes[0] != rows or sizes[1] < columns)
        and (sizes[1] != columns or sizes[0] < rows)
    ):
        raise TypeRuleError(f"{sizes} is neither the least for {x} nor square")
    if _width(*sizes, low, high) != x.shape[-1]:
        raise TypeRuleError(f"the longest diagonal of {sizes} has not {x.shape[-1]} elements")
    return TensorType(x.dtype, (*batch, *sizes))


def _laid_table(call: Call) -> Array:
    rows, columns = call.result.shape[-2:]
    table = np.full(rows * columns, -1)
    places = _places(rows, columns, call.attrs).ravel()
    table[places[places >= 0]] = np.flatnonzero(places >= 0)
    return table


def _laid_text(call: Call) -> str:
    rows, columns = ints_of(call.attrs, "sizes") or (-1, -1)
    return _version(call, "MatrixDiag", "diagonal={0}", f", num_rows={rows}, num_cols={columns}")


# ---- tensors of twice the rank ------------------------------------------------------------------------


def _accepts_half(type_: TensorType, earlier: Types) -> bool:
    return type_.dtype in EVERY and 1 <= type_.rank <= 2 and 0 < type_.size <= 32


def _fresh_half(d: Draw, earlier: Types) -> TensorType:
    return TensorType(draw_dtype(d, EVERY), (d.choice((3, 2, 1, 5)), *((d.choice((2, 3, 1)),) if d.boolean() else ())))


def _accepts_twice(type_: TensorType, earlier: Types) -> bool:
    n = type_.rank // 2
    return (
        type_.rank in (2, 4)
        and _accepts_half(TensorType(type_.dtype, type_.shape[:n]), ())
        and (type_.shape[:n] == type_.shape[n:])
    )


def _fresh_twice(d: Draw, earlier: Types) -> TensorType:
    half = _fresh_half(d, earlier)
    return TensorType(half.dtype, half.shape * 2)


def _doubled(operands: Types, attrs: Attrs) -> TensorType:
    if not _accepts_half(operands[0], ()):
        raise TypeRuleError(f"{operands[0]} is not laid out on a diagonal")
    return TensorType(operands[0].dtype, operands[0].shape * 2)


def _halved(operands: Types, attrs: Attrs) -> TensorType:
    if not _accepts_twice(operands[0], ()):
        raise TypeRuleError(f"{operands[0]} has no diagonal")
    return TensorType(operands[0].dtype, operands[0].shape[: operands[0].rank // 2])


def _eye_table(call: Call) -> Array:
    n = prod(call.operands[0].shape)
    table = np.full((n, n), -1)
    np.fill_diagonal(table, np.arange(n))
    return table


def _every_table(call: Call) -> Array:
    n = prod(call.result.shape)
    return np.arange(n) * (n + 1)


_BAND = {"band": _inside, "form": one_of(*FORMS)}
OPERATORS: tuple[OpSpec, ...] = (
    _record(
        "matrix_diag", (Slot(_accepts_band, _fresh_band),), _laid_type, _laid_table,
        lambda call: call.result.rank - 2, _laid_text,
        {"band": _laid_band, "form": one_of(*FORMS), "sizes": _sizes, "value": _filling},
    ),
    _record(
        "matrix_diag_part", (_MATRIX,), _taken_type, _taken_table,
        lambda call: call.operands[0].rank - 2, lambda call: _version(call, "MatrixDiagPart", "input={0}"),
        {**_BAND, "value": _filling},
    ),
    _record(
        "matrix_set_diag", (_MATRIX, Slot(_accepts_row, _fresh_row)), _set_type, _set_table,
        lambda call: call.result.rank - 2, lambda call: _version(call, "MatrixSetDiag", "input={0}, diagonal={1}"),
        _BAND,
    ),
    _record(
        "tensor_diag", (Slot(_accepts_half, _fresh_half),), _doubled, _eye_table, lambda call: 0,
        lambda call: "tf.raw_ops.Diag(diagonal={0})",
    ),
    _record(
        "tensor_diag_part", (Slot(_accepts_twice, _fresh_twice),), _halved, _every_table, lambda call: 0,
        lambda call: "tf.raw_ops.DiagPart(input={0})",
    ),
)  # fmt: skip
