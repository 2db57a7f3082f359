"""Reductions that fusion joins: several of one value, or of values that one loop makes; beside each other, over each
other, and what is left of the value less them; and means of many rows."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from generators.baits.bait import Bait, Guard, Pattern, limit
from generators.ops.slots import CLASSES

_FUSED = ("torch-inductor/fusion of reductions", "xla/multi-output fusion", "tvm/FuseOps")
_KINDS = Guard(("sum", "max"), ("min", "mean", "prod", "logsumexp"))
_FLOATS = Guard(("float32", "bfloat16", "float16"), ("float64",))
_SHAPES = Guard(((32, 3), (3, 37)), ((9, 3), (16, 2), (2, 64), (20, 40), (1, 5), (37, 1)))
"""Of rows that fill a vector, and those beside."""


def _reduced(p: Pattern, kind: str, x: str, axis: int, keepdims: bool) -> str:
    """Over one axis."""
    return p.apply(kind, x, axes=(axis,), keepdims=keepdims)


def _twice(p: Pattern, kind: str, other: str, axis: int, keepdims: str, shape: tuple[int, ...]) -> tuple[str, ...]:
    """Two results from one loop, which may be the same."""
    x = p.input(*shape)
    first, second = {"differ": (False, True), "without": (False, False), "with": (True, True)}[keepdims]
    return _reduced(p, kind, x, axis, first), _reduced(p, kind if other == "same" else other, x, axis, second)


def _rest(p: Pattern, kind: str, left: str, axis: int, shape: tuple[int, ...]) -> tuple[str, ...]:
    """A reduction, and a value less what is reduced so, which takes a second pass."""
    x = p.input(*shape)
    first, second = _reduced(p, kind, x, axis, False), _reduced(p, kind, x, axis, True)
    return p.add(first, p.constant(1)), p.apply(left, x, second)


def _over(p: Pattern, inner: str, outer: str, axes: tuple[int, int], keepdims: bool) -> tuple[str, ...]:
    """Of a reduction, over another axis: one reduction over both, where both are of one kind."""
    x = _reduced(p, inner, p.input(3, 5, 37), axes[0], keepdims)
    return (_reduced(p, outer, x, axes[1], False),)


def _both_ways(p: Pattern, kind: str, shape: tuple[int, ...], also: str) -> tuple[str, ...]:
    """Along each axis of one value that is computed before: loops in two orders."""
    x = p.square(p.input(*shape))
    found = _reduced(p, kind, x, 0, False), _reduced(p, kind, x, 1, False)
    return (*found, x) if also == "itself" else found


def _bias_ignored(p: Pattern, beta: float, rows: int, columns: int, bias: Any) -> str:
    """A product with a bias that a beta of 0 leaves out, whatever it holds; of one row it is no product any more."""
    return p.addmm_bias(p.input(rows, 4), p.input(4, columns), p.constant(bias, columns), alpha=1.0, beta=beta)


def _softmax_of_scaled(p: Pattern, softmax: str, scaled: str, scale: float, of: str) -> str:
    """The greatest element is taken away before the scale, where it was after it: numbers so far apart that their
    difference overflows are no further apart than the scale leaves them."""
    ends = np.array([[limit(p.dtype, "max"), limit(p.dtype, "min"), 0], [1, limit(p.dtype, "min"), 2]])
    x = p.constant(ends, 2, 3) if of == "extremes" else p.input(2, 3)
    made = {
        "number": lambda: p.mul_scalar(x, scalar=scale),
        "tensor": lambda: p.mul(x, p.constant(scale)),
        "rows": lambda: p.mul(p.constant(scale, 2, 1), x),
        "by a number": lambda: p.div_scalar(x, scalar=1 / scale if scale else math.inf),
        "by a tensor": lambda: p.div(x, p.constant(1 / scale if scale else math.inf)),
    }[scaled]()
    return p.apply(softmax, made, axis=1)


def _many_rows(p: Pattern, kind: str, rows: int, of: int) -> str:
    """Of whole numbers, a one in so many, whose sum is exact in any order, by their count: one that bfloat16 has no
    number for, where it is counted in the dtype itself."""
    data = p.constant((np.arange(rows) % of == 0).astype(np.float64), rows)
    if kind == "sorted_segment_mean":
        return p.apply(kind, data, sizes=(rows,))
    return p.apply(kind, data, p.constant(0, rows, dtype="int32", domain=(-1, CLASSES - 1)), segments=CLASSES)


def _then_constant(p: Pattern, made: str, operator: str, axis: int, constant: str, order: str) -> str:
    """What is done to each element behind another operator, in one pass with it."""
    x = p.input(2, 3, 4)
    if made in ("sum", "mean", "max", "l2_norm"):
        x = p.apply(made, x, axes=(axis,), keepdims=True)
    elif made == "sum-flat":
        x = p.sum(x, axes=(axis,), keepdims=False)
    elif made in ("product", "product-limited"):
        x = p.matmul(p.input(3, 4), p.weight(4, 5))
        x = p.relu(x) if made == "product-limited" else x
    else:
        x = _MADE[made](p, x, axis)
    shape = p.shape(x)
    own = [size if place == len(shape) - 2 else 1 for place, size in enumerate(shape)]
    one = [1] * len(shape)
    shapes = {"middle": own, "last": shape[-1:], "number": (), "ones": one, "grown": [1, *one], "first": [2, *one]}
    if constant == "equal":
        numbers = np.full([2, *one], 3.0)
    else:
        numbers = _STEPS[: int(np.prod(shapes[constant]))].reshape(shapes[constant])
    parts = (x, p.constant(numbers))
    return p.apply(operator, *(parts if order == "right" else parts[::-1]))


_STEPS = np.array([3, 5, 2, 7, 4, 6, 1, 8.0])
_MADE: dict[str, Any] = {
    "part": lambda p, x, axis: p.unstack(x, axis=axis, pick=1),
    "turned": lambda p, x, axis: p.transpose(x, perm=(2, 1, 0)),
    "reshaped": lambda p, x, axis: p.reshape(x, shape=(6, 4)),
    "softmax": lambda p, x, axis: p.softmax(x, axis=axis),
    "repeated": lambda p, x, axis: p.concat(x, x, axis=axis),
    "sigmoid": lambda p, x, axis: p.sigmoid(x),
    "normalised": lambda p, x, axis: p.layer_norm(x, p.weight(4), p.weight(4), axis=2, epsilon=0.0009765625),
}


BAITS = (
    Bait("reduced-twice", _FUSED, _twice,
         {"kind": _KINDS, "other": Guard(("same", "sum"), ("max", "mean")), "axis": Guard((0,), (1,)),
          "keepdims": Guard(("differ", "without"), ("with",)), "shape": _SHAPES}, _FLOATS),
    Bait("reduced-and-rest", _FUSED, _rest,
         {"kind": _KINDS, "left": Guard(("sub", "mul"), ("div", "maximum")), "axis": Guard((0,), (1,)),
          "shape": _SHAPES}, _FLOATS),
    Bait("reduced-over-reduced", ("xla/algsimp", "torch-inductor/fusion of reductions"), _over,
         {"inner": _KINDS, "outer": _KINDS, "axes": Guard(((2, 1), (0, 0)), ((1, 0), (2, 0))),
          "keepdims": Guard((True,), (False,))}, _FLOATS),
    Bait("reduced-both-ways", _FUSED, _both_ways,
         {"kind": _KINDS, "shape": _SHAPES, "also": Guard(("nothing", "itself"))}, _FLOATS),
    Bait("bias-by-nothing", ("torch-inductor/addmm", "onnxruntime/MatMulAddFusion"), _bias_ignored,
         {"beta": Guard((0.0,), (1.0, 0.5)), "rows": Guard((1,), (2,)), "columns": Guard((4, 1), (17, 3)),
          "bias": Guard((float("nan"),), (float("inf"), 1.0))}),
    *(
        Bait(f"{made}-then-constant", ("openvino/fused operations", "tflite/fused activations", "tvm/FuseOps"),
             partial(_then_constant, made=made),
             {"operator": Guard(("add", "mul"), ("sub", "div", "maximum")), "axis": Guard((2, 0), (1,)),
              "constant": Guard(("middle", "last"), ("number", "ones", "first", "equal", "grown")),
              "order": Guard(("right",), ("left",))}, _FLOATS)
        for made in ("sum", "sum-flat", "mean", "max", "l2_norm", "product", "product-limited", *_MADE)
    ),
    Bait("softmax-of-scaled-extremes",
         ("torch-inductor/mul_softmax_pattern", "torch-inductor/div_softmax_pattern"), _softmax_of_scaled,
         {"softmax": Guard(("softmax", "log_softmax")),
          "scaled": Guard(("number", "tensor", "rows", "by a number", "by a tensor")),
          "scale": Guard((0.125, -0.125), (2.0**-12, 0.0)), "of": Guard(("extremes",), ("numbers",))}),
    Bait("mean-of-many-rows", ("tensorflow/counts of segments",), _many_rows,
         {"kind": Guard(("segment_mean_dropping", "sorted_segment_mean", "segment_sqrt_n_dropping")),
          "rows": Guard((1024, 8), (256, 257, 512, 2000)), "of": Guard((8,), (2, 4))}, _FLOATS),
)  # fmt: skip
