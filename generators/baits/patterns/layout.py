"""Layout: pairs of transpositions and reshapes, slices, joins and splits, paddings, casts, gathers by constants."""

from __future__ import annotations

from typing import Any

from generators.baits.bait import NUMBERS, Bait, Guard, Pattern
from generators.graph import FLOATS

_XLA, _INDUCTOR = "xla/algsimp", "torch-inductor/"
_TRANSPOSES = ("onnxruntime/TransposeOptimizer", "grappler/RemoveIdentityTranspose", _XLA)
PERMS = {"back": (1, 2, 0), "same": (2, 0, 1), "identity": (0, 1, 2), "another": (0, 2, 1)}


def _transpose_pair(p: Pattern, second: str, between: str) -> str:
    """One transposition after another: back again, or not."""
    x = p.transpose(p.input(2, 3, 4), perm=(2, 0, 1))
    x = {"nothing": lambda: x, "unary": lambda: p.relu(x), "constant": lambda: p.add(x, p.constant(2, 3)),
         "bias": lambda: p.add(x, p.weight(4, 2, 3))}[between]()  # fmt: skip
    return p.transpose(x, perm=PERMS[second])


def _transposed_through(p: Pattern, operator: str, perm: tuple[int, ...]) -> str:
    """A transposition that an operator can be moved past, with the axis, the pads or the shape that go with it."""
    x = p.transpose(p.input(2, 3, 4, 5), perm=(0, 3, 1, 2))
    results = {
        "sum": lambda: p.sum(x, axes=(2, 3), keepdims=True),
        "mean": lambda: p.mean(x, axes=(1,), keepdims=True),
        "max": lambda: p.max(x, axes=(-1,), keepdims=True),
        "softmax": lambda: p.softmax(x, axis=1),
        "argmax": lambda: p.argmax(x, axis=1, keepdims=True),
        "concat": lambda: p.concat(x, p.transpose(p.input(2, 3, 4, 5), perm=(0, 3, 1, 2)), axis=1),
        "concat one": lambda: p.concat(x, p.input(2, 5, 3, 4), axis=1),
        "split": lambda: p.split(x, axis=1, sizes=(2, 3), index=1),
        "slice": lambda: p.slice(x, starts=(0, 1, 0, 0), stops=(2, 4, 3, 4), steps=(1, 2, 1, 1)),
        "pad": lambda: p.pad(x, pads=(0, 1, 0, 0, 0, 0, 2, 0), value=0.0),
        "tile": lambda: p.tile(x, repeats=(1, 2, 1, 1)),
        "where": lambda: p.where(p.input(2, 5, 3, 4, dtype="bool"), x, p.constant(0)),
        "clip": lambda: p.clip(x, min=-1.0, max=1.0),
        "pool": lambda: p.max_pool2d(x, kernel=(2, 2), dilation=(1, 1), padding=(0, 0), stride=(1, 1)),
        "squeeze": lambda: p.squeeze(p.sum(x, axes=(1,), keepdims=True), axes=(1,)),
        "reshape": lambda: p.reshape(x, shape=(2, 5, 1, 12)),
        "cumsum": lambda: p.cumsum(x, axis=1),
        "flip": lambda: p.flip(x, axes=(1, 3)),
        "gather": lambda: p.take(x, p.constant([0, 1], dtype="int64", domain=(0, 1)), axis=1),
    }  # fmt: skip
    value = results[operator]()
    return p.transpose(value, perm=perm) if len(p.shape(value)) == 4 else p.neg(value)


def _resized_between(p: Pattern, operator: str, first: tuple[int, ...], second: str) -> str:
    """An image that is turned, resized along its last two axes and turned back: channels are among these, or not."""
    t = (2, 3, 4, 5)
    x = p.transpose(p.input(*(t[first.index(axis)] for axis in range(4))), perm=first)
    x = {
        "linear": lambda: p.resize_linear(x, size=(8, 7), mode="center"),
        "nearest": lambda: p.upsample_nearest(x, factor=2),
        "cubic": lambda: p.resize_cubic(x, size=(8, 7), mode="repeated"),
    }[operator]()
    back = tuple(first.index(axis) for axis in range(4))
    return p.transpose(x, perm={"back": back, "again": first}[second])


