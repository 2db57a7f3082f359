"""What is known before the program runs: ones that are counted, places that are compared, tensors of one number that
rows are written into, bits that are read twice, pieces without elements, and a row beside the whole."""

from __future__ import annotations

from functools import partial

from generators.baits.bait import NUMBERS, Bait, Guard, Pattern
from generators.ops.attributes import OTHERWISE

_RULE = "torch-inductor/"


def _counted(p: Pattern, value: str, axis: int, rank: int) -> str:
    """Sums of ones are the numbers from 1 on, those of another number its multiples."""
    x = p.input(*(3, 4, 2)[:rank])
    number = partial(p.full_like_to, to=p.dtype, value=1.5)
    return p.cumsum({"ones": p.ones_like, "zeros": p.zeros_like, "number": number}[value](x), axis=axis)


def _numbered(p: Pattern, start: int, step: int, form: str, then: str) -> str:
    """Numbers in equal steps beside others of which there are as many."""
    numbers = p.counting(p.input(5), axis=0, to=p.dtype, start=start, step=step, form=form)
    return p.apply(then, numbers, p.input(3, 5))


def _masked_places(p: Pattern, rows: str, columns: str, joined: str, said: str) -> str:
    """Which elements lie in a band: places are compared, and what comes of it is joined. No value is asked for."""
    x = p.input(5, 4)
    count = partial(p.counting, x, to="int64", form="range")
    place = p.unsqueeze(count(axis=0, start=0, step=1), axis=1)
    first = p.apply(rows, place, count(axis=1, start=1, step=1))
    second = p.apply(columns, place, count(axis=1, start=5, step=-1))
    if said == "plain":
        mask = p.apply(joined, first, second)
    else:
        mask = p.apply(f"{joined}{OTHERWISE}", first, second, spelling=int(said))
    return p.where(mask, x, p.square(x))


def _read_again(p: Pattern, through: str, back: str, use: str) -> tuple[str, ...]:
    """Bits as numbers of another type, and as the first one, or twice as the other."""
    x = p.input(3, 5)
    first = p.bitcast(x, to=through)
    second = p.bitcast(x if use == "twice" else first, to=through if use == "twice" else back)
    return p.square(first), p.square(second)


def _written(p: Pattern, value: float, filled: str, axis: int, count: int) -> str:
    """One number into each row of a tensor of which all elements are known."""
    x = p.input(4, 5)
    base = {"zeros": p.zeros_like, "ones": p.ones_like}[filled](x) if filled != "given" else x
    shape = (4, count) if axis == 1 else (count, 5)
    return p.scatter_value(base, p.input(*shape, dtype="int64", domain=(0, 3)), axis=axis, value=value)


def _beside_nothing(p: Pattern, other: str, place: int, axis: int, count: int, pieces: int) -> str:
    """Pieces of one dtype and one of another, which has no elements: it may be left out, its dtype counts."""

    def piece(length: int, dtype: str = "") -> str:
        return p.input(*((3, length) if axis == 1 else (length, 3)), dtype=dtype)

    parts = [piece(length) for length in (2, 1, 4)[:pieces]]
    parts.insert(place, piece(count, {"wider": "float64", "narrow": "int16"}[other]))
    return p.concat_mixed(*parts, axis=axis)


def _shifted(p: Pattern, axis: int, by: int, written: str, piece: str, before: str, after: str) -> str:
    """A tensor with a piece of itself written some places on, in another shape: in place, from the front, elements are
    read that have been written."""
    x = p.input(8, 5)
    x = p.add(x, p.constant(1)) if before == "computed" else x
    ends = [8, 5]
    ends[axis] -= abs(by)
    starts = [max(-by, 0) if i == axis else 0 for i in range(2)]
    stops = tuple(start + size for start, size in zip(starts, ends, strict=True))
    part = p.slice(x, starts=tuple(starts), stops=stops, steps=(1, 1))
    if piece != "as it is":
        part = p.neg(part) if piece == "negated" else p.flip(part, axes=(axis,))
    at = max(by, 0)
    if written == "block":
        place = p.constant([at if i == axis else 0 for i in range(2)], dtype="int32", domain=(0, 8))
        x = p.dynamic_update_slice(x, part, place)
    else:
        x = p.slice_update(x, part, axis=axis, step=1, start=at)
    return {
        "longer": lambda: p.unsqueeze(x, axis=0),
        "flat": lambda: p.reshape(x, shape=(40,)),
        "turned": lambda: p.transpose(x, perm=(1, 0)),
        "nothing": lambda: x,
        "negated": lambda: p.neg(x),
    }[after]()


