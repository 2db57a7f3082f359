"""Identities of arithmetic: neutral elements, inverses, powers of two, chains of constants."""

from __future__ import annotations

from typing import Any

import numpy as np

from generators.baits.bait import FLOATING, NUMBERS, SIGNED, WHOLE, Bait, Guard, Pattern, limit
from generators.ops.elementwise.scalars import NEAR

SHAPES = Guard(((), (3,)), ((2, 3), (2, 1), (1, 2, 3), (4, 2, 3)))
"""Of a constant beside a value of shape (2, 3): as it is, as large, and such that the result is larger."""
DIVISORS = (1, 40)
"""Where operators take a constant as an integer's divisor."""
BESIDE = Guard(("nothing", "both"), ("before",))
ORDER = Guard(("right",), ("left",))
_ORT, _GRAPPLER, _XLA = "onnxruntime/NoopElimination", "grappler/constant_folding", "xla/algsimp"
_NOOP = (_ORT, _GRAPPLER, _XLA, "torch-inductor/remove_no_ops")


def _neutral(
    operator: str,
    inside: tuple[Any, ...],
    outside: tuple[Any, ...],
    rewrites: tuple[str, ...],
    dtypes: Guard = NUMBERS,
) -> Bait:
    """x OP c, where c is neutral or nearly so; between others, since what is a result of the model often stays."""

    def build(p: Pattern, value: Any, shape: tuple[int, ...], order: str, beside: str) -> str:
        x, constant = p.input(2, 3), p.constant(value, *shape)
        x = x if beside == "nothing" else p.neg(x)
        result = p.apply(operator, *((x, constant) if order == "right" else (constant, x)))
        return p.neg(result) if beside == "both" else result

    guards = {"value": Guard(inside, outside), "shape": SHAPES, "order": ORDER, "beside": BESIDE}
    return Bait(f"{operator}-constant", rewrites, build, guards, dtypes)


def _chain(first: str, second: str, rewrites: tuple[str, ...], dtypes: Guard = NUMBERS) -> Bait:
    """(x FIRST a) SECOND b: constants that are put together, which may overflow, or lose digits."""

    def build(p: Pattern, a: Any, b: Any, order: str) -> str:
        x, one, other = p.input(2, 3), p.constant(a), p.constant(b, 3)
        between = p.apply(first, *((x, one) if order == "right" else (one, x)))
        return p.apply(second, between, other)

    ends = Guard((2, 3), (1, 0, -1, "max", "min", "tiny"))
    return Bait(f"{first}-{second}-constants", rewrites, build, {"a": ends, "b": ends, "order": ORDER}, dtypes)


def _with_itself(operator: str, dtypes: Guard = NUMBERS) -> Bait:
    """x OP x: 0, 1, true or x, but for NaN, infinities and zero."""

    def build(p: Pattern, same: str) -> str:
        x = p.input(2, 3)
        other = {"same": lambda: x, "another": lambda: p.input(2, 3), "copy": lambda: p.identity(x)}[same]()
        return p.apply(operator, x, other)

    guards = {"same": Guard(("same", "copy"), ("another",))}
    return Bait(f"{operator}-self", (_XLA, _GRAPPLER, "tvm/StmtSimplify"), build, guards, dtypes)


def _twice(first: str, second: str, rewrites: tuple[str, ...], dtypes: Guard = NUMBERS) -> Bait:
    """SECOND(FIRST(x)), which undo or imply each other."""

    def build(p: Pattern) -> str:
        return p.apply(second, p.apply(first, p.input(2, 3)))

    return Bait(f"{first}-{second}", rewrites, build, {}, dtypes)


def _power(p: Pattern, exponent: float, shape: tuple[int, ...]) -> str:
    return p.pow(p.input(2, 3), p.constant(exponent, *shape))


def _factored(p: Pattern, operator: str, shared: str) -> str:
    """a x + a y."""
    x, y, a = p.input(2, 3), p.input(2, 3), p.input(2, 3)
    other = a if shared == "same" else p.input(2, 3)
    return p.apply(operator, p.mul(a, x), p.mul(y, other) if shared != "swapped" else p.mul(y, a))