def _reshape_pair(p: Pattern, second: tuple[int, ...], between: str) -> str:
    x = p.reshape(p.input(2, 3, 4), shape=(6, 4))
    x = p.transpose(x, perm=(1, 0)) if between == "transpose" else p.neg(x) if between == "neg" else x
    return p.reshape(x, shape=second)


def _reshape_of_transpose(p: Pattern, shape: tuple[int, ...], perm: tuple[int, ...]) -> str:
    """A transposition that moves axes of size 1 only is a reshape."""
    return p.transpose(p.input(*shape), perm=perm)


def _axes_pair(p: Pattern, first: int, second: int) -> str:
    return p.squeeze(p.unsqueeze(p.input(1, 3, 1), axis=first), axes=(second,))


def _unsqueezed_twice(p: Pattern, first: int, second: int, role: str) -> str:
    x = p.constant([1, 2, 3]) if role == "constant" else p.input(3)
    return p.add(p.unsqueeze(p.unsqueeze(x, axis=first), axis=second), p.input(1))


def _slice_of(p: Pattern, starts: tuple[int, ...], stops: tuple[int, ...], steps: tuple[int, ...]) -> str:
    """All of it, nearly all of it, or from beyond the ends."""
    return p.neg(p.slice(p.input(4, 6), starts=starts, stops=stops, steps=steps))


def _slice_pair(p: Pattern, first: tuple[int, int, int], second: tuple[int, int, int]) -> str:
    x = p.input(2, 12)
    for start, stop, step in (first, second):
        rows = p.shape(x)[0]
        x = p.slice(x, starts=(0, start), stops=(rows, stop), steps=(1, step))
    return x


def _number(p: Pattern, value: int) -> float:
    """As an attribute of the dtype's kind."""
    return float(value) if p.dtype in FLOATS else value


def _block_pair(p: Pattern, first: tuple[int, int], second: tuple[int, int], between: str, starts: str) -> str:
    """A block of a block, each where a tensor says, moved to lie inside: their starts cannot just be added."""
    at = p.input(2, dtype="int32", domain=(0, 3 if starts == "same" else 8))
    x = p.dynamic_slice(p.input(6, 8), at, sizes=first)
    x = {"nothing": lambda: x, "unary": lambda: p.neg(x), "flip": lambda: p.flip(x, axes=(0,)),
         "pad": lambda: p.pad(x, pads=(1, 0, 0, 2), value=_number(p, 0))}[between]()  # fmt: skip
    other = at if starts == "same" else p.input(2, dtype="int32", domain=(0, max(p.shape(x))))
    return p.dynamic_slice(x, other, sizes=tuple(min(size, dim) for size, dim in zip(second, p.shape(x), strict=True)))


def _block_of(p: Pattern, made: str, sizes: tuple[int, int]) -> str:
    """A block, where a tensor says, of what is sliced, joined, padded, turned or known, or a fixed slice of one."""
    x, at = p.input(6, 8), p.input(2, dtype="int32", domain=(0, 6))
    if made == "sliced after":
        return p.slice(p.dynamic_slice(x, at, sizes=sizes), starts=(1, 0), stops=(2, 2), steps=(1, 1))
    made_of = {
        "slice": lambda: p.slice(x, starts=(0, 1), stops=(5, 8), steps=(1, 2)),
        "concat": lambda: p.concat(x, p.input(6, 3), axis=1),
        "concat itself": lambda: p.concat(x, x, axis=0),
        "pad": lambda: p.pad(x, pads=(2, 1, 0, 1), value=_number(p, 1)),
        "transpose": lambda: p.transpose(x, perm=(1, 0)),
        "flip": lambda: p.flip(x, axes=(0, 1)),
        "broadcast": lambda: p.broadcast_to(p.input(6, 1), shape=(6, 8)),
        "constant": lambda: p.weight(6, 8),
        "written": lambda: p.dynamic_update_slice(x, p.input(2, 2), at),
        "product": lambda: p.matmul(x, p.input(8, 5)) if p.dtype in FLOATS else p.mul(x, x),
    }  # fmt: skip
    return p.dynamic_slice(made_of[made](), at, sizes=sizes)