def _turned_then(p: Pattern, k: int, then: str, rank: int, axis: int, said: str) -> str:
    """An image that is turned, of which one axis is then gone through. A framework may choose at run time how it is
    turned, among results of other shapes."""
    x = p.input(*(2, 3, 5)[3 - rank :])
    turned = p.rot90(x, k=k) if said == "plain" else p.apply(f"rot90{OTHERWISE}", x, spelling=int(said), k=k)
    if then in ("sum", "max"):
        return p.apply(then, turned, axes=(axis,), keepdims=False)
    options = {"sort": {"descending": False}, "running_sum": {"exclusive": True, "reverse": True}}
    return p.apply(then, turned, axis=axis, **options.get(then, {}))


def _row_beside(p: Pattern, other: str, then: str, axis: int, start: int) -> str:
    """A row of a tensor, repeated to be as long as all of it, or two pieces that are as long as each other. Of an open
    size the length of a piece has to be found out."""
    x = p.input(5, 4, 3)

    def piece(first: int, count: int) -> str:
        starts = tuple(first if place == axis else 0 for place in range(3))
        stops = tuple(first + count if place == axis else size for place, size in enumerate((5, 4, 3)))
        return p.slice(x, starts=starts, stops=stops, steps=(1, 1, 1))

    part, whole = (piece(start, 1), x) if other == "whole" else (piece(start, 2), piece(1, 2))
    return {
        "where": lambda: p.where(p.less(part, whole), part, whole),
        "matmul": lambda: p.matmul(part, p.transpose(whole, perm=(0, 2, 1))),
        "broadcast_to": lambda: p.broadcast_to(part, shape=p.shape(whole)),
        "concat": lambda: p.concat(part, whole, axis=axis),
    }.get(then, lambda: p.apply(then, part, whole))()


BAITS = (
    *(
        Bait(f"turned-then-{then}", ("xla/shape inference", "grappler/constant_folding"),
             partial(_turned_then, then=then),
             {"k": Guard((1, 3), (2, 5)), "rank": Guard((2,), (3,)), "axis": Guard((0,), (1, -1)),
              "said": Guard(("plain", "0"))}, Guard(("float32", "float64"), ("float16",)))
        for then in ("cumsum", "running_sum", "cumprod", "logcumsumexp", "softmax", "max", "sort")
    ),
    Bait("cumsum-of-ones", (_RULE + "pointless_cumsum_replacement",), _counted,
         {"value": Guard(("ones", "number"), ("zeros",)), "axis": Guard((0, 1, -1)), "rank": Guard((2, 3))}, NUMBERS),
    Bait("numbers-beside", ("onnxruntime/ConstantFolding", "xla/constant_folding", "tvm/FoldConstant"), _numbered,
         {"start": Guard((0, 5), (-5,)), "step": Guard((1, -1), (3, -7)), "form": Guard(("range", "scaled", "short")),
          "then": Guard(("add",), ("mul", "less"))}, Guard(("int64", "float32"), ("int32", "float64"))),
    Bait("band-of-places", (_RULE + "index_propagation", "xla/algsimp", "onnxruntime/ConstantFolding"), _masked_places,
         {"rows": Guard(("less",), ("greater_equal", "equal")), "columns": Guard(("less_equal",), ("greater",)),
          "joined": Guard(("logical_or", "logical_and"), ("logical_xor",)),
          "said": Guard(("plain", "0"), ("1",))}, NUMBERS),
    Bait("bits-read-again", (_RULE + "remove_redundant_views",), _read_again,
         {"through": Guard(("int32",), ("uint32",)), "back": Guard(("float32",)), "use": Guard(("back", "twice"))},
         Guard(("float32",))),
    Bait("scatter-upon-constant", (_RULE + "scatter_upon_const_tensor",), _written,
         {"value": Guard((1.5,), (0.0,)), "filled": Guard(("zeros", "ones"), ("given",)), "axis": Guard((1,), (0,)),
          "count": Guard((1,), (2,))}),
    Bait("joined-with-nothing", (_RULE + "cat",), _beside_nothing,
         {"other": Guard(("wider",), ("narrow",)), "place": Guard((1, 0)), "axis": Guard((0, 1)),
          "count": Guard((0,), (1,)), "pieces": Guard((2, 3), (1,))}, Guard(("float32", "int32"), ("bfloat16",))),
    Bait("shifted-in-itself", ("xla/in-place fusion", _RULE + "reinplacing", "xla/algsimp"), _shifted,
         {"axis": Guard((0, 1)), "by": Guard((1, 2), (-1,)), "written": Guard(("slice", "block")),
          "piece": Guard(("as it is", "negated"), ("turned",)), "before": Guard(("computed",), ("given",)),
          "after": Guard(("longer", "flat"), ("turned", "nothing", "negated"))}, NUMBERS),
    Bait("row-beside-whole", ("tvm/LegalizeOps",), _row_beside,
         {"other": Guard(("whole", "piece")), "then": Guard(("add", "where", "matmul", "broadcast_to"), ("concat",)),
          "axis": Guard((0,), (1,)), "start": Guard((0, 2))}, NUMBERS),
)  # fmt: skip
