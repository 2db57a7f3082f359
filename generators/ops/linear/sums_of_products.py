"""beta c + alpha times a product, of vectors and of stacks of matrices; products of three factors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from generators.bounds.bounded import Bounded
from generators.bounds.products import bilinear
from generators.graph import FLOATS, TensorType
from generators.ops.linear.matmul import FACTORS, plus, real
from generators.ops.slots import computed, draw_dim, draw_dtype, floating, same_dtype
from generators.ops.spec import (
    Attrs,
    Call,
    Draw,
    OpSpec,
    Reference,
    ResultRule,
    Slot,
    TypeRuleError,
    Types,
    unsupported,
)

Array = np.ndarray
Shapes = Callable[[Types], tuple[int, ...] | None]

_NONE = unsupported("the same products are asked of it as matmul and addmm")

# ---- what is added ------------------------------------------------------------------------------------


def _matrix_vector(operands: Types) -> tuple[int, ...] | None:
    a, b = operands[:2]
    return a.shape[:1] if a.rank == 2 and b.shape == a.shape[1:] else None


def _outer(operands: Types) -> tuple[int, ...] | None:
    a, b = operands[:2]
    return (*a.shape, *b.shape) if a.rank == b.rank == 1 else None


def _stacks(operands: Types) -> tuple[int, ...] | None:
    a, b = operands[:2]
    fits = a.rank == b.rank == 3 and a.shape[0] == b.shape[0] and a.shape[2] == b.shape[1]
    return (a.shape[1], b.shape[2]) if fits else None


def _result(shape: Shapes) -> ResultRule:
    def rule(operands: Types, attrs: Attrs) -> TensorType:
        dtype, wanted = same_dtype(operands), shape(operands)
        if wanted is None or operands[2].shape != wanted:
            raise TypeRuleError(f"no product of {operands[0]} and {operands[1]} to add to {operands[2]}")
        if not 1 <= abs(real(attrs, "alpha")) <= 2:
            raise TypeRuleError(f"alpha {attrs['alpha']} is not between 1 and 2")
        real(attrs, "beta")
        return TensorType(dtype, wanted)

    return rule


def _reference(equation: str, terms: Callable[[Array], int]) -> Reference:
    """As `addmm` is: two roundings of a product and of c, beside those of the sum. A beta of 0 leaves c out."""

    def reference(args: Sequence[Bounded], call: Call) -> Bounded:
        a, b, c = args
        alpha, beta = real(call.attrs, "alpha"), real(call.attrs, "beta")
        with np.errstate(all="ignore"):
            scaled = Bounded(alpha * a.value, abs(alpha) * a.error, a.dtype)
            offset = Bounded(beta * c.value, abs(beta) * c.error, c.dtype)
        count = 2 * terms(a.value) + 3
        return bilinear(partial(np.einsum, equation), scaled, b, count, bias=offset if beta else None)

    return reference


def _second(name: str) -> Slot:
    def accepts(type_: TensorType, earlier: Types) -> bool:
        rule = {"addmv": _matrix_vector, "addr": _outer, "addbmm": _stacks}[name]
        return type_.dtype == earlier[0].dtype and rule((earlier[0], type_)) is not None and type_.size <= 512

    def fresh(d: Draw, earlier: Types) -> TensorType:
        a = earlier[0]
        if name == "addmv":
            return TensorType(a.dtype, a.shape[1:])
        if name == "addr":
            return TensorType(a.dtype, (draw_dim(d, 9),))
        return TensorType(a.dtype, (a.shape[0], a.shape[2], draw_dim(d, 6)))

    return Slot(accepts, fresh)


def _first(rank: int) -> Slot:
    base = floating(rank, rank)

    def fresh(d: Draw, earlier: Types) -> TensorType:
        return TensorType(draw_dtype(d, FLOATS), tuple(draw_dim(d, 9) for _ in range(rank)))

    return Slot(lambda t, e: base.accepts(t, e) and t.size <= 512 and max(t.shape, default=0) <= 64, fresh)


def _addition(name: str, rank: int, shape: Shapes, equation: str, terms: Callable[[Array], int]) -> OpSpec:
    def third(operands: Types) -> TensorType:
        return TensorType(operands[0].dtype, shape(operands) or ())

    product = f'{{alpha}} * {{np}}.einsum("{equation}", {{0}}, {{1}})'
    texts = {f: product.replace("{np}", f) for f in ("jnp", "tf")}
    return OpSpec(
        name, "linalg", (_first(rank), _second(name), computed(third)), _result(shape), _reference(equation, terms),
        attrs=FACTORS,
        torch=f"torch.{name}({{2}}, {{0}}, {{1}}, beta={{beta}}, alpha={{alpha}})",
        tensorflow=plus(f"{{beta}} * {{2}} + {texts['tf']}", texts["tf"]),
        jax=plus(f"{{beta}} * {{2}} + {texts['jnp']}", texts["jnp"]), relax=_NONE, onnx=_NONE,
    )  # fmt: skip


# ---- three factors ------------------------------------------------------------------------------------


_MOST = 81
"""Elements of a factor."""


def _links(position: int) -> Slot:
    def accepts(type_: TensorType, earlier: Types) -> bool:
        fits = type_.dtype in FLOATS and type_.rank == 2 and 0 < type_.size <= _MOST
        return fits and (position == 0 or (type_.dtype, type_.shape[0]) == (earlier[-1].dtype, earlier[-1].shape[1]))

    def fresh(d: Draw, earlier: Types) -> TensorType:
        dtype = earlier[0].dtype if earlier else draw_dtype(d, FLOATS)
        rows = earlier[-1].shape[1] if earlier else draw_dim(d, 9, zero=False)
        return TensorType(dtype, (rows, draw_dim(d, min(9, _MOST // rows), zero=False)))

    return Slot(accepts, fresh)


def _chain_type(operands: Types, attrs: Attrs) -> TensorType:
    if any(not _links(i).accepts(t, operands[:i]) for i, t in enumerate(operands)):
        raise TypeRuleError(f"{', '.join(map(str, operands))} cannot be multiplied")
    return TensorType(operands[0].dtype, (operands[0].shape[0], operands[-1].shape[1]))


def _chain(args: Sequence[Bounded], call: Call) -> Bounded:
    """Whichever product is first."""
    a, b, c = args

    def product(x: Bounded, y: Bounded) -> Bounded:
        return bilinear(np.matmul, x, y, x.value.shape[-1])

    return _whichever(product(product(a, b), c), product(a, product(b, c)))


def _whichever(first: Bounded, *others: Bounded) -> Bounded:
    """The same by several orders of its products: open where one gives an infinity or NaN that another does not."""
    error = first.error
    with np.errstate(all="ignore"):
        for other in others:
            same = (first.value == other.value) | np.isnan(first.value) & np.isnan(other.value)
            apart = np.where(same | (np.isfinite(first.value) & np.isfinite(other.value)), 0.0, np.inf)
            between = np.where(same | (apart > 0), 0.0, np.abs(first.value - other.value))
            error = np.maximum(error, other.error + between) + apart
    return Bounded(first.value, error, first.dtype)


multi_dot = OpSpec(
    "multi_dot", "linalg", (_links(0), _links(1), _links(2)), _chain_type, _chain,
    torch="torch.linalg.multi_dot([{args}])", tensorflow="{0} @ {1} @ {2}", jax="jnp.linalg.multi_dot([{args}])",
    relax="relax.op.matmul(relax.op.matmul({0}, {1}), {2})",
    onnx='g.op("MatMul", g.op("MatMul", {0}, {1}), {2})',
)  # fmt: skip


def _form(d: Draw, earlier: Types) -> TensorType:
    return TensorType(draw_dtype(d, FLOATS), (draw_dim(d, 4, zero=False), draw_dim(d, 5, zero=False)))


def _rows(type_: TensorType, earlier: Types) -> bool:
    small = type_.dtype in FLOATS and type_.rank == 2 and type_.size > 0 and type_.shape[0] <= 9 >= type_.shape[1]
    return small and (not earlier or (type_.dtype, type_.shape[0]) == (earlier[0].dtype, earlier[0].shape[0]))


def _weights(type_: TensorType, earlier: Types) -> bool:
    wanted = (earlier[0].shape[1], earlier[1].shape[1])
    return type_.dtype == earlier[0].dtype and type_.rank == 3 and type_.shape[1:] == wanted and 0 < type_.size <= 729


def _forms_type(operands: Types, attrs: Attrs) -> TensorType:
    x, y, weight, bias = operands
    if not (_rows(y, (x,)) and _weights(weight, operands) and bias == TensorType(x.dtype, weight.shape[:1])):
        raise TypeRuleError(f"{weight} and {bias} are no bilinear forms of {x} and {y}")
    return TensorType(x.dtype, (x.shape[0], weight.shape[0]))


def _forms(args: Sequence[Bounded], call: Call) -> Bounded:
    """x^T W y + b: whichever two are multiplied first; |x| |W| |y| covers any order of the sums over both axes."""
    x, y, weight, bias = args
    last = y.value.shape[1] + x.value.shape[1] + 2
    left = bilinear(partial(np.einsum, "ki,oij->koj"), x, weight, x.value.shape[1])
    right = bilinear(partial(np.einsum, "oij,kj->koi"), weight, y, y.value.shape[1])
    pairs = bilinear(partial(np.einsum, "ki,kj->kij"), x, y, 1)
    return _whichever(
        bilinear(partial(np.einsum, "koj,kj->ko"), left, y, last, bias=bias),
        bilinear(partial(np.einsum, "koi,ki->ko"), right, x, last, bias=bias),
        bilinear(partial(np.einsum, "kij,oij->ko"), pairs, weight, last, bias=bias),
    )


bilinear_form = OpSpec(
    "bilinear_form", "linalg",
    (Slot(lambda t, e: _rows(t, ()), _form),
     Slot(_rows, lambda d, e: TensorType(e[0].dtype, (e[0].shape[0], draw_dim(d, 5, zero=False)))),
     Slot(_weights, lambda d, e: TensorType(e[0].dtype, (draw_dim(d, 4, zero=False), e[0].shape[1], e[1].shape[1]))),
     computed(lambda e: TensorType(e[0].dtype, e[2].shape[:1]))),
    _forms_type, _forms,
    torch="torch.nn.functional.bilinear({0}, {1}, {2}, {3})",
    tensorflow='tf.einsum("ki,oij,kj->ko", {0}, {2}, {1}) + {3}',
    jax='jnp.einsum("ki,oij,kj->ko", {0}, {2}, {1}) + {3}', relax=_NONE, onnx=_NONE,
)  # fmt: skip

OPERATORS: tuple[OpSpec, ...] = (
    _addition("addmv", 2, _matrix_vector, "ij,j->i", lambda a: a.shape[1]),
    _addition("addr", 1, _outer, "i,j->ij", lambda a: 1),
    _addition("addbmm", 3, _stacks, "bij,bjk->ik", lambda a: a.shape[0] * a.shape[2]),
    multi_dot,
    bilinear_form,
)