def _block_back(p: Pattern, count: tuple[int, int], place: str) -> str:
    """A block that is read, written into and put back where it was: it, or another place, another tensor."""
    x, at = p.input(6, 8), p.input(2, dtype="int32", domain=(0, 8))
    block = p.dynamic_slice(x, at, sizes=(4, 5))
    block = p.dynamic_update_slice(block, p.input(*count), p.input(2, dtype="int32", domain=(0, 7)))
    back = p.input(2, dtype="int32", domain=(0, 8)) if place == "another" else at
    return p.dynamic_update_slice(p.neg(x) if place == "of another" else x, block, back)


def _parts(p: Pattern, order: tuple[int, ...], sizes: tuple[int, ...], axis: int) -> str:
    """Parts of a split joined again: all in order, or not."""
    x = p.input(6, 6)
    return p.concat(*[p.split(x, axis=0, sizes=sizes, index=index) for index in order], axis=axis)


def _sliced_concat(p: Pattern, start: int, stop: int, count: int) -> str:
    """concat(x, slice(concat(x, y))), and slices of a join at its seams."""
    x, y = p.input(2, 4), p.input(2, 4)
    joined = p.concat(x, y, axis=1)
    parts = [p.slice(joined, starts=(0, start), stops=(2, stop), steps=(1, 1)) for _ in range(count)]
    return p.concat(joined, *parts, axis=1)


def _single(p: Pattern, operator: str) -> str:
    x = p.input(2, 3)
    return {
        "concat": lambda: p.concat(x, axis=1),
        "concat empty": lambda: p.concat(x, p.input(0, 3), axis=0),
        "split": lambda: p.split(x, axis=0, sizes=(2,), index=0),
        "tile": lambda: p.tile(x, repeats=(1, 1)),
        "tile twice": lambda: p.tile(x, repeats=(1, 2)),
        "pad": lambda: p.pad(x, pads=(0, 0, 0, 0), value=0.0),
        "pad one": lambda: p.pad(x, pads=(0, 0, 0, 1), value=0.0),
        "pad cut": lambda: p.pad_crop(x, pads=(0, -1, 0, 1)),
        "expand": lambda: p.broadcast_to(x, shape=(2, 3)),
        "expand more": lambda: p.broadcast_to(x, shape=(1, 2, 3)),
        "reshape": lambda: p.reshape(x, shape=(2, 3)),
        "transpose": lambda: p.transpose(x, perm=(0, 1)),
        "flip": lambda: p.flip(p.flip(x, axes=(0,)), axes=(0,)),
        "flip another": lambda: p.flip(p.flip(x, axes=(0,)), axes=(1,)),
        "roll": lambda: p.roll(x, axis=1, shift=3),
        "roll one": lambda: p.roll(x, axis=1, shift=1),
        "identity": lambda: p.identity(p.identity(x)),
        "sum": lambda: p.sum(p.unsqueeze(x, axis=1), axes=(1,), keepdims=False),
        "sum of one kept": lambda: p.sum(p.unsqueeze(x, axis=1), axes=(1,), keepdims=True),
        "cumsum of one": lambda: p.cumsum(p.unsqueeze(x, axis=0), axis=0),
        "repeat": lambda: p.repeat(x, repeats=1, axis=0),
        "slice update": lambda: p.slice_update(p.input(2, 3), x, axis=0, step=1, start=0),
    }[operator]()