def _reciprocal_of_quotient(p: Pattern, value: Any) -> str:
    """(1 / y) x, which is x / y."""
    x, y = p.input(2, 3), p.input(2, 3)
    return p.mul(p.div(p.constant(value), y), x)


def _undone(p: Pattern, value: Any, back: str) -> str:
    """(x + c) - c, (x c) / c: not x where it overflows."""
    x, c = p.input(2, 3), p.constant(value, domain=DIVISORS)
    there = {"sub": "add", "add": "sub", "floor_divide": "mul", "mul": "floor_divide"}[back]
    return p.apply(back, p.apply(there, x, c), c)


def _divided(p: Pattern, operator: str, value: Any) -> str:
    return p.apply(operator, p.input(2, 3), p.constant(value, domain=DIVISORS))


def _recombined(p: Pattern, value: Any) -> str:
    """(x // c) c + x % c, which is x."""
    x, c = p.input(2, 3), p.constant(value, domain=DIVISORS)
    return p.add(p.mul(p.floor_divide(x, c), c), p.remainder(x, c))


def _shifted(p: Pattern, left: int, right: int) -> str:
    return p.right_shift(p.left_shift(p.input(2, 3), p.constant(left, domain=(0, 7))), p.constant(right, domain=(0, 7)))


def _masked(p: Pattern, first: str, second: str, value: Any) -> str:
    return p.apply(second, p.apply(first, p.input(2, 3), p.constant(value)), p.constant(value))


def _same_twice(p: Pattern, count: int, operator: str) -> str:
    """The same expression twice, or almost, as CSE and Grappler's AddOpsRewrite see it."""
    x, y = p.input(2, 3), p.input(2, 3)
    total = p.apply(operator, x, y)
    for number in range(count):
        total = p.add(total, p.apply(operator, *((x, y) if number % 2 else (y, x))))
    return total


def _long_sum(p: Pattern, shape: str, count: int) -> str:
    total = p.input(2, 3)
    for number in range(count):
        other = p.input(2, 3) if shape == "same" or number % 2 else p.input(3)
        total = p.add(total, other)
    return total


def _negated(p: Pattern, operator: str, side: str) -> str:
    x, y = p.input(2, 3), p.input(2, 3)
    first = p.neg(x) if side in ("left", "both") else x
    return p.apply(operator, first, p.neg(y) if side in ("right", "both") else y)


def _root_divided(p: Pattern, side: str) -> str:
    x, y = p.input(2, 3), p.input(2, 3)
    root = p.sqrt(y)
    return p.div(x, root) if side == "divisor" else p.div(root, x)


def _hoisted(p: Pattern, operator: str, shared: str) -> str:
    """concat of f(x), f(y)."""
    x, y = p.input(2, 3), p.input(1, 3)
    return p.concat(p.apply(operator, x), p.apply(operator if shared == "same" else "neg", y), axis=0)


def _squares(p: Pattern, operator: str, kind: str) -> str:
    x, y = p.input(2, 3), p.input(2, 3)
    difference = p.sub(x, y)
    other = difference if kind == "same" else p.sub(y, x)
    return p.mul(difference, other) if operator == "mul" else p.square(difference)


def _never_negative(p: Pattern, of: str, asked: str) -> str:
    """What no number's square, size or exponential is below, asked all the same: integers wrap below it."""
    x = p.input(2, 3)
    made = {
        "product": lambda: p.mul(x, x),
        "square": lambda: p.square(x),
        "abs": lambda: p.abs(x),
        "maximum": lambda: p.maximum(x, p.constant(0)),
        "sum": lambda: p.add(p.abs(x), p.abs(x)),
        "another": lambda: p.mul(x, p.input(2, 3)),
    }[of]()
    return p.apply(asked, made) if asked in ("abs", "sign", "neg") else p.apply(asked, made, p.constant(0))


