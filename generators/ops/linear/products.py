"""Products of vectors and matrices beside `matmul`: outer, dot, cross, kron, addmm, baddbmm, trace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from generators.bounds.bounded import Bounded, multiply
from generators.bounds.products import bilinear, bilinear_integer
from generators.bounds.sums import summed
from generators.graph import FLOATS, Attr, TensorType
from generators.ops.slots import (
    MAX_ELEMENTS,
    NUMBERS,
    computed,
    draw_dim,
    draw_dtype,
    draw_shape,
    floating,
    like,
    numeric,
)
from generators.ops.spec import Call, Draw, OpSpec, Reference, Slot, Spelling, TypeRuleError, Types

Array = np.ndarray
Attrs = Mapping[str, Attr]


def same_dtype(operands: Types) -> str:
    """The dtype of all operands; raises TypeRuleError where they differ."""
    if len({t.dtype for t in operands}) > 1:
        raise TypeRuleError(f"dtypes differ: {', '.join(t.dtype for t in operands)}")
    return operands[0].dtype


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

# ---- matrices -----------------------------------------------------------------------------------------


def _right(rank: int) -> Slot:
    """The right operand of a product with operand 0, both of that rank."""

    def accepts(type_: TensorType, earlier: Types) -> bool:
        a = earlier[0]
        fits = type_.dtype == a.dtype and type_.rank == rank and type_.shape[:-2] == a.shape[:-2]
        return (
            fits and type_.shape[-2] == a.shape[-1] and a.size // max(1, a.shape[-1]) * type_.shape[-1] <= MAX_ELEMENTS
        )

    def fresh(d: Draw, earlier: Types) -> TensorType:
        *batch, rows, inner = earlier[0].shape
        most = MAX_ELEMENTS // max(1, int(np.prod(batch)) * max(rows, inner))
        return TensorType(earlier[0].dtype, (*batch, inner, draw_dim(d, most, like=inner)))

    return Slot(accepts, fresh)


def _product(operands: Types) -> TensorType:
    a, b = operands[:2]
    return TensorType(a.dtype, (*a.shape[:-1], b.shape[-1]))


def real(attrs: Attrs, key: str) -> float:
    """An attribute that is a float."""
    value = attrs[key]
    if not isinstance(value, float):
        raise TypeRuleError(f"{key} {value!r} is not a float")
    return value


def _added_type(operands: Types, attrs: Attrs) -> TensorType:
    a, b, c = operands
    same_dtype(operands)
    if a.rank < 2 or a.rank != b.rank or a.shape[:-2] != b.shape[:-2] or a.shape[-1] != b.shape[-2]:
        raise TypeRuleError(f"cannot multiply {a} by {b}")
    if c != _product(operands):
        raise TypeRuleError(f"cannot add {c} to the product of {a} and {b}")
    if not 1 <= abs(real(attrs, "alpha")) <= 2 or real(attrs, "beta") == 0:
        raise TypeRuleError(f"alpha {attrs['alpha']} is not between 1 and 2, or beta is 0")
    return c


def _added(args: Sequence[Bounded], call: Call) -> Bounded:
    """alpha a b + beta c, each factor at any time: K + 1 roundings of a product and two of c, hence K + 3 in all.
    alpha has a magnitude between 1 and 2, so that the scaled magnitudes cover an overflow before or after scaling
    (with an unscaled sum, too), and what underflows is at most doubled: 2 (K + 1) times `tiny`."""
    a, b, c = args
    alpha, beta = real(call.attrs, "alpha"), real(call.attrs, "beta")
    with np.errstate(all="ignore"):
        scaled = Bounded(alpha * a.value, abs(alpha) * a.error, a.dtype)
        offset = Bounded(beta * c.value, abs(beta) * c.error, c.dtype)
    return bilinear(np.matmul, scaled, b, 2 * a.value.shape[-1] + 3, bias=offset)


def _factor(*options: float):
    return lambda d, operands, attrs: d.choice(options)


def _addition(name: str, rank: int, onnx: Spelling) -> OpSpec:
    """beta c + alpha a b of matrices, or of stacks of them."""
    return OpSpec(
        name, "linalg", (floating(rank, rank), _right(rank), computed(_product)), _added_type, _added,
        attrs={"alpha": _factor(1.0, -1.0, 2.0, -1.5), "beta": _factor(1.0, 0.5, -2.0)},
        torch=f"torch.{name}({{2}}, {{0}}, {{1}}, beta={{beta}}, alpha={{alpha}})",
        tensorflow="{beta} * {2} + {alpha} * tf.matmul({0}, {1})",
        jax="{beta} * {2} + {alpha} * jnp.matmul({0}, {1})",
        relax="scaled_sum({2}, {beta}, relax.op.matmul({0}, {1}), {alpha}, {name})", onnx=onnx,
    )  # fmt: skip


addmm = _addition("addmm", 2, 'g.op("Gemm", {0}, {1}, {2}, alpha={alpha}, beta={beta})')
baddbmm = _addition("baddbmm", 3, 'scaled_sum(g, {2}, {beta}, g.op("MatMul", {0}, {1}), {alpha}, {name})')


def _trace_type(operands: Types, attrs: Attrs) -> TensorType:
    x = operands[0]
    if x.rank < 2 or x.size == 0:
        raise TypeRuleError(f"no trace of {x}")
    return TensorType(x.dtype, x.shape[:-2])


def _trace(args: Sequence[Bounded], call: Call) -> Bounded:
    x = args[0].map(lambda a: np.diagonal(a, 0, -2, -1))
    return summed(x, partial(np.sum, axis=-1), x.value.shape[-1])


def diagonal_places(shape: tuple[int, ...]) -> list[int]:
    """Where the main diagonal lies in a matrix, the last two of these dimensions, that is laid out as a row."""
    rows, columns = shape[-2:]
    return [i * (columns + 1) for i in range(min(rows, columns))]


def _trace_text(text: str) -> Spelling:
    """`text` with the matrices as rows for `%r` and the places of the diagonal for `%p`."""

    def spell(call: Call) -> str:
        shape = call.operands[0].shape
        rows = (*shape[:-2], shape[-2] * shape[-1])
        return text.replace("%r", str(rows)).replace("%p", str(diagonal_places(shape)))

    return spell


trace = OpSpec(
    "trace", "linalg", (floating(2, nonempty=True),), _trace_type, _trace,
    torch=lambda call: "torch.trace({0})" if call.result.rank == 0 else "torch.diagonal({0}, 0, -2, -1).sum(-1)",
    tensorflow="tf.linalg.trace({0})", jax="jnp.trace({0}, axis1=-2, axis2=-1)",
    relax=_trace_text('relax.op.sum(relax.op.take(relax.op.reshape({0}, %r), relax.const(%p, "int64"), axis=-1), '
    "axis=-1)"),
    onnx=_trace_text('g.op("ReduceSum", g.op("Gather", g.op("Reshape", {0}, g.const(%r, "int64")), '
    'g.const(%p, "int64"), axis=-1), g.const([-1], "int64"), keepdims=0)'),
)  # fmt: skip

PRODUCTS: tuple[OpSpec, ...] = (outer, kron, dot, vecdot, cross, addmm, baddbmm, trace)
