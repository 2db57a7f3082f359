"""Normalisations written with reductions, with what goes before and after them."""

from __future__ import annotations

from generators.baits.bait import Bait, Guard, Pattern
from generators.ops.elementwise.scalars import NEAR

_FLOATS = Guard(("float32",), ("float64", "float16"))
_ORT, _GRAPPLER, _XLA = "onnxruntime/", "grappler/", "xla/algsimp"
EPSILONS = Guard((1e-5, 1e-12), (0.0, 1.0))


def _layer_norm(
    p: Pattern,
    square: str,
    exponent: float,
    epsilon: float,
    divided: str,
    affine: str,
    axes: tuple[int, ...],
    cast: str,
    shape: tuple[int, ...],
    order: str,
) -> str:
    """(x - mean) / sqrt(mean((x - mean)^2) + e) g + b, in the ways in which exporters write it: of an image, of one row
    (where all has as many dimensions), and of rows of one element, which scale and bias make longer."""
    x = p.input(*shape)
    axes = axes if max(axes) < len(shape) else (-1,)
    x = p.cast(x, to="float64") if cast == "around" else x
    kind = "float64" if cast == "around" else p.dtype
    mean = p.mean(x, axes=axes, keepdims=True)
    centred = p.sub(x, mean)
    again = p.sub(x, mean) if square == "two differences" else centred
    squared = {
        "power": lambda: p.pow(again, p.constant(exponent, dtype=kind)),
        "two differences": lambda: p.pow(again, p.constant(exponent, dtype=kind)),
        "product": lambda: p.mul(centred, again),
        "square": lambda: p.square(again),
        "variance": lambda: centred,
    }[square]()
    spread = (
        p.variance(x, axes=axes, keepdims=True) if square == "variance" else p.mean(squared, axes=axes, keepdims=True)
    )
    root = p.sqrt(p.add(spread, p.constant(epsilon, dtype=kind)))
    result = p.div(centred, root) if divided == "divided" else p.mul(centred, p.reciprocal(root))
    result = p.cast(result, to=p.dtype) if cast == "around" else result
    if affine == "none":
        return result
    sizes = {"row": (8,), "full": (3, 8), "scalar": (1,)}[affine]
    scale, bias = p.weight(*sizes), p.weight(*sizes)
    if order == "first":
        return p.add(bias, p.mul(scale, result))
    return p.add(p.mul(result, scale), bias)


def _rms_norm(p: Pattern, exponent: float, epsilon: float, form: str, scale: str, axes: tuple[int, ...]) -> str:
    """x / sqrt(mean(x^2) + e) g."""
    x = p.input(2, 3, 8)
    squared = p.pow(x, p.constant(exponent)) if form != "product" else p.mul(x, x)
    root = p.sqrt(p.add(p.mean(squared, axes=axes, keepdims=True), p.constant(epsilon)))
    if form == "reciprocal":
        result = p.mul(x, p.reciprocal(root))
    elif form == "rsqrt":
        result = p.mul(x, p.rsqrt(p.add(p.mean(squared, axes=axes, keepdims=True), p.constant(epsilon))))
    else:
        result = p.div(x, root)
    if scale == "none":
        return result
    g = p.weight(*{"row": (8,), "full": (3, 8), "scalar": ()}[scale])
    return p.mul(result, g) if form != "scale first" else p.mul(g, result)


def _skip(p: Pattern, kind: str, second: tuple[int, ...], bias: str, also: str, scale: str) -> str | tuple[str, ...]:
    """A sum of two, or of two and a bias, that is normalised; the sum may be needed, too. Of a scale of equal numbers
    forms of a model make one of one number."""
    x = p.input(2, 3, 8)
    x = p.matmul(x, p.weight(2, 8, 8)) if bias == "product" else x
    x = p.add(x, p.weight(8)) if bias in ("first", "both", "product") else x
    total = p.add(x, p.input(*second))
    total = p.add(total, p.weight(8)) if bias in ("last", "both") else total
    g = p.constant(1.5, 8) if scale == "alike" else p.weight(8)
    if kind == "layer":
        result = p.layer_norm(total, g, p.weight(8), epsilon=0.0009765625)
    else:
        result = p.rms_norm(total, g, epsilon=0.0009765625)
    return (result, total) if also == "also" else result


def _softmax(p: Pattern, shifted: str, axis: int, divided: str, log: str) -> str:
    """exp(x - max) / sum(exp(x - max)): overflows without the shift."""
    x = p.input(2, 3, 4)
    x = p.sub(x, p.max(x, axes=(axis,), keepdims=True)) if shifted == "shifted" else x
    e = p.exp(x)
    total = p.sum(e, axes=(axis,), keepdims=True)
    if log == "log":
        return p.sub(x, p.log(total))
    return p.div(e, total) if divided == "divided" else p.mul(e, p.reciprocal(total))


