"""Other products: outer, kron, dot, vecdot, a matrix by a vector, cross, tensordot."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod

import numpy as np

from generators.bounds.bounded import Bounded, multiply
from generators.bounds.products import bilinear, bilinear_integer
from generators.graph import FLOATS, TensorType
from generators.ops.slots import (
    MAX_ELEMENTS,
    NUMBERS,
    computed,
    draw_dim,
    draw_dtype,
    draw_shape,
    floating,
    int_of,
    like,
    numeric,
    same_dtype,
)
from generators.ops.spec import Attrs, Call, Draw, OpSpec, Reference, Slot, TypeRuleError, Types

Array = np.ndarray


def contracted(equation: str, axis: int) -> Reference:
    """np.einsum of two operands that sums over this one axis of operand 0: as many products, in any order."""
    contract = partial(np.einsum, equation)

    def reference(args: Sequence[Bounded], call: Call) -> Bounded:
        a, b = args
        return bilinear(contract, a, b, a.value.shape[axis]) if a.floating else bilinear_integer(contract, a, b)

    return reference


# ---- every element by every element -------------------------------------------------------------------


def _small(rank: int) -> Slot:
    """A tensor of that rank which leaves room: the result has as many elements as the operands' product."""

    def accepts(type_: TensorType, earlier: Types) -> bool:
        if type_.rank != rank or type_.dtype not in NUMBERS:
            return False
        return not earlier or (type_.dtype == earlier[0].dtype and type_.size * earlier[0].size <= MAX_ELEMENTS)

    def fresh(d: Draw, earlier: Types) -> TensorType:
        room = MAX_ELEMENTS // max(1, earlier[0].size) if earlier else 64
        shape: list[int] = []
        for _ in range(rank):
            shape.append(draw_dim(d, room))
            room //= max(1, shape[-1])
        dtype = earlier[0].dtype if earlier else draw_dtype(d, NUMBERS)
        return TensorType(dtype, tuple(shape))

    return Slot(accepts, fresh)


def _spread(a: Bounded, b: Bounded) -> Bounded:
    """a * b, which broadcast: one rounding; integers wrap."""
    if a.floating:
        return multiply(a, b)
    with np.errstate(all="ignore"):
        value = a.value * b.value
    unknown = np.broadcast_to(a.undetermined | b.undetermined, value.shape)
    return Bounded(value, np.where(unknown, np.inf, 0.0), a.dtype)


def _outer_type(operands: Types, attrs: Attrs) -> TensorType:
    a, b = operands
    if a.rank != 1 or b.rank != 1:
        raise TypeRuleError(f"{a} and {b} are not vectors")
    return TensorType(same_dtype(operands), (*a.shape, *b.shape))


def _outer(args: Sequence[Bounded], call: Call) -> Bounded:
    return _spread(args[0].map(lambda a: a[:, np.newaxis]), args[1])


outer = OpSpec(
    "outer", "linalg", (_small(1), _small(1)), _outer_type, _outer,
    torch="torch.outer({0}, {1})", tensorflow="tf.tensordot({0}, {1}, axes=0)", jax="jnp.outer({0}, {1})",
    relax="relax.op.outer({0}, {1})",
    onnx='g.op("Mul", g.op("Unsqueeze", {0}, g.const([1], "int64")), {1})',
)  # fmt: skip


def _kron_type(operands: Types, attrs: Attrs) -> TensorType:
    a, b = operands
    if a.rank != 2 or b.rank != 2:
        raise TypeRuleError(f"{a} and {b} are not matrices")
    return TensorType(same_dtype(operands), (a.shape[0] * b.shape[0], a.shape[1] * b.shape[1]))


def _kron(args: Sequence[Bounded], call: Call) -> Bounded:
    a, b = args
    blocks = _spread(a.map(lambda x: x[:, np.newaxis, :, np.newaxis]), b.map(lambda x: x[:, np.newaxis]))
    return blocks.map(lambda x: x.reshape(call.result.shape))


kron = OpSpec(
    "kron", "linalg", (_small(2), _small(2)), _kron_type, _kron,
    torch="torch.kron({0}, {1})", tensorflow="kron({0}, {1})", jax="jnp.kron({0}, {1})",
    relax="kron(bb, {0}, {1}, {shape})", onnx="kron(g, {0}, {1}, {shape})",
)  # fmt: skip

