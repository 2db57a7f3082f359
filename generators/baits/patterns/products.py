"""Matrix products: with a bias, a scale, a transposition, an activation around them; sums, chains and pairs of them."""

from __future__ import annotations

from typing import Any

from generators.baits.bait import Bait, Guard, Pattern
from generators.ops.elementwise.scalars import NEAR

_FLOATS = Guard(("float32",), ("float64", "float16"))
_ORT, _GRAPPLER, _XLA, _TVM, _INDUCTOR = "onnxruntime/", "grappler/", "xla/", "tvm/", "torch-inductor/"
_TFLITE = "tflite/"
RANKS = Guard(((4, 3),), ((2, 4, 3), (1, 3), (0, 3)))
"""Of what is multiplied by a matrix of shape (3, 5)."""
BIASES = Guard(((5,),), ((1, 5), (), (1,), (4, 5), (4, 1), (1, 1, 5)))
ACTIVATIONS = Guard(
    ("relu", "tanh", "sigmoid", "gelu", "gelu_tanh", "leaky_relu", "elu"),
    ("hard_sigmoid", "silu", "hard_swish", "relu6", "softplus", "exp", "clip", "softmax", "square"),
)


def activated(p: Pattern, name: str, x: str) -> str:
    """An activation with its usual attributes."""
    attributes: dict[str, dict[str, Any]] = {
        "leaky_relu": {"alpha": 0.125},
        "elu": {"alpha": 1.0},
        "clip": {"min": -0.5, "max": 1.5},
        "softmax": {"axis": -1},
    }
    return p.apply(name, x, **attributes.get(name, {}))


def _biased(p: Pattern, x: tuple[int, ...], bias: tuple[int, ...], order: str) -> str:
    product, b = p.matmul(p.input(*x), p.weight(3, 5)), p.weight(*bias)
    return p.add(*((product, b) if order == "right" else (b, product)))


def _scaled(p: Pattern, scale: Any, where: str, operator: str, shape: tuple[int, ...]) -> str:
    """A scalar before or after a product is its alpha."""
    x, y, c = p.input(2, 4, 3), p.input(2, 3, 5), p.constant(scale, *shape)
    x = p.apply(operator, x, c) if where in ("left", "both") else x
    y = p.apply(operator, y, c) if where in ("right", "both") else y
    product = p.matmul(x, y)
    return p.apply(operator, product, c) if where == "after" else product


def _transposed(p: Pattern, left: tuple[int, ...], right: tuple[int, ...], role: str, cast: str) -> str:
    """Operands that are transposed first: in the last two axes, or in others."""

    def turned(perm: tuple[int, ...], shape: tuple[int, ...]) -> str:
        before = tuple(shape[perm.index(axis)] for axis in range(3))
        x = p.weight(*before) if role == "weight" else p.input(*before)
        x = p.cast(x, to="float64") if cast == "before" else x
        x = p.transpose(x, perm=perm) if perm != (0, 1, 2) else x
        return p.cast(x, to="float64") if cast == "after" else x

    return p.matmul(turned(left, (2, 4, 3)), turned(right, (2, 3, 5)))


def _turned_by_vector(p: Pattern, shape: tuple[int, ...], side: str, perm: tuple[int, ...]) -> str:
    """A matrix that is turned, and a vector: of as many rows as columns, which hides a turn that is left out."""
    perm = perm if len(shape) == 3 else tuple(axis - 1 for axis in perm[1:])
    x = p.transpose(p.input(*shape), perm=perm)
    if side == "right":
        return p.matrix_vector(x, p.input(p.shape(x)[-1]))
    return p.vector_matrix(p.input(p.shape(x)[-2]), x)


def _gemm(p: Pattern, alpha: float, beta: float, transposed: str) -> str:
    x = p.transpose(p.input(3, 4), perm=(1, 0)) if transposed in ("left", "both") else p.input(4, 3)
    y = p.transpose(p.weight(5, 3), perm=(1, 0)) if transposed in ("right", "both") else p.weight(3, 5)
    product = p.addmm(x, y, p.weight(4, 5), alpha=alpha, beta=beta)
    return p.transpose(product, perm=(1, 0)) if transposed == "result" else product


def _gemm_sum(p: Pattern, beta: float, added: tuple[int, ...], bias: str) -> str:
    """A product and a sum that becomes its bias; which it may have already."""
    x, y = p.input(4, 3), p.weight(3, 5)
    if bias == "none":
        return p.add(p.matmul(x, y), p.weight(*added))
    return p.add(
        p.addmm(x, y, p.constant(0.0 if bias == "zero" else 1.0, 4, 5), alpha=1.0, beta=beta), p.weight(*added)
    )