def _pad_pair(p: Pattern, first: int, second: int, value: float) -> str:
    x = p.pad(p.input(2, 3), pads=(0, first, 0, 1), value=0.0)
    return p.pad(x, pads=(second, 0, 0, 1), value=value)


def _sliced_pad(p: Pattern, pads: int, start: int, stop: int) -> str:
    """A slice that takes away what was padded, more or less."""
    return p.slice(
        p.pad(p.input(2, 6), pads=(0, 0, pads, pads), value=1.0), starts=(0, start), stops=(2, stop), steps=(1, 1)
    )


def _cast_pair(p: Pattern, first: str, second: str) -> str:
    """There and back: lossless, or not."""
    return p.cast(p.cast(p.input(2, 3), to=first), to=second or p.dtype)


def _cast_around(p: Pattern, to: str, operator: str, count: int) -> str:
    """An operator in another precision between casts (PropagateCastOps)."""
    x, y = p.cast(p.input(2, 3), to=to), p.cast(p.input(2, 3), to=to)
    for _ in range(count):
        x = p.apply(operator, x, y)
    return p.cast(x, to=p.dtype)


def _gather_constant(p: Pattern, indices: tuple[int, ...], axis: int, then: str) -> str:
    """Indices that count up by one are a slice; two gathers are a split."""
    x = p.input(4, 6)
    chosen = p.take(x, p.constant(indices, len(indices), dtype="int64", domain=(0, 3)), axis=axis)
    rest = p.slice(x, starts=(0, 0), stops=(4, 3), steps=(1, 1)) if then == "slice" else chosen
    return p.concat(chosen, rest, axis=1) if then == "slice" and axis == 1 else p.neg(chosen)


def _gathered_apart(p: Pattern, indices: tuple[int, ...]) -> tuple[str, ...]:
    """Rows gathered one by one, all of them or some."""
    x = p.input(3, 4)
    found = [p.embedding(x, p.constant(i, dtype="int64", domain=(0, 2))) for i in indices]
    return tuple(p.neg(one) for one in found)


def _sliced_apart(p: Pattern, stops: tuple[int, ...]) -> tuple[str, ...]:
    x = p.input(2, 6)
    ends = list(zip((0, *stops[:-1]), stops, strict=True))
    return tuple(p.neg(p.slice(x, starts=(0, a), stops=(2, b), steps=(1, 1))) for a, b in ends)


def _space_to_depth(p: Pattern, order: tuple[int, ...], step: int) -> str:
    """The focus of YOLO: every second row and column, joined."""
    x, corners = p.input(1, 3, 6, 6), [(0, 0), (1, 0), (0, 1), (1, 1)]
    parts = [p.slice(x, starts=(0, 0, *corners[i]), stops=(1, 3, 6, 6), steps=(1, 1, step, step)) for i in order]
    return p.concat(*parts, axis=1)


def _stacked(p: Pattern, join: str, axis: int, order: tuple[int, ...]) -> str:
    """Joined again as they were cut, or along another axis: TensorFlow Lite's converter makes a reshape of both."""
    x = p.input(3, 4, 2)
    return p.apply(join, *[p.unstack(x, axis=0, pick=pick) for pick in order], axis=axis)


def _expanded(p: Pattern, shape: tuple[int, ...], into: tuple[int, ...]) -> str:
    """A value that is made larger before an operator that would do so."""
    return p.add(p.broadcast_to(p.input(*shape), shape=into), p.input(2, 3))


def _reduced_twice(p: Pattern, first: int, second: int, operators: tuple[str, str]) -> str:
    x = p.apply(operators[0], p.input(2, 3, 4), axes=(first,), keepdims=False)
    return p.apply(operators[1], x, axes=(second,), keepdims=False)


def _reduced_join(p: Pattern, operator: str, axis: int) -> str:
    return p.apply(operator, p.concat(p.input(2, 3), p.input(2, 3), axis=0), axes=(axis,), keepdims=False)