# ---- vectors ------------------------------------------------------------------------------------------


def _dot_type(operands: Types, attrs: Attrs) -> TensorType:
    a, b = operands
    if a.rank != 1 or a.shape != b.shape:
        raise TypeRuleError(f"no dot product of {a} and {b}")
    return TensorType(same_dtype(operands), ())


dot = OpSpec(
    "dot", "linalg", (numeric(1, 1), like(0)), _dot_type, contracted("i,i->", 0),
    torch="torch.dot({0}, {1})", tensorflow="tf.tensordot({0}, {1}, axes=1)", jax="jnp.dot({0}, {1})",
    relax="relax.op.matmul({0}, {1})", onnx='g.op("MatMul", {0}, {1})',
)  # fmt: skip


def _vecdot_type(operands: Types, attrs: Attrs) -> TensorType:
    a, b = operands
    if a.rank < 1 or a != b:
        raise TypeRuleError(f"no dot products of {a} and {b}")
    return TensorType(a.dtype, a.shape[:-1])


vecdot = OpSpec(
    "vecdot", "linalg", (floating(1), like(0)), _vecdot_type, contracted("...i,...i->...", -1),
    torch="torch.linalg.vecdot({0}, {1})", tensorflow="tf.reduce_sum({0} * {1}, axis=-1)",
    jax="jnp.vecdot({0}, {1})", relax="relax.op.sum(relax.op.multiply({0}, {1}), axis=-1)",
    onnx='g.op("ReduceSum", g.op("Mul", {0}, {1}), g.const([{rank0} - 1], "int64"), keepdims=0)',
)  # fmt: skip


def _times_vector_type(operands: Types, attrs: Attrs) -> TensorType:
    x, v = operands
    if x.rank < 2 or v.shape != x.shape[-1:]:
        raise TypeRuleError(f"cannot multiply {x} by {v}")
    return TensorType(same_dtype(operands), x.shape[:-1])


matrix_vector = OpSpec(
    "matrix_vector", "linalg", (floating(2), computed(lambda e: TensorType(e[0].dtype, e[0].shape[-1:]))),
    _times_vector_type, contracted("...ij,j->...i", -1),
    torch="torch.matmul({0}, {1})", tensorflow="tf.linalg.matvec({0}, {1})", jax="jnp.matmul({0}, {1})",
    relax="relax.op.matmul({0}, {1})", onnx='g.op("MatMul", {0}, {1})',
)  # fmt: skip


def _by_vector(type_: TensorType, earlier: Types) -> bool:
    v = earlier[0]
    return type_.dtype == v.dtype and 2 <= type_.rank <= 4 and type_.shape[-2] == v.shape[0]


