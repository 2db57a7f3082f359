"""Convolutions with what is folded into them: sums, products, normalisations, activations, paddings, pooling."""

from __future__ import annotations

from functools import partial
from typing import Any

from generators.baits.bait import Bait, Guard, Pattern
from generators.baits.patterns.products import ACTIVATIONS, activated
from generators.ops.elementwise.scalars import NEAR

_FLOATS = Guard(("float32",), ("float64", "float16"))
_ORT, _GRAPPLER, _XLA, _TVM, _INDUCTOR = "onnxruntime/", "grappler/", "xla/", "tvm/", "torch-inductor/"
SHAPES = Guard(("plain", "grouped"), ("pointwise", "depthwise", "strided", "dilated", "padded", "many"))
"""Kinds of convolutions; `many` has the 16 channels that vector layouts want."""


def convolved(p: Pattern, shape: str = "plain", x: str = "", bias: bool = True, zero: bool = False) -> str:
    """A convolution of a kind, of 4 channels into 4 (16 into 16)."""
    channels = 16 if shape == "many" else 4
    groups = {"grouped": 2, "depthwise": 4}.get(shape, 1)
    side = 1 if shape == "pointwise" else 3
    x = x or p.input(1, channels, 6, 6)
    channels = p.shape(x)[1]
    kernel = (channels, channels // groups, side, side)
    weight = p.constant(0.0, *kernel) if zero else p.weight(*kernel)
    if shape == "depthwise" and not bias:
        return p.depthwise_conv2d(x, weight, stride=(1, 1), padding=(1, 1))
    operands = (x, weight, p.weight(channels)) if bias else (x, weight, p.constant(0.0, channels))
    return p.conv2d(
        *operands,
        stride=(2, 2) if shape == "strided" else (1, 1),
        dilation=(2, 2) if shape == "dilated" else (1, 1),
        padding=(1, 1, 1, 1) if shape in ("padded", "depthwise", "many") else (0, 0, 0, 0),
        groups=groups,
    )


def _then_constant(p: Pattern, operator: str, shape: str, constant: tuple[int, ...], value: Any) -> str:
    """A constant for each channel goes into the bias or the weights."""
    x = convolved(p, shape)
    return p.apply(operator, x, p.constant(value, *constant) if value is not None else p.weight(*constant))


def _normalised(p: Pattern, shape: str, epsilon: float, between: str, activation: str) -> str:
    x = convolved(p, shape, bias=between != "no bias")
    x = p.relu(x) if between == "relu" else x
    channels = p.shape(x)[1]
    variance = p.weight(channels, domain=(0, 4))
    x = p.batch_norm(x, *(p.weight(channels) for _ in range(3)), variance, epsilon=epsilon)
    return activated(p, activation, x) if activation else x


def _normalised_depthwise(p: Pattern, epsilon: float, padding: tuple[int, int], also: bool) -> tuple[str, ...]:
    """A filter for each channel and no bias between it and the normalisation; its result may be one, too."""
    x = p.depthwise_conv2d(p.input(2, 3, 5, 5), p.weight(3, 1, 3, 3), stride=(1, 1), padding=padding)
    y = p.batch_norm(x, *(p.weight(3) for _ in range(3)), p.weight(3, domain=(0, 4)), epsilon=epsilon)
    return (y, x) if also else (y,)


def _activated(p: Pattern, activation: str, shape: str) -> str:
    return activated(p, activation, convolved(p, shape))


def _clipped(p: Pattern, low: float, high: float, shape: str) -> str:
    return p.clip(convolved(p, shape), min=low, max=high)


def _residual(p: Pattern, activation: str, shape: str, other: str, order: str) -> str:
    """A convolution, another value and an activation."""
    x = convolved(p, shape)
    second = {
        "input": lambda: p.input(*p.shape(x)),
        "convolution": lambda: convolved(p, shape),
        "channel": lambda: p.input(1, p.shape(x)[1], 1, 1),
        "itself": lambda: x,
        "batch": lambda: p.input(2, *p.shape(x)[1:]),
    }[other]()
    total = p.add(*((x, second) if order == "right" else (second, x)))
    return activated(p, activation, total) if activation else total


def _padded(p: Pattern, pads: tuple[int, ...], value: float, then: str, mode: str) -> str:
    """A padding that the next operator can do: by zeros, of the last axes only."""
    x = p.input(1, 4, 6, 6)
    padding = {
        "constant": lambda: p.pad(x, pads=pads, value=value),
        "edge": lambda: p.pad_edge(x, pads=pads),
    }[mode]()
    if then == "max pool":
        return p.max_pool2d(padding, kernel=(2, 2), dilation=(1, 1), padding=(1, 1), stride=(1, 1))
    if then == "average":
        return p.avg_pool2d(padding, kernel=(2, 2), padding=(0, 0), stride=(1, 1), count_include_pad=False)
    return convolved(p, "padded" if then == "padded" else "plain", padding)


def _pool_padded(p: Pattern, axes: int, pads: tuple[int, int], value: float, own: int, sign: str, kernel: int) -> str:
    """A padding that is a pool's own only where no window lies below it: a pool's own counts for less than any."""
    x = p.abs(p.input(1, 2, *(6, 5, 4)[:axes]))
    x = {"above": lambda: x, "below": lambda: p.neg(x), "any": lambda: p.input(*p.shape(x))}[sign]()
    return p.apply(
        f"max_pool{axes}d", p.pad(x, pads=(0, 0, 0, 0, *(pads * axes)), value=value),
        kernel=(kernel,) * axes, dilation=(1,) * axes, padding=(own,) * axes, stride=(1,) * axes,
    )  # fmt: skip


def _blocked(p: Pattern, between: str, channels: int, last: str) -> str:
    """Chains that stay in a blocked layout: NCHWc, NHWC."""
    x = convolved(p, "padded", p.input(1, channels, 6, 6))
    x = {
        "relu": lambda: p.relu(x),
        "pool": lambda: p.max_pool2d(x, kernel=(2, 2), dilation=(1, 1), padding=(0, 0), stride=(2, 2)),
        "average": lambda: p.avg_pool2d(x, kernel=(2, 2), padding=(1, 1), stride=(2, 2), count_include_pad=True),
        "concat": lambda: p.concat(x, convolved(p, "padded", p.input(1, channels, 6, 6)), axis=1),
        "add": lambda: p.add(x, convolved(p, "padded", p.input(1, channels, 6, 6))),
        "mul": lambda: p.mul(x, p.sigmoid(x)),
        "upsample": lambda: p.upsample_nearest(x, factor=2),
        "transpose": lambda: p.transpose(x, perm=(0, 1, 3, 2)),
        "batch norm": lambda: p.batch_norm(
            x, *(p.weight(channels) for _ in range(3)), p.weight(channels, domain=(0, 4)), epsilon=0.0009765625
        ),
    }[between]()
    return (
        p.global_avg_pool(x) if last == "global" else convolved(p, "padded", x) if last == "convolution" else p.neg(x)
    )


def _pooled_beside(p: Pattern, pool: str, join: str, shape: str) -> str:
    """A convolution whose result goes into windows that overlap, and into what is made of these: its gradient is a sum,
    of which one part is scattered."""
    x = convolved(p, shape)
    pooled = {
        "max": lambda: p.max_pool2d(x, kernel=(3, 3), dilation=(1, 1), padding=(1, 1), stride=(1, 1)),
        "average": lambda: p.avg_pool2d(x, kernel=(3, 3), padding=(1, 1), stride=(1, 1), count_include_pad=True),
    }[pool]()
    return p.apply(join, x, pooled)


def _transposed_layout(p: Pattern, after: tuple[int, ...], shape: str) -> str:
    """Between transpositions from and to channels last."""
    x = p.transpose(p.input(1, 6, 6, 4), perm=(0, 3, 1, 2))
    return p.transpose(convolved(p, shape, x), perm=after)


def _last_then_constant(p: Pattern, operator: str, shape: str, constant: tuple[int, ...], order: str) -> str:
    """Channels last, and a constant for each of them, which may have more axes than the image."""
    x = p.transpose(p.input(1, 6, 6, 4), perm=(0, 3, 1, 2))
    x = p.transpose(convolved(p, shape, x), perm=(0, 2, 3, 1))
    other = p.weight(*constant)
    return p.apply(operator, *((x, other) if order == "right" else (other, x)))


def _between_blocks(
    p: Pattern, block: tuple[int, int], pads: tuple[int, ...], shape: str, between: str, back: str, crops: int
) -> tuple[str, ...]:
    """Every second pixel is a batch, and back: a dilated convolution, if both are of the same blocks."""
    x = p.space_to_batch(p.input(1, 4, 4, 4), block=block, pads=pads)
    x = p.transpose(x, perm=(0, 3, 1, 2))
    y = p.transpose(convolved(p, shape, x, bias=between == "bias"), perm=(0, 2, 3, 1))
    x = p.relu(y) if between == "relu" else p.add(y, p.weight(4)) if between == "added" else y
    other = (block[0] * block[1], 1) if back == "other" else block
    x = p.batch_to_space(x, block=other, pads=(0, crops, crops, 0))
    return (x, p.neg(y)) if between == "used" else (x,)


def _zero_weights(p: Pattern, shape: str, activation: str) -> str:
    x = convolved(p, shape, zero=True)
    return p.apply(activation, x) if activation else x


def _deconvolved(p: Pattern, operator: str, activation: str, groups: int) -> str:
    x = p.conv_transpose2d(
        p.input(1, 4, 3, 3), p.weight(4, 4 // groups, 2, 2), stride=(2, 2), dilation=(1, 1), padding=(0, 0),
        output_padding=(0, 0), groups=groups,
    )  # fmt: skip
    x = p.apply(operator, x, p.weight(4, 1, 1))
    return p.apply(activation, x) if activation else x


def _as_matrix(p: Pattern, height: int, kernel: int, stride: int) -> str:
    """A convolution whose kernel covers all, or one point, is a product of matrices."""
    return p.conv2d(
        p.input(2, 4, height, height), p.weight(5, 4, kernel, kernel), p.weight(5),
        stride=(stride, stride), dilation=(1, 1), padding=(0, 0, 0, 0), groups=1,
    )  # fmt: skip


def _one_dimension(p: Pattern, activation: str, padding: tuple[int, int], operator: str) -> str:
    x = p.conv1d(p.input(2, 4, 9), p.weight(4, 4, 3), stride=(1,), dilation=(1,), padding=padding, groups=1)
    x = p.apply(operator, x, p.weight(4, 1))
    return activated(p, activation, x)


def _two_of_one(p: Pattern, second: str, joined: str) -> tuple[str, ...]:
    """Two convolutions of one value."""
    x = p.input(1, 4, 6, 6)
    first, other = convolved(p, "plain", x), convolved(p, second, x)
    return (p.concat(first, other, axis=1),) if joined == "joined" else (first, other)


_PER_CHANNEL = Guard(((4, 1, 1), (1, 4, 1, 1)), ((4,), (), (1,), (1, 1, 4, 4), (2, 4, 1, 1)))
BAITS = (
    Bait("conv-then-constant",
         (_ORT + "ConvAddFusion", _ORT + "ConvMulFusion", _GRAPPLER + "MulConvPushDown", _INDUCTOR + "folded_op",
          _TVM + "FuseOps"), _then_constant,
         {"operator": Guard(("add", "mul"), ("sub", "div")), "shape": Guard(("plain", "grouped"), ("depthwise",)),
          "constant": _PER_CHANNEL, "value": Guard((None, 2.0), (1.0, 0.0, NEAR, -1.0, 1e20))}, _FLOATS),
    Bait("conv-batch-norm",
         (_ORT + "ConvBNFusion", _TVM + "FoldBatchnormToConv2D", _GRAPPLER + "remapping", _INDUCTOR + "fuse_conv_bn"),
         _normalised,
         {"shape": SHAPES, "epsilon": Guard((0.0009765625, 7.62939453125e-06), (1.0,)),
          "between": Guard(("nothing", "no bias"), ("relu",)), "activation": Guard(("", "relu"), ("tanh",))}, _FLOATS),
    Bait("depthwise-batch-norm", (_TVM + "FoldBatchnormToConv2D", _ORT + "ConvBNFusion", _INDUCTOR + "fuse_conv_bn"),
         _normalised_depthwise,
         {"epsilon": Guard((0.0009765625,), (1.0,)), "padding": Guard(((0, 0),), ((1, 0), (1, 1))),
          "also": Guard((False,), (True,))}, _FLOATS),
    Bait("conv-activation", (_ORT + "ConvActivationFusion", _GRAPPLER + "remapping", _INDUCTOR + "mkldnn unary",
                             "xnnpack/activation"), _activated, {"activation": ACTIVATIONS, "shape": SHAPES}, _FLOATS),
    Bait("conv-clip", (_ORT + "ConvActivationFusion", "xnnpack/clamp", _INDUCTOR + "mkldnn hardtanh"), _clipped,
         {"low": Guard((0.0, -1.0), (-1e30, 0.5)), "high": Guard((6.0, 1.0), (0.75, 1e30)), "shape": SHAPES}, _FLOATS),
    Bait("conv-add-activation",
         (_ORT + "ConvAddActivationFusion", _GRAPPLER + "remapping", _INDUCTOR + "mkldnn binary", _TVM + "FuseOps"),
         _residual,
         {"activation": Guard(("", "relu", "tanh", "sigmoid", "leaky_relu", "clip"), ("gelu", "hard_sigmoid")),
          "shape": SHAPES, "other": Guard(("input", "convolution"), ("channel", "itself", "batch")),
          "order": Guard(("right",), ("left",))}, _FLOATS),
    Bait("pad-conv", (_ORT + "Pad_Fusion", _XLA + "algsimp", _XLA + "convolution-canonicalization"), _padded,
         {"pads": Guard(((0, 0, 0, 0, 1, 1, 1, 1), (0, 0, 0, 0, 0, 2, 1, 0)), ((0, 0, 0, 0, 0, 0, 0, 0),)),
          "value": Guard((0.0,), (-0.0, 1.0, -1e30)), "then": Guard(("conv", "padded", "max pool"), ("average",)),
          "mode": Guard(("constant",), ("edge",))}, _FLOATS),
    Bait("pad-max-pool", (_ORT + "Pad_Fusion",), _pool_padded,
         {"axes": Guard((2,), (3, 1)), "pads": Guard(((1, 1), (0, 1)), ((2, 2), (0, 0))),
          "value": Guard((0.0,), (-1.0, -1e30, float("-inf"))), "own": Guard((0,), (1,)),
          "sign": Guard(("above", "any"), ("below",)), "kernel": Guard((3,), (2, 4))}, _FLOATS),
    Bait("blocked-layout", (_ORT + "NchwcTransformer", _ORT + "NhwcTransformer", _GRAPPLER + "layout_optimizer",
                            _TVM + "ConvertLayout", _INDUCTOR + "layout_optimization"), _blocked,
         {"between": Guard(("relu", "pool", "average", "concat", "add", "mul", "batch norm", "upsample"),
                           ("transpose",)),
          "channels": Guard((16,), (4, 8, 3)), "last": Guard(("convolution", "global"), ("neg",))}, _FLOATS),
    Bait("conv-pooled-beside", (_INDUCTOR + "layout_optimization", _ORT + "NchwcTransformer"), _pooled_beside,
         {"pool": Guard(("max",), ("average",)), "join": Guard(("mul", "sub"), ("maximum", "div")), "shape": SHAPES},
         _FLOATS),
    Bait("conv-between-transposes", (_ORT + "TransposeOptimizer", _ORT + "NhwcTransformer",
                                     _GRAPPLER + "layout_optimizer", _XLA + "algsimp"), _transposed_layout,
         {"after": Guard(((0, 2, 3, 1),), ((0, 1, 3, 2), (0, 3, 1, 2))), "shape": Guard(("plain", "pointwise"),
                                                                                      ("grouped", "depthwise"))},
         _FLOATS),
    *(
        Bait(f"conv-last-{operator}-constant",
             ("tflite/FuseBinaryOpToPrecedingAffine", _GRAPPLER + "layout_optimizer", _ORT + "TransposeOptimizer"),
             partial(_last_then_constant, operator=operator),
             {"shape": Guard(("plain", "pointwise"), ("depthwise",)), "order": Guard(("right",), ("left",)),
              "constant": Guard(((4,), (1, 1, 1, 4)), ((), (1,), (4, 4), (2, 1, 1, 4), (1, 1, 1, 1, 4)))},
             _FLOATS)
        for operator in ("add", "mul")
    ),
    Bait("conv-between-blocks", ("tflite/ConvertTFDilatedConvOp", _XLA + "space-to-batch-converter"), _between_blocks,
         {"block": Guard(((2, 2),), ((1, 2), (2, 1))),
          "pads": Guard(((2, 2, 2, 2), (2, 4, 2, 4)), ((0, 2, 0, 2), (1, 1, 1, 1), (4, 2, 2, 4))),
          "shape": Guard(("plain", "depthwise"), ("padded", "grouped", "pointwise")),
          "between": Guard(("nothing", "bias"), ("added", "relu", "used")), "back": Guard(("same",), ("other",)),
          "crops": Guard((0,), (1,))}, _FLOATS),
    Bait("conv-of-zeros", (_XLA + "algsimp", _GRAPPLER + "constant_folding"), _zero_weights,
         {"shape": SHAPES, "activation": Guard(("", "relu"), ("reciprocal",))}, _FLOATS),
    Bait("conv-transpose-then", (_INDUCTOR + "mkldnn unary", _INDUCTOR + "folded_op", _ORT + "ConvMulFusion"),
         _deconvolved,
         {"operator": Guard(("add", "mul"), ("div",)), "activation": Guard(("", "relu"), ("sigmoid",)),
          "groups": Guard((1, 2), (4,))}, _FLOATS),
    Bait("conv-as-matmul", (_XLA + "algsimp", _XLA + "convolution-canonicalization"), _as_matrix,
         {"height": Guard((3,), (4,)), "kernel": Guard((1, 3)), "stride": Guard((1,), (2,))}, _FLOATS),
    Bait("conv1d-then", (_ORT + "ConvAddFusion", _ORT + "ConvActivationFusion", _INDUCTOR + "folded_op"),
         _one_dimension,
         {"activation": Guard(("relu", "tanh"), ("gelu",)), "padding": Guard(((0, 0),), ((1, 1), (2, 0))),
          "operator": Guard(("add", "mul"), ("sub",))}, _FLOATS),
    Bait("convs-of-one", (_TVM + "FuseOps", _XLA + "algsimp", _ORT + "CommonSubexpressionElimination"), _two_of_one,
         {"second": Guard(("plain",), ("grouped",)), "joined": Guard(("apart",), ("joined",))}, _FLOATS),
)  # fmt: skip