def _constants_only(p: Pattern, operator: str, value: Any) -> str:
    """What can be computed when compiling."""
    return p.add(p.input(2, 3), p.apply(operator, p.constant(value, 2, 3), p.constant([3, 5, 7])))


def _scanned_constant(p: Pattern, value: float, axis: int) -> str:
    """The running sum of equal numbers is an arithmetic series."""
    return p.add(p.cumsum(p.broadcast_to(p.constant(value), shape=(4, 3)), axis=axis), p.input(3))


def _scattered(p: Pattern, value: float, count: int) -> str:
    """Into a constant: what one-hot encoders compile to."""
    base = p.broadcast_to(p.constant(value), shape=(3, 5))
    places = p.input(3, count, dtype="int64", domain=(0, 2))
    return p.scatter_add(base, places, p.broadcast_to(p.constant(1), shape=(3, count)), axis=1)


_NOOPS = (
    *("concat", "split", "tile", "pad", "expand", "reshape", "transpose", "flip", "roll", "identity", "sum"),
    *("cumsum of one", "repeat", "slice update", "concat empty"),
)
_NEARLY = ("tile twice", "pad one", "pad cut", "expand more", "flip another", "roll one", "sum of one kept")
_THROUGH = (
    *("sum", "mean", "max", "softmax", "argmax", "concat", "concat one", "split", "slice", "pad", "tile", "where"),
    *("clip", "pool", "squeeze", "reshape", "cumsum", "flip", "gather"),
)
_FLOATS = Guard(("float32",), ("float64", "float16"))
BAITS = (
    Bait("transpose-transpose", (*_TRANSPOSES, _INDUCTOR + "pointless_permute_pair"), _transpose_pair,
         {"second": Guard(("back",), ("same", "identity", "another")),
          "between": Guard(("nothing", "unary"), ("constant", "bias"))}),
    Bait("transpose-through", _TRANSPOSES, _transposed_through,
         {"operator": Guard(_THROUGH), "perm": Guard(((0, 2, 3, 1),), ((0, 3, 1, 2), (0, 1, 2, 3)))}, _FLOATS),
    Bait("transpose-resize", _TRANSPOSES, _resized_between,
         {"operator": Guard(("linear", "nearest"), ("cubic",)),
          "first": Guard(((0, 3, 1, 2), (0, 2, 3, 1)), ((1, 0, 2, 3), (3, 2, 1, 0))),
          "second": Guard(("back",), ("again",))}, _FLOATS),
    Bait("reshape-reshape",
         ("onnxruntime/ReshapeFusion", "tvm/RemoveRedundantReshape", _INDUCTOR + "pointless_view_pair",
          "grappler/RemoveRedundantReshape", _XLA), _reshape_pair,
         {"second": Guard(((2, 3, 4), (6, 4), (24,)), ((3, 8), (2, 3, 4, 1))),
          "between": Guard(("nothing",), ("neg", "transpose"))}, NUMBERS),
    Bait("transpose-of-ones", (_XLA, "onnxruntime/TransposeOptimizer", "grappler/RemoveIdentityTranspose"),
         _reshape_of_transpose,
         {"shape": Guard(((1, 3, 1, 4),), ((2, 3, 1, 4), (1, 1, 1, 1), (0, 3, 1, 4))),
          "perm": Guard(((0, 2, 1, 3),), ((1, 0, 3, 2), (3, 2, 1, 0)))}, NUMBERS),
    Bait("unsqueeze-squeeze", ("onnxruntime/TransposeOptimizer", "grappler/RemoveRedundantReshape", _XLA), _axes_pair,
         {"first": Guard((0, 2), (-1, 1)), "second": Guard((0,), (-1,))}, NUMBERS),
    Bait("unsqueeze-unsqueeze", ("onnxruntime/UnsqueezeElimination",), _unsqueezed_twice,
         {"first": Guard((0, 1)), "second": Guard((0, 2), (-1,)), "role": Guard(("constant",), ("input",))}, NUMBERS),
    Bait("slice-of-all", ("onnxruntime/EliminateSlice", _INDUCTOR + "slice_noop", _XLA), _slice_of,
         {"starts": Guard(((0, 0), (-4, -6)), ((1, 0), (0, -5))),
          "stops": Guard(((4, 6), (9, 99)), ((3, 6), (4, -1))), "steps": Guard(((1, 1),), ((1, 2), (2, 1)))}, NUMBERS),
    Bait("slice-of-slice", ("xla/algsimp", "onnxruntime/ConstantFolding"), _slice_pair,
         {"first": Guard(((1, 11, 1), (0, 12, 2)), ((2, 3, 1), (3, 3, 1))),
          "second": Guard(((0, 5, 1), (1, 4, 1)), ((0, 9, 2), (-3, 9, 1)))}, NUMBERS),
    Bait("block-of-block", (_XLA, "xla/dynamic_slice"), _block_pair,
         {"first": Guard(((4, 5), (6, 5), (1, 8)), ((6, 8),)), "second": Guard(((2, 3), (1, 5)), ((1, 1),)),
          "between": Guard(("nothing",), ("unary", "flip", "pad")), "starts": Guard(("other", "same"))}, NUMBERS),
    Bait("block-of-moved", (_XLA, "xla/dynamic_slice"), _block_of,
         {"made": Guard(("slice", "concat", "concat itself", "pad", "transpose", "flip", "broadcast", "constant",
                         "written", "product", "sliced after")),
          "sizes": Guard(((2, 3),), ((5, 2),))}, NUMBERS),
    Bait("block-written-back", (_XLA, "xla/dynamic_slice"), _block_back,
         {"count": Guard(((2, 3),), ((4, 5), (1, 1))), "place": Guard(("same", "of another"), ("another",))}, NUMBERS),
    Bait("concat-of-split",
         ("onnxruntime/SplitConcat", _INDUCTOR + "splitwithsizes_cat_replace", _XLA, _INDUCTOR + "simplify_split_cat"),
         _parts,
         {"order": Guard(((0, 1, 2),), ((1, 0, 2), (0, 1), (0, 0, 1), (2,))),
          "sizes": Guard(((2, 2, 2),), ((1, 2, 3), (1, 5, 0))), "axis": Guard((0,), (-2,))}, NUMBERS),
    Bait("slice-of-concat", (_INDUCTOR + "cat_slice_cat", _XLA), _sliced_concat,
         {"start": Guard((0,), (1, 4)), "stop": Guard((2, 4), (5, 8)), "count": Guard((1,), (2,))}, NUMBERS),
    Bait("nothing-done",
         ("onnxruntime/EliminateIdentity", "onnxruntime/ExpandElimination", "onnxruntime/Concat",
          "grappler/RemoveIdentityTranspose", _INDUCTOR + "remove_noop_ops", _XLA), _single,
         {"operator": Guard(_NOOPS, _NEARLY)}, Guard(("float32", "float64"), ("float16", "bfloat16"))),
    Bait("pad-of-pad", (_XLA, "grappler/constant_folding"), _pad_pair,
         {"first": Guard((1,), (0, 2)), "second": Guard((1,), (0,)), "value": Guard((0.0,), (-0.0, 1.0))}),
    Bait("slice-of-pad", (_XLA,), _sliced_pad,
         {"pads": Guard((1,), (2,)), "start": Guard((1,), (0, 2)), "stop": Guard((7,), (6, 8))}),
    Bait("cast-of-cast",
         ("onnxruntime/CastElimination", "grappler/RemoveRedundantCast", _INDUCTOR + "pointless_convert", _XLA),
         _cast_pair,
         {"first": Guard(("float64", "float32"), ("float16", "bfloat16", "bool", "int64", "int32")),
          "second": Guard(("",), ("float64", "int32", "bool", "float16"))}, Guard(("float32",), ("int32", "bool"))),
    Bait("casts-around", ("onnxruntime/PropagateCastOps", "onnxruntime/InsertCastTransformer", _XLA), _cast_around,
         {"to": Guard(("float16", "float64"), ("bfloat16",)), "operator": Guard(("add", "mul"), ("maximum", "sub")),
          "count": Guard((1, 2))}, Guard(("float32",), ("float64",))),
    Bait("gather-by-constant", ("onnxruntime/GatherToSliceFusion", "onnxruntime/GatherSliceToSplitFusion", _XLA),
         _gather_constant,
         {"indices": Guard(((0, 1, 2), (1, 2)), ((0, 2), (2, 1, 0), (1, 1), (3,))), "axis": Guard((0, 1)),
          "then": Guard(("nothing",), ("slice",))}, NUMBERS),
    Bait("gathers-of-all", ("onnxruntime/GatherSliceToSplitFusion", "onnxruntime/GatherToSplitFusion"), _gathered_apart,
         {"indices": Guard(((0, 1, 2),), ((0, 1), (2, 1, 0), (0, 0, 1)))}),
    Bait("slices-of-all", ("onnxruntime/GatherSliceToSplitFusion",), _sliced_apart,
         {"stops": Guard(((2, 4, 6), (1, 6)), ((2, 4), (2, 5, 6), (6,)))}),
    Bait("slices-to-depth", ("onnxruntime/SliceConcatToSpaceToDepthFusion",), _space_to_depth,
         {"order": Guard(((0, 1, 2, 3),), ((0, 2, 1, 3), (3, 1, 2, 0), (0, 1, 2))), "step": Guard((2,), (4,))},
         _FLOATS),
    Bait("stack-of-unstack",
         (_INDUCTOR + "merge_unbind_stack", "grappler/RemoveStackSliceSameAxis",
          "grappler/ReplacePackWithTileReshape", "tflite/unpack-concat"), _stacked,
         {"join": Guard(("stack", "concat")), "axis": Guard((0,), (1, -1)),
          "order": Guard(((0, 1, 2),), ((2, 1, 0), (0, 1), (1, 1)))}, NUMBERS),
    Bait("expanded-operand", ("onnxruntime/ExpandElimination", _XLA, "grappler/constant_folding"), _expanded,
         {"shape": Guard(((1, 3), (3,)), ((1, 1), (2, 1))), "into": Guard(((2, 3),), ((4, 2, 3),))}, NUMBERS),
    Bait("reduce-of-reduce", (_XLA, "xla/reduce-decomposer", "xla/tree_reduction_rewriter"), _reduced_twice,
         {"first": Guard((0, 2), (-2,)), "second": Guard((0,), (-1,)),
          "operators": Guard((("sum", "sum"), ("max", "max"), ("min", "min")), (("max", "min"), ("sum", "max")))},
         NUMBERS),
    Bait("reduce-of-concat", (_XLA,), _reduced_join,
         {"operator": Guard(("sum", "max"), ("min", "prod")), "axis": Guard((0,), (1,))}, NUMBERS),
    Bait("constants-only",
         ("onnxruntime/ConstantFolding", "onnxruntime/ConstantSharing", "tvm/FoldConstant", "xla/constant_folding",
          "grappler/constant_folding"), _constants_only,
         {"operator": Guard(("add", "mul"), ("sub", "maximum")), "value": Guard((2,), ("max", "min", -1, "tiny"))},
         NUMBERS),
    Bait("cumsum-of-constant", (_INDUCTOR + "pointless_cumsum_replacement", _XLA), _scanned_constant,
         {"value": Guard((1.0,), (0.1, 1e30, 0.0)), "axis": Guard((0, 1), (-1,))}, NUMBERS),
    Bait("scatter-into-constant", (_INDUCTOR + "scatter_upon_const_tensor",), _scattered,
         {"value": Guard((0.0,), (1.0,)), "count": Guard((1,), (2,))}, NUMBERS),
)  # fmt: skip