def _beyond(p: Pattern, operator: str, number: int, asked: str, shape: tuple[int, ...], end: str) -> str:
    """x + 1 > x, which does not hold where x is the greatest number: integers wrap."""
    x = p.input(*shape)
    p.fixed[x] = np.full(shape, limit(p.dtype, end)).astype(p.dtype)
    return p.apply(asked, p.apply(operator, x, scalar=number), x)


def _widened(p: Pattern, of: str, then: str, shape: tuple[int, ...]) -> str:
    """Whole numbers of few bits, and a wider type afterwards, which shows whether what lies between wrapped."""
    x = p.input(*shape)
    made = p.apply(of, x) if of in ("abs", "neg", "square") else p.apply(of, x, x)
    return p.cast(p.neg(made) if then == "neg" else made, to="int64")


_POSITIVE = Guard((4, 2, 8, 1), (3, 7, 32, 40))
BAITS = (
    _neutral("add", (0, -0.0), (1, NEAR - 1, "tiny", "max"), _NOOP),
    _neutral("sub", (0, -0.0), (1, "tiny", "min"), _NOOP),
    _neutral("mul", (1,), (NEAR, 0, -0.0, 2, 0.5, -1, "max", "tiny"), _NOOP),
    _neutral("div", (1,), (NEAR, 2, 0.5, -1, 3, "max", "tiny"), _NOOP, FLOATING),
    _neutral("maximum", (-float("inf"), "min"), (0, "max", float("nan"), float("inf")), (_XLA,)),
    _neutral("minimum", (float("inf"), "max"), (0, "min", float("nan"), -float("inf")), (_XLA,)),
    *(_chain(*pair, ("grappler/ConstantPushDown", _XLA)) for pair in (("add", "add"), ("sub", "add"), ("add", "sub"))),
    *(_chain(*pair, ("grappler/MulConvPushDown", _XLA)) for pair in (("mul", "mul"), ("add", "mul"))),
    _chain("div", "mul", ("onnxruntime/DivMulFusion", _XLA), FLOATING),
    _chain("div", "div", (_XLA,), FLOATING),
    _with_itself("div", FLOATING),
    *map(_with_itself, ("sub", "equal", "less", "less_equal", "not_equal", "maximum", "minimum", "mul", "add")),
    _twice("neg", "neg", ("grappler/RemoveNegation", _XLA)),
    _twice("abs", "abs", (_XLA,)),
    _twice("neg", "abs", (_XLA,)),
    *(
        _twice(*pair, (_XLA,), FLOATING)
        for pair in (
            ("reciprocal", "reciprocal"),
            ("exp", "log"),
            ("log", "exp"),
            ("sqrt", "square"),
            ("square", "sqrt"),
            ("exp", "reciprocal"),
            ("floor", "floor"),
            ("round", "ceil"),
            ("relu", "relu"),
            ("sqrt", "reciprocal"),
            ("abs", "square"),
            ("neg", "cos"),
            ("neg", "sin"),
            ("expm1", "log1p"),
            ("reciprocal", "rsqrt"),
        )
    ),
    Bait(
        "pow-constant",
        ("grappler/ConvertPow", _XLA, "torch-inductor/pow"),
        _power,
        {"exponent": Guard((2.0, 1.0, 3.0, 0.5, -0.5, -1.0, 0.0), (2.0 * NEAR, 0.25, -2.0, 4.0, 7.0)), "shape": SHAPES},
    ),
    Bait(
        "product-of-sum",
        ("grappler/HoistCommonFactorOutOfAggregation", _XLA),
        _factored,
        {"operator": Guard(("add", "sub")), "shared": Guard(("same", "swapped"), ("another",))},
        NUMBERS,
    ),
    Bait(
        "reciprocal-times",
        ("onnxruntime/DivMulFusion",),
        _reciprocal_of_quotient,
        {"value": Guard((1.0,), (NEAR, 2.0, -1.0))},
        FLOATING,
    ),
    Bait(
        "integer-undone",
        (_XLA, "tvm/StmtSimplify"),
        _undone,
        {"value": Guard((1, 3), (2, 32, 40)), "back": Guard(("sub", "add"), ("floor_divide", "mul"))},
        WHOLE,
    ),
    Bait(
        "integer-divided",
        (_XLA, "tvm/StmtSimplify"),
        _divided,
        {"operator": Guard(("floor_divide", "remainder"), ("trunc_divide", "mul")), "value": _POSITIVE},
        SIGNED,
    ),
    Bait("quotient-and-remainder", (_XLA, "tvm/StmtSimplify"), _recombined, {"value": _POSITIVE}, WHOLE),
    Bait(
        "shift-back",
        (_XLA, "tvm/StmtSimplify"),
        _shifted,
        {"left": Guard((1, 0), (7,)), "right": Guard((1, 0), (7, 3))},
        WHOLE,
    ),
    Bait(
        "bitwise-constants",
        (_XLA, "grappler/SimplifyBitwise"),
        _masked,
        {
            "first": Guard(("bitwise_and", "bitwise_or"), ("bitwise_xor",)),
            "second": Guard(("bitwise_or", "bitwise_and"), ("bitwise_xor",)),
            "value": Guard((0, -1), (1, "max", "min")),
        },
        WHOLE,
    ),
    Bait(
        "same-twice",
        ("onnxruntime/CommonSubexpressionElimination", "tvm/EliminateCommonSubexpr", "xla/cse"),
        _same_twice,
        {"count": Guard((1, 3)), "operator": Guard(("mul", "add"), ("sub", "maximum"))},
        NUMBERS,
    ),
    Bait(
        "sum-of-many",
        ("grappler/AddOpsRewrite", "xla/algsimp"),
        _long_sum,
        {"shape": Guard(("same",), ("broadcast",)), "count": Guard((3, 7))},
        NUMBERS,
    ),
    Bait(
        "negated-operands",
        ("grappler/RemoveNegation", _XLA),
        _negated,
        {
            "operator": Guard(("add", "sub"), ("mul", "maximum")),
            "side": Guard(("right", "left"), ("both",)),
        },
        NUMBERS,
    ),
    Bait(
        "quotient-by-root",
        ("grappler/SqrtDivToRsqrtMul", _XLA),
        _root_divided,
        {"side": Guard(("divisor",), ("dividend",))},
    ),
    Bait(
        "concat-of-functions",
        ("grappler/HoistCWiseUnaryChains",),
        _hoisted,
        {"operator": Guard(("exp", "tanh"), ("sqrt",)), "shared": Guard(("same",), ("different",))},
    ),
    Bait(
        "wider-later",
        (_XLA, "torch-inductor/pointless_convert"),
        _widened,
        {
            "of": Guard(("abs", "neg", "add", "mul", "square"), ("sub", "maximum")),
            "then": Guard(("neg",), ("nothing",)),
            "shape": Guard(((), (5,)), ((2, 37),)),
        },
        Guard(("uint8", "int8", "int16"), ("uint16", "int32", "uint32")),
    ),
    Bait(
        "never-negative",
        (_XLA, "tvm/StmtSimplify"),
        _never_negative,
        {
            "of": Guard(("product", "square", "abs", "maximum", "sum"), ("another",)),
            "asked": Guard(("abs", "maximum", "greater_equal", "less", "sign"), ("neg",)),
        },
        Guard(("int32", "int64", "float32", "float64"), ("int8", "int16", "float16", "bfloat16")),
    ),
    Bait(
        "beyond-compared",
        (_XLA, "tvm/StmtSimplify", "torch-inductor/arith"),
        _beyond,
        {
            "operator": Guard(("add_scalar", "sub_scalar")),
            "number": Guard((1, 100)),
            "asked": Guard(("greater", "less", "greater_equal", "less_equal"), ("equal",)),
            "shape": Guard(((), (5,)), ((2, 37),)),
            "end": Guard(("max", "min"), ("tiny",)),
        },
        Guard(("int32", "int64"), ("int8", "int16", "uint8", "uint32")),
    ),
    Bait(
        "square-of-difference",
        ("grappler/FuseSquaredDiff",),
        _squares,
        {"operator": Guard(("mul", "square")), "kind": Guard(("same",), ("negative",))},
        NUMBERS,
    ),
)