def _scaled_softmax(p: Pattern, scale: float, operator: str, shape: tuple[int, ...], axis: int, added: str) -> str:
    """softmax(s x), which inductor computes with another shift: a negative, a zero or an infinite scale."""
    x, c = p.input(2, 3, 4), p.constant(scale, *shape)
    x = p.apply(operator, x, c)
    x = p.sub(x, p.max(x, axes=(axis,), keepdims=True)) if added == "shifted" else x
    x = p.add(x, p.input(2, 1, 4)) if added == "bias" else x
    return p.softmax(x, axis=axis)


def _mean_by_sum(p: Pattern, count: float, axes: tuple[int, ...], operator: str) -> str:
    x = p.sum(p.input(2, 3, 4), axes=axes, keepdims=False)
    return p.div(x, p.constant(count)) if operator == "div" else p.mul(x, p.constant(1 / count))


def _variance_by_squares(p: Pattern, form: str) -> str:
    """mean(x^2) - mean(x)^2, which cancels."""
    x = p.input(2, 3, 4)
    mean = p.mean(x, axes=(1,), keepdims=True)
    if form == "centred":
        return p.mean(p.square(p.sub(x, mean)), axes=(1,), keepdims=True)
    return p.sub(p.mean(p.square(x), axes=(1,), keepdims=True), p.square(mean))


def _extreme_of(p: Pattern, function: str, reduction: str, axis: int) -> str:
    """The greatest of a monotone function is the function of the greatest, or of the least."""
    return p.apply(reduction, p.apply(function, p.input(2, 3, 4)), axes=(axis,), keepdims=False)


def _norm(p: Pattern, form: str, epsilon: float, shape: tuple[int, ...], axes: str, keepdims: bool) -> str:
    """x / |x|."""
    rank = len(shape)
    x = p.input(*(shape if keepdims else (4,) * rank))  # so that what is left goes with it
    over = {"axes": {"last": (rank - 1,), "first": (0,), "last two": (rank - 2, rank - 1)}[axes], "keepdims": keepdims}
    if form == "norm":
        return p.div(x, p.maximum(p.l2_norm(x, **over), p.constant(epsilon)))
    total = p.sum(p.square(x), **over)
    if form == "sqrt":
        return p.div(x, p.sqrt(p.add(total, p.constant(epsilon))))
    return p.mul(x, p.rsqrt(p.maximum(total, p.constant(epsilon))))


def _batch_norm_then(p: Pattern, before: str, after: str, epsilon: float) -> str:
    x = p.input(2, 4, 3, 3)
    x = {"nothing": lambda: x, "transpose": lambda: p.transpose(x, perm=(0, 1, 3, 2)), "pad": lambda: p.pad(
        x, pads=(0, 0, 0, 0, 1, 1, 1, 1), value=0.0), "relu": lambda: p.relu(x)}[before]()  # fmt: skip
    x = p.batch_norm(x, *(p.weight(4) for _ in range(3)), p.weight(4, domain=(0, 4)), epsilon=epsilon)
    if after == "twice":
        return p.batch_norm(x, *(p.weight(4) for _ in range(3)), p.weight(4, domain=(0, 4)), epsilon=epsilon)
    return {"nothing": lambda: x, "relu": lambda: p.relu(x), "add": lambda: p.add(x, p.input(2, 4, 3, 3)),
            "conv": lambda: p.conv2d(x, p.weight(4, 4, 1, 1), p.weight(4), stride=(1, 1), dilation=(1, 1),
                                     padding=(0, 0, 0, 0), groups=1)}[after]()  # fmt: skip


_REDUCED = Guard(((-1,),), ((1, 2), (1,), (2,)))


_FAR = {
    "base": Guard((10000.0, 100.0), (0.0, 1e6)),
    "shape": Guard(((2, 4, 4, 3),), ((8, 3, 3, 1), (2, 4, 4, 4, 3))),
}


def _far_from_zero(p: Pattern, base: float, shape: tuple[int, ...]) -> str:
    """Statistics of a batch of numbers that lie close together: squares less the square of the mean keep none of it."""
    channels = shape[1]
    x = p.add(p.input(*shape), p.constant(base, 1))
    return p.batch_norm_training(x, p.weight(channels), p.weight(channels), epsilon=0.0009765625)


def _fused_far_from_zero(p: Pattern, output: str, base: float, shape: tuple[int, ...]) -> str:
    """The same where one operator has all results, with its channels last."""
    x = p.add(p.input(*shape), p.constant(base, 1))
    given = (*(p.weight(shape[-1]) for _ in range(3)), p.weight(shape[-1], domain=(0, 4)))
    return p.fused_batch_norm(x, *given, training=True, output=output, epsilon=0.0009765625, last=3)


