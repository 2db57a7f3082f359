"""Tensors that the program fills with one number, which an optimiser knows as that number: beside values that they do
not change but for a sign or a dtype, and where what is made of them is no finite number."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from generators.baits.bait import FLOATING, NUMBERS, Bait, Guard, Pattern

_REWRITES = ("torch-inductor/remove_no_ops", "grappler/constant_folding", "xla/algsimp", "tvm/FoldConstant")
_FOLDED = ("torch-inductor/UniformValueConstantFolder", "xla/constant_folding", "grappler/constant_folding")
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


def _made(p: Pattern, like: str, how: str) -> str:
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
    made = _made(p, x, how)
    if beside == "where":
        made = p.where(p.isnan(made), made, p.neg(made))
    result = _along(p, made)[then]()
    return p.mul(result, p.input()) if beside == "times" and then != "argmax" else result


_GUARDS = {
    "filled": Guard(("zeros", "ones"), ("number",)),
    "like": Guard(("as it is", "row", "one"), ("more", "number")),
    "wide": Guard(("same",), ("float64", "float16", "int32")),
    "order": Guard(("right",), ("left",)),
    "beside": Guard(("nothing", "before"), ("both",)),
}

BAITS: tuple[Bait, ...] = (
    Bait("beside-filled", _REWRITES, _beside, {"operator": Guard(("add", "sub", "mul"), ("maximum",)), **_GUARDS},
         NUMBERS),
    Bait("divided-by-filled", _REWRITES, partial(_beside, operator="div"), _GUARDS, FLOATING),
    Bait("filled-not-finite", _FOLDED, _not_finite,
         {"how": Guard(("0 / 0", "1 / 0", "log 0", "sqrt -1", "-1 / 0"), ("0 / 1",)),
          "then": Guard(_THEN, ("sort", "std", "prod", "cummax", "layer_norm_plain")),
          "beside": Guard(("nothing",), ("where", "times"))}),
)  # fmt: skip
