"""Sizes as numbers: what optimisers and importers work out from shapes, and hand on as a constant, or as something of
their own that is no tensor."""

from __future__ import annotations

from generators.baits.bait import Bait, Guard, Pattern

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


_REWRITES = ("onnxruntime/ConstantFolding", "tvm/FoldConstant", "torch-inductor/constant_folding", "xla/algsimp")
_TAKEN = Guard(("shape", "one", "size", "rank"))
_MORE = Guard((0,), (1, -4))
_SIDE = Guard(("left", "right"))
_WHOLE = Guard(("float32",))

BAITS: tuple[Bait, ...] = (
    Bait(
        "sizes-as-numbers", _REWRITES, _of_sizes,
        {"taken": _TAKEN, "operator": Guard(COMPARED + COMPUTED + PARTS), "more": _MORE, "side": _SIDE}, _WHOLE,
    ),
    Bait("scaled-by-sizes", _REWRITES, _by_sizes, {"taken": Guard(("one", "size", "rank")),
                                                   "function": Guard(("sqrt", "none", "rsqrt", "log", "exp2"))}),
    Bait("sizes-chosen", _REWRITES, _chosen, {"taken": _TAKEN, "more": _MORE}, _WHOLE),
)  # fmt: skip