BAITS = (
    Bait("layer-norm-by-parts", (_ORT + "LayerNormFusionL1", _ORT + "LayerNormFusionL2"), _layer_norm,
         {"square": Guard(("power", "two differences", "product"), ("square", "variance")),
          "exponent": Guard((2.0,), (2.0 * NEAR, 3.0)), "epsilon": EPSILONS,
          "divided": Guard(("divided",), ("times",)), "affine": Guard(("row",), ("none", "full", "scalar")),
          "axes": Guard(((-1,), (2,)), ((1, 2), (1,))), "cast": Guard(("none",), ("around",)),
          "shape": Guard(((2, 3, 8),), ((2, 3, 1), (8,))), "order": Guard(("last", "first"))}, _FLOATS),
    Bait("rms-norm-by-parts", (_ORT + "SimplifiedLayerNormFusion",), _rms_norm,
         {"exponent": Guard((2.0,), (2.0 * NEAR, 3.0)), "epsilon": EPSILONS,
          "form": Guard(("divided", "scale first", "reciprocal"), ("product", "rsqrt")),
          "scale": Guard(("row",), ("none", "full", "scalar")), "axes": _REDUCED}, _FLOATS),
    Bait("skip-layer-norm", (_ORT + "SkipLayerNormFusion", _ORT + "BiasSkipLayerNormFusion"), _skip,
         {"kind": Guard(("layer", "rms")), "second": Guard(((2, 3, 8),), ((1, 3, 8), (3, 8), (8,), (2, 1, 8))),
          "bias": Guard(("none", "first", "last", "product"), ("both",)),
          "also": Guard(("alone",), ("also",)), "scale": Guard(("row",), ("alike",))}, _FLOATS),
    Bait("softmax-by-parts", (_XLA, "torch-inductor/prepare_softmax"), _softmax,
         {"shifted": Guard(("shifted",), ("plain",)), "axis": Guard((-1, 1), (0,)),
          "divided": Guard(("divided",), ("times",)), "log": Guard(("none",), ("log",))}),
    Bait("softmax-of-scaled",
         ("torch-inductor/mul_softmax_pattern", "torch-inductor/div_softmax_pattern", _ORT + "BiasSoftmaxFusion"),
         _scaled_softmax,
         {"scale": Guard((2.0, 0.125), (0.0, -1.0, 1.0, "max", float("inf"), float("nan"))),
          "operator": Guard(("mul", "div")), "shape": Guard(((), (1,)), ((4,), (3, 1), (2, 1, 1))),
          "axis": Guard((-1,), (1,)), "added": Guard(("none", "shifted"), ("bias",))}),
    Bait("mean-by-sum", (_XLA, _GRAPPLER + "ReplaceMul"), _mean_by_sum,
         {"count": Guard((4.0,), (3.0, 1.0, 12.0)), "axes": Guard(((2,),), ((1, 2), (0,))),
          "operator": Guard(("div", "mul"))}),
    Bait("variance-by-squares", (_XLA,), _variance_by_squares, {"form": Guard(("centred", "squares"))}),
    Bait("extreme-of-monotone", (_GRAPPLER + "OptimizeMaxOrMinOfMonotonic", _XLA), _extreme_of,
         {"function": Guard(("sigmoid", "exp", "neg", "relu", "tanh", "sqrt", "log"), ("square", "abs", "reciprocal")),
          "reduction": Guard(("max", "min"), ("sum",)), "axis": Guard((2,), (0,))}),
    Bait("l2-norm-by-parts", (_XLA, "tflite/L2NormalizePattern"), _norm,
         {"form": Guard(("norm", "rsqrt", "sqrt")), "epsilon": Guard((1e-12,), (0.0, 1.0)),
          "axes": Guard(("last",), ("first", "last two")), "keepdims": Guard((True,), (False,)),
          "shape": Guard(((2, 8),), ((2, 1, 2, 2, 4),))}),
    Bait("batch-norm-between", (_GRAPPLER + "remapping", _ORT + "TransposeOptimizer", _ORT + "ConvBNFusion", _XLA),
         _batch_norm_then,
         {"before": Guard(("nothing", "transpose"), ("pad", "relu")),
          "after": Guard(("relu", "add"), ("twice", "conv")),
          "epsilon": Guard((0.0009765625,), (1.0,))}, _FLOATS),
    Bait("batch-norm-far-from-zero", (_XLA,), _far_from_zero,
         _FAR, Guard(("float32",))),
    Bait("fused-batch-norm-far-from-zero", (_XLA,), _fused_far_from_zero,
         {"output": Guard(("variance", "y", "mean")), **_FAR}, Guard(("float32",))),
)  # fmt: skip