def _summed(p: Pattern, part: str, side: str, count: int) -> str:
    """A product in a sum of several, of a value that is one of several results: ONNX' Gemm without a bias, and Sum."""
    x = p.input(6, 3)
    x = p.split(x, axis=0, sizes=(2, 2, 2), index=int(part)) if part else x
    product = p.matmul(x, p.weight(3, 5)) if side == "left" else p.matmul(p.weight(4, 6 if not part else 2), x)
    return p.add_n(product, *[p.input(*p.shape(product)) for _ in range(count)])


def _activated(p: Pattern, activation: str, kind: str) -> str:
    if kind == "gemm":
        x = p.linear(p.input(4, 3), p.weight(5, 3), p.weight(5))
    elif kind == "matmul":
        x = p.matmul(p.input(2, 4, 3), p.weight(3, 5))
    else:
        x = p.add(p.matmul(p.input(2, 4, 3), p.weight(3, 5)), p.weight(5))
    return activated(p, activation, x)


def _normalised(p: Pattern, between: str, epsilon: float, then: str) -> str:
    """A batch normalisation after a product: folded into the weights, where its channels are the columns."""
    x = p.matmul(p.input(5 if between.startswith("rows") else 4, 3), p.weight(3, 5))
    x = {
        "nothing": lambda: x,
        "reshape": lambda: p.reshape(x, shape=(4, 5, 1)),
        "transpose": lambda: p.transpose(p.reshape(x, shape=(2, 2, 5)), perm=(0, 2, 1)),
        "relu": lambda: p.relu(x),
        "rows turned": lambda: p.transpose(x, perm=(1, 0)),
        "rows reshaped": lambda: p.reshape(x, shape=(1, 5, 5)),
    }[between]()
    variance = p.weight(5, domain=(0, 4))
    x = p.batch_norm(x, p.weight(5), p.weight(5), p.weight(5), variance, epsilon=epsilon)
    return x if then == "nothing" else p.neg(x)


def _parallel(p: Pattern, widths: tuple[int, ...], bias: str, activation: str, x: tuple[int, ...]) -> tuple[str, ...]:
    """Products of one value by several weights: they can be joined."""
    value = p.input(*x)
    found = []
    for width in widths:
        one = p.matmul(value, p.weight(3, width))
        one = p.add(one, p.weight(width)) if bias == "all" or (bias == "first" and not found) else one
        found.append(p.apply(activation, one) if activation else one)
    return tuple(found)


def _parallel_same(p: Pattern, kind: str) -> tuple[str, ...]:
    """Weights that are one, or of ranks that differ."""
    x, w = p.input(2, 4, 3), p.weight(3, 5)
    other = {"same": lambda: w, "batched": lambda: p.weight(2, 3, 5), "one": lambda: p.weight(1, 3, 5)}[kind]()
    return p.matmul(x, w), p.matmul(x, other)


def _chained(p: Pattern, shapes: tuple[tuple[int, int], ...], batch: tuple[int, ...], order: str) -> str:
    """(A B) C or A (B C)."""
    a, b, c = p.input(*batch, *shapes[0]), p.weight(*shapes[1]), p.weight(*shapes[2])
    return p.matmul(p.matmul(a, b), c) if order == "left" else p.matmul(a, p.matmul(b, c))


def _grown(p: Pattern, operator: str, x: tuple[int, ...], bias: str) -> str:
    """(x + b) W, which is x W + b W where the sum is no larger than x."""
    left = p.apply(operator, p.input(*x), p.weight(3))
    left = p.reshape(left, shape=(1, 3)) if len(x) < 2 else left
    product = p.matmul(left, p.weight(3, 5))
    return p.add(product, p.weight(5)) if bias == "vector" else product


def _of_sum(p: Pattern, shape: tuple[int, ...], role: str) -> str:
    """x (A + B), which is x A + x B."""
    other = p.input(*shape) if role == "input" else p.weight(*shape)
    return p.matmul(p.input(4, 3), p.add(p.weight(3, 5), other))


def _pair_sum(p: Pattern, second: tuple[int, int], operator: str, shared: str) -> str:
    """A B + C D, which is one product of joined operands."""
    a, b = p.input(4, 3), p.input(3, 5)
    c = a if shared == "left" else p.input(4, second[0])
    d = b if shared == "right" else p.input(3 if shared == "left" else second[0], second[1])
    if shared == "right":
        c = p.input(4, 3)
    return p.apply(operator, p.matmul(a, b), p.matmul(c, d))