def _fresh_by_vector(d: Draw, earlier: Types) -> TensorType:
    v = earlier[0]
    room = max(1, MAX_ELEMENTS // max(1, v.size))
    batch = [draw_dim(d, min(4, room)) for _ in range(d.integer(0, 1))]
    return TensorType(v.dtype, (*batch, v.shape[0], draw_dim(d, room // max(1, *batch, 1))))


def _vector_times_type(operands: Types, attrs: Attrs) -> TensorType:
    v, x = operands
    if v.rank != 1 or x.rank < 2 or x.shape[-2] != v.shape[0]:
        raise TypeRuleError(f"cannot multiply {v} by {x}")
    return TensorType(same_dtype(operands), (*x.shape[:-2], x.shape[-1]))


vector_matrix = OpSpec(
    "vector_matrix", "linalg", (floating(1, 1), Slot(_by_vector, _fresh_by_vector)),
    _vector_times_type, contracted("i,...ij->...j", 0),
    torch="torch.matmul({0}, {1})", tensorflow="tf.linalg.matvec({1}, {0}, transpose_a=True)",
    jax="jnp.matmul({0}, {1})", relax="relax.op.matmul({0}, {1})", onnx='g.op("MatMul", {0}, {1})',
)  # fmt: skip


def _fresh_triples(d: Draw, earlier: Types) -> TensorType:
    return TensorType(draw_dtype(d, FLOATS), (*draw_shape(d, 0, 3)[:2], 3))


def _cross_type(operands: Types, attrs: Attrs) -> TensorType:
    a, b = operands
    if a != b or a.shape[-1:] != (3,):
        raise TypeRuleError(f"no cross product of {a} and {b}")
    return a


def _cross(args: Sequence[Bounded], call: Call) -> Bounded:
    """Each element is a sum of two products, a[i + 1] b[i + 2] + a[i + 2] (-b[i + 1])."""

    def pairs(x: Array, first: int, second: int, sign: float) -> Array:
        return np.stack([np.roll(x, -first, -1), sign * np.roll(x, -second, -1)], axis=-1)

    a, b = args
    left = a.map(lambda x: pairs(x, 1, 2, 1.0))
    right = Bounded(pairs(b.value, 2, 1, -1.0), pairs(b.error, 2, 1, 1.0), b.dtype)
    return bilinear(partial(np.einsum, "...k,...k->..."), left, right, 2)


cross = OpSpec(
    "cross", "linalg",
    (Slot(lambda type_, earlier: type_.dtype in FLOATS and type_.shape[-1:] == (3,), _fresh_triples), like(0)),
    _cross_type, _cross,
    torch="torch.linalg.cross({0}, {1})", tensorflow="tf.linalg.cross({0}, {1})", jax="jnp.cross({0}, {1})",
    relax="cross({0}, {1})", onnx="cross(g, {0}, {1})",
)  # fmt: skip

# ---- tensordot ----------------------------------------------------------------------------------------


def _accepts_factor(type_: TensorType, earlier: Types) -> bool:
    if type_.dtype not in FLOATS or not 2 <= type_.rank <= 3 or type_.size == 0:
        return False
    if not earlier:
        return type_.size <= 256
    return type_.dtype == earlier[0].dtype and type_.shape[:2] == earlier[0].shape[-2:] and type_.size <= 256


def _fresh_factor(d: Draw, earlier: Types) -> TensorType:
    """Its first two axes are the last two of the other one, so that one (where they are alike) or both contract."""
    if not earlier:
        side = draw_dim(d, 6, zero=False)
        rest = [draw_dim(d, 4, zero=False) for _ in range(d.integer(0, 1))]
        return TensorType(draw_dtype(d, FLOATS), (*rest, side, draw_dim(d, 6, zero=False, like=side)))
    shape = earlier[0].shape[-2:]
    rest = [min(draw_dim(d, 4, zero=False), 256 // prod(shape)) for _ in range(d.integer(0, 1))]
    return TensorType(earlier[0].dtype, (*shape, *rest))


def _tensordot_type(operands: Types, attrs: Attrs) -> TensorType:
    x, y, axes = *operands, int_of(attrs, "axes")
    if axes not in (1, 2) or not _accepts_factor(y, operands[:1]) or x.shape[x.rank - axes :] != y.shape[:axes]:
        raise TypeRuleError(f"{x} and {y} do not contract over {axes} axes")
    shape = (*x.shape[: x.rank - axes], *y.shape[axes:])
    if prod(shape) > MAX_ELEMENTS:
        raise TypeRuleError(f"a product of shape {shape} is too large")
    return TensorType(x.dtype, shape)


def _tensordot(args: Sequence[Bounded], call: Call) -> Bounded:
    axes = int_of(call.attrs, "axes")
    terms = prod(call.operands[1].shape[:axes])
    return bilinear(partial(np.tensordot, axes=axes), args[0], args[1], terms)


def _contracted_axes(d: Draw, operands: Types, attrs: Attrs) -> int:
    rows, columns = operands[0].shape[-2:]
    return d.choice((2, 1)) if rows == columns else 2


tensordot = OpSpec(
    "tensordot", "linalg", (Slot(_accepts_factor, _fresh_factor), Slot(_accepts_factor, _fresh_factor)),
    _tensordot_type, _tensordot, attrs={"axes": _contracted_axes},
    torch="torch.tensordot({0}, {1}, dims={axes})", tensorflow="tf.tensordot({0}, {1}, {axes})",
    jax="jnp.tensordot({0}, {1}, axes={axes})",
    relax="tensordot({0}, {1}, {axes}, {shape0}, {shape1}, {shape})",
    onnx="tensordot(g, {0}, {1}, {axes}, {shape0}, {shape1}, {shape})",
)  # fmt: skip

OPERATORS: tuple[OpSpec, ...] = (outer, kron, dot, vecdot, matrix_vector, vector_matrix, cross, tensordot)
