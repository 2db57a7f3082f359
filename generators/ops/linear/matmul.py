"""Matrix products and powers: matmul, linear, addmm, baddbmm, matrix_power."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

import numpy as np

from generators.bounds.bounded import PRECISION, U64, Bounded, exact, gamma, rounded
from generators.bounds.products import bilinear, bilinear_integer
from generators.graph import TensorType
from generators.ops.linear.matrices import checked, matrix
from generators.ops.slots import (
    MAX_ELEMENTS,
    MAX_RANK,
    broadcast_shape,
    computed,
    draw_dim,
    floating,
    int_of,
    most_elements,
    numeric,
    same_dtype,
    size_of,
    spreads_to,
)
from generators.ops.spec import AttrRule, Attrs, Call, Draw, OpSpec, Slot, Spelling, TypeRuleError, Types, unsupported


def _matmul_type(operands: Types, attrs: Attrs) -> TensorType:
    a, b = operands
    if a.dtype != b.dtype:
        raise TypeRuleError(f"dtypes differ: {a.dtype}, {b.dtype}")
    if a.rank < 2 or b.rank < 2 or a.shape[-1] != b.shape[-2]:
        raise TypeRuleError(f"cannot multiply {a} by {b}")
    batch = broadcast_shape([a.shape[:-2], b.shape[:-2]])
    if batch is None:
        raise TypeRuleError(f"batch dimensions of {a} and {b} do not broadcast")
    return TensorType(a.dtype, (*batch, a.shape[-2], b.shape[-1]))


def _accepts_right(type_: TensorType, earlier: Types) -> bool:
    try:
        return _matmul_type((earlier[0], type_), {}).size <= most_elements((earlier[0], type_))
    except TypeRuleError:
        return False


def _fresh_right(d: Draw, earlier: Types) -> TensorType:
    """Batch dimensions: those of the left operand, some of them left out at the front or 1, or more of them."""
    a = earlier[0]
    batch = list(a.shape[d.choice((a.rank - 2, *range(a.rank - 2))) : -2])
    kind = d.integer(0, 7)
    if kind == 7 and batch:
        batch[d.integer(0, len(batch) - 1)] = 1
    rows = size_of(a.shape[:-1])
    if kind == 6 and len(batch) == a.rank - 2 < MAX_RANK - 2:
        batch.insert(0, draw_dim(d, min(4, MAX_ELEMENTS // max(1, rows, size_of(batch) * a.shape[-1]))))
    largest = max(1, rows * (max(1, batch[0]) if len(batch) > a.rank - 2 else 1), size_of(batch) * a.shape[-1])
    return TensorType(a.dtype, (*batch, a.shape[-1], draw_dim(d, MAX_ELEMENTS // largest, like=a.shape[-1])))


def _matmul(args: Sequence[Bounded], call: Call) -> Bounded:
    a, b = args
    if not a.floating:
        return bilinear_integer(np.matmul, a, b)
    return bilinear(np.matmul, a, b, a.value.shape[-1])


matmul = OpSpec(
    "matmul",
    "linalg",
    operands=(numeric(min_rank=2), Slot(_accepts_right, _fresh_right)),
    result=_matmul_type,
    reference=_matmul,
    torch="torch.matmul({0}, {1})",
    tensorflow="tf.matmul({0}, {1})",
    jax="jnp.matmul({0}, {1})",
    relax="relax.op.matmul({0}, {1})",
    onnx='g.op("MatMul", {0}, {1})',
)


def _linear_type(operands: Types, attrs: Attrs) -> TensorType:
    x, weight, bias = operands
    if len({t.dtype for t in operands}) > 1:
        raise TypeRuleError(f"dtypes differ: {', '.join(t.dtype for t in operands)}")
    if x.rank < 1 or weight.rank != 2 or x.shape[-1] != weight.shape[1]:
        raise TypeRuleError(f"a linear layer with weight {weight} does not take {x}")
    if bias.shape != weight.shape[:1]:
        raise TypeRuleError(f"bias {bias} does not fit weight {weight}")
    return TensorType(x.dtype, (*x.shape[:-1], weight.shape[0]))


def _accepts_weight(type_: TensorType, earlier: Types) -> bool:
    x = earlier[0]
    fits = type_.dtype == x.dtype and type_.rank == 2 and type_.shape[1] == x.shape[-1]
    return fits and size_of(x.shape[:-1]) * type_.shape[0] <= most_elements((x, type_))


def _fresh_weight(d: Draw, earlier: Types) -> TensorType:
    x = earlier[0]
    most = MAX_ELEMENTS // max(1, size_of(x.shape[:-1]), x.shape[-1])
    return TensorType(x.dtype, (draw_dim(d, most, like=x.shape[-1]), x.shape[-1]))


def _linear(args: Sequence[Bounded], call: Call) -> Bounded:
    x, weight, bias = args
    return bilinear(np.matmul, x, weight.map(np.transpose), x.value.shape[-1] + 1, bias=bias)


def _linear_tensorflow(call: Call) -> str:
    if call.operands[0].rank == 1:  # tf.matmul takes no vectors
        return "tf.linalg.matvec({1}, {0}) + {2}"
    return "tf.matmul({0}, {1}, transpose_b=True) + {2}"


def _linear_onnx(call: Call) -> str:
    if call.operands[0].rank == 2:
        return 'g.op("Gemm", {0}, {1}, {2}, transB=1)'
    return 'g.op("Add", g.op("MatMul", {0}, g.op("Transpose", {1}, perm=[1, 0])), {2})'


linear = OpSpec(
    "linear",
    "linalg",
    operands=(
        floating(min_rank=1),
        Slot(_accepts_weight, _fresh_weight),
        computed(lambda earlier: TensorType(earlier[1].dtype, earlier[1].shape[:1])),
    ),
    result=_linear_type,
    reference=_linear,
    torch="torch.nn.functional.linear({0}, {1}, {2})",
    tensorflow=_linear_tensorflow,
    jax="jnp.matmul({0}, {1}.T) + {2}",
    relax="relax.op.linear({0}, {1}, {2})",
    onnx=_linear_onnx,
)

# ---- products and what is added -----------------------------------------------------------------------


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
    if not 1 <= abs(real(attrs, "alpha")) <= 2:
        raise TypeRuleError(f"alpha {attrs['alpha']} is not between 1 and 2")
    real(attrs, "beta")
    return c


def _added(args: Sequence[Bounded], call: Call) -> Bounded:
    """alpha a b + beta c, each factor at any time: K + 1 roundings of a product and two of c, hence K + 3 in all.
    alpha has a magnitude between 1 and 2, so that the scaled magnitudes cover an overflow before or after scaling
    (with an unscaled sum, too), and what underflows is at most doubled: 2 (K + 1) times `tiny`. PyTorch documents that
    with a beta of 0, c is ignored, NaN and all; so it is in our compositions."""
    a, b, c = args
    alpha, beta = real(call.attrs, "alpha"), real(call.attrs, "beta")
    with np.errstate(all="ignore"):
        scaled = Bounded(alpha * a.value, abs(alpha) * a.error, a.dtype)
        offset = Bounded(beta * c.value, abs(beta) * c.error, c.dtype)
    return bilinear(np.matmul, scaled, b, 2 * a.value.shape[-1] + 3, bias=offset if beta else None)


def plus(text: str, product: str) -> Spelling:
    """`text` of a sum with the last operand, or `product` alone where beta is 0."""
    return lambda call: text if call.attrs["beta"] else product


def _factor(*options: float) -> AttrRule:
    return lambda d, operands, attrs: d.choice(options)


FACTORS: dict[str, AttrRule] = {
    "alpha": _factor(1.0, -1.0, 2.0, -1.5),
    "beta": _factor(1.0, 0.5, -2.0, 0.0),
}


def _addition(name: str, rank: int, onnx: str) -> OpSpec:
    """beta c + alpha a b of matrices, or of stacks of them."""
    return OpSpec(
        name, "linalg", (floating(rank, rank), _right(rank), computed(_product)), _added_type, _added,
        attrs=FACTORS,
        torch=f"torch.{name}({{2}}, {{0}}, {{1}}, beta={{beta}}, alpha={{alpha}})",
        tensorflow=plus("{beta} * {2} + {alpha} * tf.matmul({0}, {1})", "{alpha} * tf.matmul({0}, {1})"),
        jax=plus("{beta} * {2} + {alpha} * jnp.matmul({0}, {1})", "{alpha} * jnp.matmul({0}, {1})"),
        relax=plus("scaled_sum({2}, {beta}, relax.op.matmul({0}, {1}), {alpha}, {name})",
                   "relax.op.multiply(relax.const({alpha}, {dtype}), relax.op.matmul({0}, {1}))"),
        onnx=plus(onnx, 'g.op("Mul", g.const({alpha}, {name}), g.op("MatMul", {0}, {1}))'),
    )  # fmt: skip


addmm = _addition("addmm", 2, 'g.op("Gemm", {0}, {1}, {2}, alpha={alpha}, beta={beta})')
baddbmm = _addition("baddbmm", 3, 'scaled_sum(g, {2}, {beta}, g.op("MatMul", {0}, {1}), {alpha}, {name})')

# ---- a bias that broadcasts, factors of 0 -------------------------------------------------------------


def _whole(operands: Types) -> Types:
    """The bias in the shape of the product."""
    return (*operands[:2], _product(operands))


def _biased_type(operands: Types, attrs: Attrs) -> TensorType:
    same_dtype(operands)
    if min(type_.rank for type_ in operands[:2]) < 2:
        raise TypeRuleError(f"cannot multiply {operands[0]} by {operands[1]}")
    product = _product(operands)
    if not spreads_to(operands[2].shape, product.shape):
        raise TypeRuleError(f"cannot add {operands[2]} to {product}")
    alpha = real(attrs, "alpha")
    if not alpha and not real(attrs, "beta"):
        raise TypeRuleError("nothing is left with factors of 0")
    return _added_type(_whole(operands), {**attrs, "alpha": alpha or 1.0})


def _biased(args: Sequence[Bounded], call: Call) -> Bounded:
    """With an alpha of 0 the product may be left out, or be computed: undetermined where it is not finite."""
    a, b, c = args
    wide = c.map(lambda array: np.broadcast_to(array, call.result.shape))
    whole = replace(call, operands=_whole(call.operands))
    if call.attrs["alpha"]:
        return _added((a, b, wide), whole)
    product = _added((a, b, wide), replace(whole, attrs={"alpha": 1.0, "beta": 0.0}))
    found = _added(
        (a.map(np.zeros_like), b.map(np.zeros_like), wide), replace(whole, attrs={**call.attrs, "alpha": 1.0})
    )
    decided = np.isfinite(product.value) & np.isfinite(product.error)
    return replace(found, error=np.where(decided, found.error, np.inf))


def _bias(d: Draw, earlier: Types) -> TensorType:
    """Of the last axis, or of one element."""
    product = _product(earlier)
    return d.choice((replace(product, shape=product.shape[-1:]), replace(product, shape=(1,)), product))


def _beta(d: Draw, operands: Types, attrs: Attrs) -> float:
    return d.choice((1.0, 0.5, 0.0) if attrs["alpha"] else (1.0, 0.5))


_SAME = unsupported("the same sums are asked of it as addmm and baddbmm")


def _with_bias(base: OpSpec) -> OpSpec:
    def accepts(type_: TensorType, earlier: Types) -> bool:
        product = _product(earlier)
        return type_.dtype == product.dtype and spreads_to(type_.shape, product.shape)

    return replace(
        base, name=f"{base.name}_bias", operands=(*base.operands[:2], Slot(accepts, _bias)), result=_biased_type,
        reference=_biased, base=base.name, attrs={"alpha": _factor(1.0, -1.5, 0.0), "beta": _beta},
        tensorflow=_SAME, jax=_SAME, relax=_SAME, onnx=_SAME,
    )  # fmt: skip


# ---- powers -------------------------------------------------------------------------------------------


def _power_type(operands: Types, attrs: Attrs) -> TensorType:
    if int_of(attrs, "k") < 0:
        raise TypeRuleError(f"power {attrs['k']} needs an inverse")
    if int(attrs["k"]) > 64:  # type: ignore[arg-type]
        raise TypeRuleError(f"power {attrs['k']} is more than 64")
    return checked(operands)


def _power(args: Sequence[Bounded], call: Call) -> Bounded:
    """k - 1 products in any order, each of n roundings: gamma_{n k} |A|^k (section 18.1), and the errors of A."""
    a, k = args[0], int_of(call.attrs, "k")
    p, n = PRECISION[a.dtype], a.value.shape[-1]
    if k == 0:
        return exact(np.broadcast_to(np.eye(n), a.value.shape).copy(), a.dtype)
    if k == 1:
        return a
    with np.errstate(all="ignore"):
        ok = (np.isfinite(a.value) & np.isfinite(a.error)).all((-2, -1), keepdims=True)
        size, error = np.where(ok, np.abs(a.value), 0.0), np.where(ok, a.error, 0.0)
        value = reduce(np.matmul, [np.where(ok, a.value, 0.0)] * k)
        power, off = size, error
        largest = np.maximum(1.0, np.max(size + error, (-2, -1), keepdims=True))
        for _ in range(k - 1):
            off = off @ (size + error) + power @ error
            power = power @ size
        reach = (n * largest) ** k
        bound = off + gamma(n * k, p.unit + U64) * (power + off) + k * n * p.tiny * reach
        bound = np.where(~ok | (2 * reach > p.largest) | np.isnan(bound), np.inf, bound)
    return rounded(value, bound, a.dtype)


matrix_power = OpSpec(
    "matrix_power", "linalg", (matrix(),), _power_type, _power,
    attrs={"k": lambda d, operands, attrs: d.choice((2, 3, 0, 1, 5))},
    torch="torch.linalg.matrix_power({0}, {k})", tensorflow="matrix_power({0}, {k})",
    jax="jnp.linalg.matrix_power({0}, {k})", relax="matrix_power(bb, {0}, {k}, {shape}, {name})",
    onnx="matrix_power(g, {0}, {k}, {shape}, {name})",
)  # fmt: skip

OPERATORS: tuple[OpSpec, ...] = (matmul, linear, addmm, baddbmm, matrix_power, *map(_with_bias, (addmm, baddbmm)))