def _batch(p: Pattern, batch: tuple[int, ...], m: int, k: int, n: int) -> str:
    """Products of a batch of one, of vectors, of outer form."""
    return p.matmul(p.input(*batch, m, k), p.input(*batch, k, n))


def _special(p: Pattern, kind: str, side: str) -> str:
    """By a matrix of zeros, by the identity, by a diagonal."""
    values = {
        "zeros": [[0.0] * 3] * 3,
        "identity": [[1.0, 0, 0], [0, 1, 0], [0, 0, 1]],
        "ones": [[1.0] * 3] * 3,
        "diagonal": [[2.0, 0, 0], [0, 0.5, 0], [0, 0, -1]],
    }
    c = p.constant(values[kind])
    return p.matmul(p.input(3, 3), c) if side == "right" else p.matmul(c, p.input(3, 3))


def _taken(p: Pattern, axis: int, indices: tuple[int, ...]) -> str:
    """Rows of one operand that are taken before the product, or columns of the other."""
    chosen = p.constant(indices, len(indices), dtype="int64", domain=(0, 2))
    if axis == 0:
        return p.take(p.matmul(p.input(4, 3), p.weight(3, 5)), chosen, axis=0)
    return p.matmul(p.input(4, len(indices)), p.take(p.weight(3, 5), chosen, axis=0))


def _taken_columns(p: Pattern, count: int, rank: int) -> str:
    """x take(W, i, axis=1), as adapters of low rank have it."""
    indices = p.input(count, dtype="int64", domain=(0, 2))
    x = p.input(4, 3) if rank == 2 else p.input(count, 1, 3)
    if rank == 2:
        return p.matmul(x, p.take(p.weight(3, 5), indices, axis=1))
    return p.matmul(x, p.take(p.weight(4, 3, 5), indices, axis=0))


def _permuted_concat(p: Pattern, axis: int, perms: tuple[tuple[int, int], ...], then: str) -> str:
    parts = [p.transpose(p.weight(5, 3), perm=perm) if perm == (1, 0) else p.weight(3, 5) for perm in perms]
    joined = p.concat(*parts, axis=axis)
    return p.matmul(p.input(4, p.shape(joined)[0]), joined) if then == "matmul" else p.neg(joined)


def _linear_chain(p: Pattern, activation: str, count: int) -> str:
    x = p.input(4, 3)
    for _ in range(count):
        x = p.linear(x, p.weight(3, 3), p.weight(3))
        x = p.apply(activation, x) if activation else x
    return p.add(x, p.input(4, 3))


def _binary_after(p: Pattern, operator: str, other: tuple[int, ...], activation: str) -> str:
    """A linear layer, then another value: oneDNN's and XNNPACK's post-operators."""
    x = p.linear(p.input(4, 3), p.weight(5, 3), p.weight(5))
    x = p.apply(operator, x, p.input(*other))
    return p.apply(activation, x) if activation else x


def _reshaped_linear(p: Pattern, shape: tuple[int, ...], back: tuple[int, ...]) -> str:
    x = p.linear(p.reshape(p.input(*shape), shape=(4, 3)), p.weight(5, 3), p.weight(5))
    return p.reshape(x, shape=back)


def _multiplied_weight(p: Pattern, operator: str, constant: tuple[int, ...], value: float) -> str:
    """A product, then a constant: folded into the weights where it has a number for each column."""
    return p.apply(operator, p.matmul(p.input(4, 3), p.weight(3, 5)), p.constant(value, *constant))


def _reduced_product(p: Pattern, axes: tuple[int, ...], shape: tuple[int, ...]) -> str:
    """sum(x y), which is a product of matrices."""
    return p.sum(p.mul(p.input(4, 3), p.input(*shape)), axes=axes, keepdims=False)


