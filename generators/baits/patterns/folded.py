"""What an optimiser finds to be a constant, and computes with its own functions, or hands on as something of its own
that is no tensor: integers less themselves, the sizes of shapes, as numbers that functions take, and tensors that are
filled with one number: beside values that they do not change but for a sign or a dtype, and where what is made of them
is no finite number."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from generators.baits.bait import FLOATING, NUMBERS, Bait, Guard, Pattern

_XLA, _GRAPPLER = "xla/algsimp", "grappler/arithmetic_optimization"
_REWRITES = (_XLA, _GRAPPLER, "torch-inductor/constant_folding", "tvm/StmtSimplify")
PAIRS = ("atan2", "pow", "hypot", "copysign", "fmod", "remainder", "div", "maximum", "logaddexp", "xlogy")
SINGLE = ("log", "rsqrt", "reciprocal", "sinc", "lgamma", "exp", "cos", "atanh", "erfinv", "sign", "sqrt", "isinf")


def _numbers(p: Pattern, made: str, more: int) -> str:
    """Integers or truth values less themselves, and a number that is added."""
    x = p.input(2, 3, dtype="bool" if made == "logical" else "int32")
    zero = {"xor": p.bitwise_xor, "difference": p.sub, "logical": p.logical_xor}[made](x, x)
    if more:
        zero = p.add(p.cast(zero, to="int32") if made == "logical" else zero, p.constant(more, dtype="int32"))
    return p.cast(zero, to=p.dtype)


def _of_two(p: Pattern, operator: str, made: str, first: int, second: int) -> str:
    return p.apply(operator, _numbers(p, made, first), _numbers(p, made, second))


def _of_one(p: Pattern, operator: str, made: str, first: int) -> str:
    return p.apply(operator, _numbers(p, made, first))


COMPARED = ("equal", "less", "greater_equal", "not_equal")
COMPUTED = ("add", "mul", "sub", "maximum", "minimum")
PARTS = ("floor_divide_scalar", "remainder_scalar")


def _sizes(p: Pattern, x: str, taken: str) -> str:
    """All sizes, one of them, or how many elements or axes there are."""
    if taken in ("size", "rank"):
        return p.tensor_size(x, kind=taken)
    sizes = p.tensor_size(x, kind="shape")
    return sizes if taken == "shape" else p.pick(sizes, axis=0, place=1)


def _of_sizes(p: Pattern, taken: str, operator: str, more: int, side: str) -> str:
    """Sizes compared with numbers of which some are the same, or computed with them."""
    x = p.input(2, 3)
    sizes = _sizes(p, x, taken)
    if operator in PARTS:
        return p.apply(operator, sizes, scalar=2 + (more > 0))
    number = p.constant([2, 3 + more] if p.shape(sizes) else 3 + more, dtype="int64")
    return p.apply(operator, *((sizes, number) if side == "left" else (number, sizes)))


def _by_sizes(p: Pattern, taken: str, function: str) -> str:
    """A tensor by a function of a number of it, as the scale of scores is."""
    x = p.input(2, 3)
    number = p.cast(_sizes(p, x, taken), to=p.dtype)
    return p.div(x, number if function == "none" else p.apply(function, number))


def _chosen(p: Pattern, taken: str, more: int) -> str:
    """Sizes that are a number are another number, as exporters write sizes that stay."""
    sizes = _sizes(p, p.input(2, 3), taken)
    same = p.equal(sizes, p.constant(3 + more, dtype="int64"))
    return p.where(same, p.constant([7, 5] if p.shape(sizes) else 7, dtype="int64"), sizes)


def _line(p: Pattern, ends: str, size: int) -> str:
    """Numbers between ends so far apart that the step from one to the next overflows."""
    return p.line_between(*(p.constant(end) for end in ends.split()), size=size)


_SIZES = ("onnxruntime/ConstantFolding", "tvm/FoldConstant", "torch-inductor/constant_folding", _XLA)
_TAKEN = Guard(("shape", "one", "size", "rank"))
_MORE = Guard((0,), (1, -4))
_SIDE = Guard(("left", "right"))
_WHOLE = Guard(("float32",))
_MADE = Guard(("xor", "difference", "logical"))
_NUMBER = Guard((0,), (-1, 1, 2))

# ---- tensors that the program fills with one number ---------------------------------------------------

_FILLED = ("torch-inductor/remove_no_ops", "grappler/constant_folding", "xla/algsimp", "tvm/FoldConstant")
_UNIFORM = ("torch-inductor/UniformValueConstantFolder", "xla/constant_folding", "grappler/constant_folding")
_LIKE = {"as it is": (2, 3), "row": (3,), "more": (4, 2, 3), "one": (1, 1), "number": ()}


def _beside(p: Pattern, operator: str, filled: str, like: str, wide: str, order: str, beside: str) -> str:
    """x + 0, x - 0, x 1, x / 1, of any shapes that go together; the dtype of the filled one may be another."""
    x = p.input(2, 3)
    of = x if like == "as it is" else p.input(*_LIKE[like])
    same = wide in ("same", p.dtype)
    if filled in ("zeros", "ones"):
        made = p.apply(f"{filled}_like", of) if same else p.apply(f"{filled}_like_to", of, to=wide)
    else:
        made = p.full_like_to(of, to=p.dtype if same else wide, value=1.5)
    x = x if beside == "nothing" else p.neg(x)
    result = p.apply(operator if same else f"{operator}_mixed", *((x, made) if order == "right" else (made, x)))
    return p.neg(result) if beside == "both" else result


def _one_number(p: Pattern, like: str, how: str) -> str:
    """Every element is the same number, which is not finite, or the greatest there is."""
    zero, one = p.zeros_like(like), p.ones_like(like)
    return {
        "0 / 0": lambda: p.div(zero, zero),
        "1 / 0": lambda: p.reciprocal(zero),
        "log 0": lambda: p.log2(zero),
        "sqrt -1": lambda: p.sqrt(p.neg(one)),
        "-1 / 0": lambda: p.div(p.neg(one), zero),
        "0 / 1": lambda: p.div(zero, one),
    }[how]()


def _along(p: Pattern, made: str) -> Mapping[str, Callable[[], str]]:
    over = {"axes": (1,), "keepdims": False}
    return {
        **{name: partial(p.apply, name, made, **over) for name in ("max", "min", "variance", "std", "logsumexp")},
        **{name: partial(p.apply, name, made, **over) for name in ("sum", "mean", "prod")},
        **{name: partial(p.apply, name, made, axis=1) for name in ("softmax", "log_softmax", "cumsum", "cummax")},
        "argmax": lambda: p.argmax(made, axis=1, keepdims=False),
        "sort": lambda: p.sort(made, axis=1, descending=False),
        "layer_norm_plain": lambda: p.layer_norm_plain(made, last=1, epsilon=1e-5),
        "none": lambda: made,
    }


_THEN = ("variance", "softmax", "max", "logsumexp", "min", "log_softmax", "mean", "argmax", "sum", "cumsum", "none")


def _not_finite(p: Pattern, how: str, then: str, beside: str) -> str:
    x = p.input(2, 3)
    made = _one_number(p, x, how)
    if beside == "where":
        made = p.where(p.isnan(made), made, p.neg(made))
    result = _along(p, made)[then]()
    return p.mul(result, p.input()) if beside == "times" and then != "argmax" else result


def _both_zeros(p: Pattern, operator: str, order: str, shown: str) -> tuple[str, ...]:
    """An operator by 0 and by -0, which are equal, and not the same."""
    x, mask = p.input(2, 3), p.input(2, 3, dtype="bool")

    def one(zero: float) -> str:
        made = {
            "copysign_scalar": lambda: p.copysign_scalar(x, scalar=zero),
            "mul_scalar": lambda: p.mul_scalar(x, scalar=zero),
            "where_scalar": lambda: p.where_scalar(mask, x, scalar=zero),
            "masked_fill": lambda: p.masked_fill(x, mask, value=zero),
            "threshold": lambda: p.threshold(x, threshold=0.5, value=zero),
        }[operator]()
        sign = p.copysign(p.ones_like(made), made) if shown == "sign" else p.reciprocal(made)
        return p.mul(p.input(2, 3), made if operator == "copysign_scalar" else sign)

    return tuple(map(one, (0.0, -0.0) if order == "0 first" else (-0.0, 0.0)))


_NEUTRAL = {
    "filled": Guard(("zeros", "ones"), ("number",)),
    "like": Guard(("as it is", "row", "one"), ("more", "number")),
    "wide": Guard(("same",), ("float64", "float16", "int32")),
    "order": Guard(("right",), ("left",)),
    "beside": Guard(("nothing", "before"), ("both",)),
}

BAITS: tuple[Bait, ...] = (
    Bait(
        "folded-pairs", _REWRITES, _of_two,
        {"operator": Guard(PAIRS), "made": _MADE, "first": _NUMBER, "second": _NUMBER},
    ),
    Bait(
        "folded-numbers", _REWRITES, _of_one, {"operator": Guard(SINGLE), "made": _MADE, "first": _NUMBER},
    ),
    Bait(
        "sizes-as-numbers", _SIZES, _of_sizes,
        {"taken": _TAKEN, "operator": Guard(COMPARED + COMPUTED + PARTS), "more": _MORE, "side": _SIDE}, _WHOLE,
    ),
    Bait("scaled-by-sizes", _SIZES, _by_sizes, {"taken": Guard(("one", "size", "rank")),
                                                   "function": Guard(("sqrt", "none", "rsqrt", "log", "exp2"))}),
    Bait("line-over-whole-range", ("torch-inductor/linspace", _XLA), _line,
         {"ends": Guard(("min max", "max min"), ("max max",)), "size": Guard((5, 2), (1,))}),
    Bait("sizes-chosen", _SIZES, _chosen, {"taken": _TAKEN, "more": _MORE}, _WHOLE),
    Bait("beside-filled", _FILLED, _beside, {"operator": Guard(("add", "sub", "mul"), ("maximum",)), **_NEUTRAL},
         NUMBERS),
    Bait("divided-by-filled", _FILLED, partial(_beside, operator="div"), _NEUTRAL, FLOATING),
    Bait("zeros-of-both-signs", ("torch-aot/fx_graph_cse", "xla/cse", "grappler/dedup"), _both_zeros,
         {"operator": Guard(("copysign_scalar", "mul_scalar", "where_scalar", "masked_fill"), ("threshold",)),
          "order": Guard(("0 first", "-0 first")), "shown": Guard(("sign", "reciprocal"))}),
    Bait("filled-not-finite", _UNIFORM, _not_finite,
         {"how": Guard(("0 / 0", "1 / 0", "log 0", "sqrt -1", "-1 / 0"), ("0 / 1",)),
          "then": Guard(_THEN, ("sort", "std", "prod", "cummax", "layer_norm_plain")),
          "beside": Guard(("nothing",), ("where", "times"))}),
)  # fmt: skip
