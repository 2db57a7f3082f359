"""Products of stacks of matrices with either side transposed (complex ones conjugated, too), as TensorFlow's three
versions have them, and products of narrow numbers in a wider dtype."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from generators.bounds import complex_values
from generators.bounds.bounded import Bounded, exact
from generators.bounds.products import bilinear, bilinear_integer
from generators.graph import COMPLEX, FLOATS, TensorType
from generators.ops.slots import broadcast_shape, draw_dtype, int_of
from generators.ops.spec import Attrs, Call, Draw, OpSpec, Shape, Slot, Spelling, TypeRuleError, Types, unsupported

Array = np.ndarray

DTYPES = (*FLOATS, "int32", "int64", *COMPLEX)
_MOST = 256
"""Elements of an operand."""
SIDES = {"none": (False, False), "left": (True, False), "right": (False, True), "both": (True, True)}

# ---- operands -----------------------------------------------------------------------------------------


def _turned(shape: Shape, yes: bool) -> Shape:
    *batch, rows, columns = shape
    return (*batch, columns, rows) if yes else shape


def _small(type_: TensorType, earlier: Types) -> bool:
    return type_.dtype in DTYPES and 2 <= type_.rank <= 4 and 0 < type_.size <= _MOST


def _fresh(d: Draw, earlier: Types) -> TensorType:
    batch = [d.choice((2, 1, 3)) for _ in range(d.choice((1, 0, 2)))]
    return TensorType(draw_dtype(d, DTYPES), (*batch, d.choice((2, 3, 1, 4)), d.choice((3, 2, 1, 5))))


def _product(a: Shape, b: Shape, form: str) -> Shape | None:
    """The shape of the product, or None."""
    left, right = SIDES[form]
    a, b = _turned(a, left), _turned(b, right)
    batch = broadcast_shape([a[:-2], b[:-2]])
    return None if batch is None or a[-1] != b[-2] else (*batch, a[-2], b[-1])


def _forms(a: Shape, b: Shape) -> list[str]:
    return [form for form in SIDES if _product(a, b, form)]


def _accepts_right(type_: TensorType, earlier: Types) -> bool:
    a = earlier[0]
    return _small(type_, ()) and type_.dtype == a.dtype and bool(_forms(a.shape, type_.shape))


def _fresh_right(d: Draw, earlier: Types) -> TensorType:
    *front, rows, columns = earlier[0].shape
    batch = front[d.choice((0, *range(len(front) + 1))) :] if front else []
    left, right = d.choice(tuple(SIDES.values()))
    inner = rows if left else columns
    outer = d.choice(tuple(n for n in (2, 3, 1, 4) if prod(batch) * inner * n <= _MOST))
    return TensorType(earlier[0].dtype, (*batch, *_turned((inner, outer), right)))


def _form(d: Draw, operands: Types, attrs: Attrs) -> str:
    return d.choice(_forms(operands[0].shape, operands[1].shape))


def _version(d: Draw, operands: Types, attrs: Attrs) -> int:
    """The first one has no batches that broadcast."""
    return d.choice((3, 2, 1) if operands[0].shape[:-2] == operands[1].shape[:-2] else (3, 2))


def _type(operands: Types, attrs: Attrs) -> TensorType:
    a, b = operands
    if attrs["form"] not in SIDES or not _small(a, ()) or not _small(b, ()) or a.dtype != b.dtype:
        raise TypeRuleError(f"no product of {a} and {b}")
    last = int_of(attrs, "last")
    if last not in (1, 2, 3) or (last == 1 and a.shape[:-2] != b.shape[:-2]):
        raise TypeRuleError(f"no version {last} for {a} and {b}")
    shape = _product(a.shape, b.shape, str(attrs["form"]))
    if shape is None:
        raise TypeRuleError(f"cannot multiply {a} by {b}")
    return TensorType(a.dtype, shape)


def _reference(args: Sequence[Bounded], call: Call) -> Bounded:
    sides = SIDES[str(call.attrs["form"])]

    def turned(x: Bounded, yes: bool) -> Bounded:
        if not yes:
            return x
        y = x.map(lambda a: np.swapaxes(a, -1, -2))
        return Bounded(np.conj(y.value), y.error, y.dtype) if x.complex else y

    a, b = (turned(x, yes) for x, yes in zip(args, sides, strict=True))
    terms = a.value.shape[-1]
    if a.complex:
        return complex_values.contracted(np.matmul, a, b, terms)
    return bilinear(np.matmul, a, b, terms) if a.floating else bilinear_integer(np.matmul, a, b)


def _text(call: Call) -> str:
    left, right = SIDES[str(call.attrs["form"])]
    last = int_of(call.attrs, "last")
    kind = "BatchMatMul" + ("" if last == 1 else f"V{last}")
    out = ", Tout={dtype}" if last == 3 else ""
    return f"tf.raw_ops.{kind}(x={{0}}, y={{1}}, adj_x={left}, adj_y={right}{out})"


def _plain(product: str, turn: str, conjugate: str) -> Spelling:
    """With both operands turned by hand."""

    def spell(call: Call) -> str:
        texts = []
        for place, yes in enumerate(SIDES[str(call.attrs["form"])]):
            text = f"{{{place}}}"
            if yes:
                text = turn.replace("%x", text)
                text = conjugate.replace("%x", text) if call.result.dtype in COMPLEX else text
            texts.append(text)
        return product.replace("%a", texts[0]).replace("%b", texts[1])

    return spell


def _torch(call: Call) -> str:
    """One batch of matrices on each side has a function of its own."""
    a, b = call.operands
    name = "torch.bmm" if a.rank == b.rank == 3 and a.shape[0] == b.shape[0] else "torch.matmul"
    spell = _plain(f"{name}(%a, %b)", "torch.swapaxes(%x, -1, -2)", "torch.conj(%x)")
    assert callable(spell)
    return str(spell(call))


def _onnx(call: Call) -> str:
    texts = []
    for place, yes in enumerate(SIDES[str(call.attrs["form"])]):
        rank = call.operands[place].rank
        order = (*range(rank - 2), rank - 1, rank - 2)
        texts.append(f'g.op("Transpose", {{{place}}}, perm={order})' if yes else f"{{{place}}}")
    return f'g.op("MatMul", {texts[0]}, {texts[1]})'


batch_matmul = OpSpec(
    "batch_matmul", "linalg", (Slot(_small, _fresh), Slot(_accepts_right, _fresh_right)), _type, _reference,
    attrs={"form": _form, "last": _version},
    torch=_torch, tensorflow=_text,
    jax=_plain("jnp.matmul(%a, %b)", "jnp.swapaxes(%x, -1, -2)", "jnp.conj(%x)"),
    relax=_plain("relax.op.matmul(%a, %b)", "relax.op.permute_dims(%x, [*range(len(%x.ty.shape) - 2), -1, -2])", "%x"),
    onnx=_onnx,
)  # fmt: skip

# ---- narrow numbers, wide sums ------------------------------------------------------------------------

_NARROW = {"int8": ("int8", "uint8"), "uint8": ("int8", "uint8"), "bfloat16": ("bfloat16",)}
_WIDE = {"int8": "int32", "uint8": "int32", "bfloat16": "float32"}


def _accepts_narrow(type_: TensorType, earlier: Types) -> bool:
    return type_.dtype in _NARROW and 2 <= type_.rank <= 3 and 0 < type_.size <= 512


def _accepts_other(type_: TensorType, earlier: Types) -> bool:
    a = earlier[0]
    fits = type_.rank == a.rank and type_.shape[:-2] == a.shape[:-2] and type_.shape[-2] == a.shape[-1]
    return (
        fits and type_.dtype in _NARROW[a.dtype] and type_.size > 0 and prod((*a.shape[:-1], type_.shape[-1])) <= 2048
    )


def _fresh_narrow(d: Draw, earlier: Types) -> TensorType:
    batch = [d.choice((2, 1, 3))] if d.boolean() else []
    return TensorType(draw_dtype(d, tuple(_NARROW)), (*batch, d.choice((2, 3, 1, 9)), d.choice((3, 4, 1, 16))))


def _fresh_other(d: Draw, earlier: Types) -> TensorType:
    a = earlier[0]
    return TensorType(d.choice(_NARROW[a.dtype]), (*a.shape[:-2], a.shape[-1], d.choice((2, 3, 1, 8))))


def _wide_type(operands: Types, attrs: Attrs) -> TensorType:
    a, b = operands
    if not _accepts_narrow(a, ()) or not _accepts_other(b, operands[:1]):
        raise TypeRuleError(f"no product of {a} and {b}")
    return TensorType(_WIDE[a.dtype], (*a.shape[:-1], b.shape[-1]))


def _wide(args: Sequence[Bounded], call: Call) -> Bounded:
    """Of integers exact; of bfloat16, whose products float32 holds, sums of float32."""
    if not args[0].floating:
        value = np.matmul(*(x.value.astype(np.int64) for x in args))
        unknown = any(bool(x.undetermined.any()) for x in args)
        return exact(value, call.result.dtype, unknown)
    a, b = (Bounded(x.value, x.error, "float32") for x in args)
    return bilinear(np.matmul, a, b, a.value.shape[-1])


def _widened(text: str, why: str) -> Spelling:
    return lambda call: text if call.result.dtype == "int32" else unsupported(why)


matmul_widened = OpSpec(
    "matmul_widened", "linalg", (Slot(_accepts_narrow, _fresh_narrow), Slot(_accepts_other, _fresh_other)), _wide_type,
    _wide, torch="torch.matmul({0}.to({dtype}), {1}.to({dtype}))",
    tensorflow="tf.raw_ops.BatchMatMulV3(x={0}, y={1}, Tout={dtype})",
    jax="jnp.matmul({0}, {1}, preferred_element_type={dtype})",
    relax='relax.op.matmul(relax.op.astype({0}, {name}), relax.op.astype({1}, {name}))',
    onnx=_widened('g.op("MatMulInteger", {0}, {1})', "MatMulInteger multiplies integers"),
)  # fmt: skip

OPERATORS: tuple[OpSpec, ...] = (batch_matmul, matmul_widened)