_PERM = Guard(((0, 1, 2), (0, 2, 1)), ((1, 0, 2), (2, 1, 0)))
BAITS = (
    Bait("matmul-add", (_ORT + "MatMulAddFusion", _GRAPPLER + "remapping", _INDUCTOR + "addmm", _TVM + "FuseOps"),
         _biased, {"x": RANKS, "bias": BIASES, "order": Guard(("right",), ("left",))}, _FLOATS),
    Bait("matmul-scale", (_ORT + "MatMulScaleFusion", _XLA + "algsimp"), _scaled,
         {"scale": Guard((0.5, 2.0), (1.0, 0.0, NEAR, 0.1, -1.0, "max", "tiny")),
          "where": Guard(("left", "after"), ("right", "both")), "operator": Guard(("mul", "div")),
          "shape": Guard(((), (1,)), ((1, 1, 1), (2, 1, 1)))}, _FLOATS),
    Bait("matmul-transpose", (_ORT + "MatmulTransposeFusion", _TVM + "FuseTransposeMatmul", _XLA + "transpose-folding",
                              _GRAPPLER + "FoldTransposeIntoMatMul", _XLA + "batch-dot-simplification"), _transposed,
         {"left": _PERM, "right": Guard(((0, 2, 1), (0, 1, 2)), ((1, 0, 2), (2, 0, 1))),
          "role": Guard(("input",), ("weight",)), "cast": Guard(("none",), ("before", "after"))}, _FLOATS),
    Bait("vector-transpose", (_ORT + "MatmulTransposeFusion", _TVM + "FuseTransposeMatmul", _XLA + "transpose-folding",
                              _XLA + "gemv-rewriter"), _turned_by_vector,
         {"shape": Guard(((4, 4), (3, 4)), ((2, 4, 4), (2, 3, 4), (1, 4))), "side": Guard(("right", "left")),
          "perm": Guard(((0, 2, 1),), ((0, 1, 2),))}, _FLOATS),
    Bait("gemm-transpose", (_ORT + "GemmTransposeFusion", _XLA + "transpose-folding", _INDUCTOR + "addmm"), _gemm,
         {"alpha": Guard((1.0, 2.0), (1.5,)), "beta": Guard((1.0, 0.5), (-1.0, 2.0)),
          "transposed": Guard(("left", "right", "both", "result"), ("none",))}, _FLOATS),
    Bait("gemm-sum", (_ORT + "GemmSumFusion", _INDUCTOR + "addmm"), _gemm_sum,
         {"beta": Guard((1.0,), (2.0, 0.5)), "added": Guard(((5,), (4, 5)), ((1, 5), (4, 1), (2, 4, 5))),
          "bias": Guard(("zero", "none"), ("ones",))}, _FLOATS),
    Bait("matmul-sum", (_ORT + "GemmSumFusion",), _summed,
         {"part": Guard(("2", "0", ""), ("1",)), "side": Guard(("left", "right")), "count": Guard((1,), (2,))},
         _FLOATS),
    Bait("matmul-activation",
         (_ORT + "GemmActivationFusion", _ORT + "MatMulActivationFusion", _GRAPPLER + "remapping",
          _INDUCTOR + "mkldnn unary", "xnnpack/activation"), _activated,
         {"activation": ACTIVATIONS, "kind": Guard(("gemm", "matmul", "biased"))}, _FLOATS),
    Bait("matmul-batch-norm", (_ORT + "MatMul_BatchNormalization_Fusion",), _normalised,
         {"between": Guard(("nothing", "reshape", "transpose"), ("relu", "rows turned", "rows reshaped")),
          "epsilon": Guard((0.0009765625,), (1.0,)), "then": Guard(("neg",), ("nothing",))},
         _FLOATS),
    Bait("parallel-matmuls", (_TVM + "CombineParallelMatmul", _XLA + "dot-merger"), _parallel,
         {"widths": Guard(((5, 5), (5, 2, 4)), ((5,), (5, 1), (0, 5))), "bias": Guard(("none", "all"), ("first",)),
          "activation": Guard(("", "relu"), ("tanh",)), "x": Guard(((4, 3), (2, 4, 3)), ((0, 3),))}, _FLOATS),
    Bait("parallel-matmuls-shared", (_TVM + "CombineParallelMatmul", _XLA + "dot-merger"), _parallel_same,
         {"kind": Guard(("same",), ("batched", "one"))}, _FLOATS),
    Bait("matmul-chain", (_TVM + "AdjustMatmulOrder", _XLA + "algsimp", _TFLITE + "FuseMulAndFullyConnected"), _chained,
         {"shapes": Guard((((2, 9), (9, 3), (3, 4)), ((9, 2), (2, 9), (9, 2))),
                          (((3, 3), (3, 3), (3, 3)), ((1, 5), (5, 1), (1, 5)), ((4, 0), (0, 3), (3, 2)),
                           ((4, 1), (1, 2), (2, 4)))),
          "batch": Guard(((), (4,)), ((2, 3),)), "order": Guard(("left", "right"))}, _FLOATS),
    Bait("matmul-of-grown", (_TFLITE + "FuseAddAndFullyConnected", _TFLITE + "FuseMulAndFullyConnected"), _grown,
         {"x": Guard(((4, 3), (2, 4, 3)), ((4, 1), (3,), (1,), ())), "operator": Guard(("add", "mul"), ("sub",)),
          "bias": Guard(("vector",), ("none",))}, _FLOATS),
    Bait("matmul-of-sum", (_TVM + "ExpandMatmulOfSum", _XLA + "algsimp"), _of_sum,
         {"shape": Guard(((3, 5),), ((5,), (1, 5), (3, 1), (2, 3, 5))), "role": Guard(("weight",), ("input",))},
         _FLOATS),
    Bait("sum-of-matmuls", (_INDUCTOR + "mm_plus_mm", _XLA + "algsimp"), _pair_sum,
         {"second": Guard(((3, 5), (7, 5)), ((1, 5),)), "operator": Guard(("add",), ("sub", "mul")),
          "shared": Guard(("none", "left"), ("right",))}, _FLOATS),
    Bait("matmul-of-one", (_INDUCTOR + "bmm_to_mm", _XLA + "algsimp", _XLA + "batch-dot-simplification",
                           _XLA + "gemv-rewriter"), _batch,
         {"batch": Guard(((1,), ()), ((2,), (1, 1), (0,), (2, 1))), "m": Guard((4, 1), (0,)),
          "k": Guard((3, 1), (0, 33)),
          "n": Guard((5, 1), (17,))}, _FLOATS),
    Bait("matmul-constant", (_XLA + "algsimp", _GRAPPLER + "constant_folding"), _special,
         {"kind": Guard(("zeros", "identity"), ("ones", "diagonal")), "side": Guard(("right", "left"))}, _FLOATS),
    Bait("matmul-take", (_XLA + "algsimp", _TVM + "ReorderTakeAfterMatmul"), _taken,
         {"axis": Guard((0, 1)), "indices": Guard(((0, 1, 2), (1,)), ((2, 2), (2, 0, 1)))}, _FLOATS),
    Bait("matmul-take-columns", (_TVM + "ReorderTakeAfterMatmul",), _taken_columns,
         {"count": Guard((2, 1), (3, 0)), "rank": Guard((2, 3))}, _FLOATS),
    Bait("concat-of-transposed", (_TVM + "ReorderPermuteDimsAfterConcat", _XLA + "algsimp"), _permuted_concat,
         {"axis": Guard((1, 0), (-1,)), "perms": Guard((((1, 0), (1, 0)),), (((1, 0), (0, 1)), ((1, 0),))),
          "then": Guard(("matmul",), ("neg",))}, _FLOATS),
    Bait("linear-chain", (_INDUCTOR + "mkldnn linear", _GRAPPLER + "remapping", _TVM + "FuseOps"), _linear_chain,
         {"activation": Guard(("relu", ""), ("tanh", "gelu")), "count": Guard((1, 2), (3,))}, _FLOATS),
    Bait("linear-then-binary", (_INDUCTOR + "mkldnn binary", _GRAPPLER + "remapping", "onednn/post-ops"), _binary_after,
         {"operator": Guard(("add", "mul"), ("sub", "div", "maximum")),
          "other": Guard(((4, 5),), ((5,), (4, 1), (), (2, 4, 5))), "activation": Guard(("", "relu"), ("tanh",))},
         _FLOATS),
    Bait("linear-reshaped", (_INDUCTOR + "reshape_linear_reshape", _XLA + "algsimp"), _reshaped_linear,
         {"shape": Guard(((2, 2, 3), (4, 3)), ((3, 4), (12,))), "back": Guard(((2, 2, 5), (4, 5)), ((20,), (5, 4)))},
         _FLOATS),
    Bait("matmul-then-constant", (_INDUCTOR + "folded_op", _GRAPPLER + "MulConvPushDown", _XLA + "algsimp"),
         _multiplied_weight,
         {"operator": Guard(("mul", "add"), ("sub", "div")), "constant": Guard(((5,), ()), ((1, 5), (4, 1), (4, 5))),
          "value": Guard((2.0, 1.0), (0.0, NEAR, 1e20))}, _FLOATS),
    Bait("sum-of-product", (_XLA + "algsimp",), _reduced_product,
         {"axes": Guard(((1,), (0,)), ((0, 1),)), "shape": Guard(((4, 3),), ((3,), (4, 1)))}, _FLOATS),
)  # fmt: skip
