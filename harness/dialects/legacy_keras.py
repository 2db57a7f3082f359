"""Keras 2 (tf_keras): models of the layers that tfmot's default 8-bit scheme quantises. Its spellings stand here, since
only a quantiser needs them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from generators.ops.shape.pad_repeat import pairs
from generators.ops.spec import Call, Spelling, Unsupported, said
from harness.dialects.dialect import Dialect, Spellings

_LAYERS = "tf_keras.layers."


def _batched(spelling: Spelling) -> Spelling:
    """Where all operands and the result have the same first axis, and another one."""

    def spell(call: Call) -> str | Unsupported:
        types = (call.operands[0], call.result)
        if any(type_.rank < 2 for type_ in types) or len({type_.shape[0] for type_ in types}) > 1:
            return Unsupported("layers keep the first axis, and have another one")
        return said(spelling, call)

    return spell


def _pointwise(layer: str) -> Spelling:
    return _batched(f"pointwise({_LAYERS}{layer}, {{0}})")


def _padding(call: Call, front: tuple[int, ...], behind: tuple[int, ...]) -> str:
    return f"padding={tuple(zip(front, behind, strict=True))}"


def _conv2d(call: Call) -> str | Unsupported:
    attrs: Any = call.attrs
    if attrs["groups"] != 1:
        return Unsupported("convolutions in groups have no kernel of whole numbers")
    if max(attrs["stride"]) > 1 and max(attrs["dilation"]) > 1:
        return Unsupported("Keras convolves with strides or with dilation")
    shape, (top, left, bottom, right) = call.operands[1].shape, attrs["padding"]
    layer = f"{_LAYERS}Conv2D({shape[0]}, {shape[2:]}, {attrs['stride']}, dilation_rate={attrs['dilation']})"
    kernel = "np.transpose(constants({1})[0], (2, 3, 1, 0))"
    return f"weighted({layer}, {{0}}, {kernel}, {{2}}, {_padding(call, (top, left), (bottom, right))})"


def _depthwise(call: Call) -> str:
    attrs: Any = call.attrs
    shape, channels = call.operands[1].shape, call.operands[0].shape[1]
    sizes = f"{shape[2:]}, {attrs['stride']}, depth_multiplier={shape[0] // channels}"
    layer = f"{_LAYERS}DepthwiseConv2D({sizes}, use_bias=False)"
    turned = f"({channels}, {shape[0] // channels}, {shape[2]}, {shape[3]})"
    kernel = f"np.transpose(np.reshape(constants({{1}})[0], {turned}), (2, 3, 0, 1))"
    return f"weighted({layer}, {{0}}, {kernel}, {_padding(call, attrs['padding'], attrs['padding'])})"


def _matmul(call: Call) -> str | Unsupported:
    if call.operands[1].rank != 2:
        return Unsupported("a layer's weight is a matrix")
    return f"weighted({_LAYERS}Dense({call.operands[1].shape[1]}, use_bias=False), {{0}}, {{1}})"


def _linear(call: Call) -> str:
    return f"weighted({_LAYERS}Dense({call.operands[1].shape[0]}), {{0}}, np.transpose(constants({{1}})[0]), {{2}})"


def _batch_norm(call: Call) -> str | Unsupported:
    if call.operands[0].rank not in (2, 4):
        return Unsupported("only behind a layer of images or vectors")
    return f"weighted({_LAYERS}BatchNormalization(epsilon={{epsilon}}), {{0}}, {{1}}, {{2}}, {{3}}, {{4}})"


def _add(call: Call) -> str | Unsupported:
    if len({type_.shape for type_ in call.operands}) > 1:
        return Unsupported("operands of different shapes")
    return f"pointwise({_LAYERS}Add(), {{0}}, {{1}})"


def _concat(call: Call) -> str | Unsupported:
    axis: Any = call.attrs["axis"]
    if len(call.operands) < 2:
        return Unsupported("Concatenate takes two values or more")
    return f"{_LAYERS}Concatenate(axis={axis % call.result.rank})([{{args}}])"


def _softmax(call: Call) -> str:
    axis: Any = call.attrs["axis"]
    return f"{_LAYERS}Softmax(axis={axis % call.result.rank})({{0}})"


def _pool(kind: str) -> Spelling:
    def spell(call: Call) -> str | Unsupported:
        attrs: Any = call.attrs
        if kind == "Max" and (any(attrs["padding"]) or set(attrs["dilation"]) != {1}):
            return Unsupported("MaxPooling2D has no dilation, and no padding that is told")
        if any(attrs["padding"]) and not attrs["count_include_pad"]:
            return Unsupported("AveragePooling2D has no padding that is told")
        layer = f"{_LAYERS}{kind}Pooling2D({attrs['kernel']}, {attrs['stride']})"
        return f"spatial({layer}, {{0}}, {_padding(call, attrs['padding'], attrs['padding'])})"

    return spell


def _transpose(call: Call) -> str | Unsupported:
    perm: Any = call.attrs["perm"]
    if perm[0] != 0:
        return Unsupported("layers keep the first axis, and have another one")
    return f"{_LAYERS}Permute({tuple(perm[1:])})({{0}})"


def _pad(call: Call) -> str | Unsupported:
    where = pairs(call.attrs)
    if call.result.rank != 4 or call.attrs["value"] != 0 or any(map(any, where[:2])):
        return Unsupported("images alone are padded, with zeros")
    return f"channels_first({_LAYERS}ZeroPadding2D({tuple(where[2:])})(channels_last({{0}})))"


_RESHAPE = _batched(lambda call: f"{_LAYERS}Reshape({call.result.shape[1:]})({{0}})")

_SPELLINGS = Spellings(
    __name__,
    "_SPELLINGS",
    {
        "conv2d": _conv2d,
        "depthwise_conv2d": _depthwise,
        "linear": _batched(_linear),
        "matmul": _batched(_matmul),
        "batch_norm": _batched(_batch_norm),
        "add": _batched(_add),
        "concat": _batched(_concat),
        "relu": _pointwise("ReLU()"),
        "relu6": _pointwise("ReLU(6.0)"),
        "leaky_relu": _pointwise("LeakyReLU({alpha})"),
        "sigmoid": _pointwise("Activation('sigmoid')"),
        "tanh": _pointwise("Activation('tanh')"),
        "softmax": _batched(_softmax),
        "max_pool2d": _pool("Max"),
        "avg_pool2d": _pool("Average"),
        "global_avg_pool": f"spatial({_LAYERS}GlobalAveragePooling2D(keepdims=True), {{0}})",
        "upsample_nearest": f"spatial({_LAYERS}UpSampling2D({{factor}}), {{0}})",
        "reshape": _RESHAPE,
        "flatten_2d": _RESHAPE,
        "squeeze": _RESHAPE,
        "unsqueeze": _RESHAPE,
        "transpose": _batched(_transpose),
        "pad": _batched(_pad),
    },
)
LEGACY_KERAS = Dialect(
    "legacy_keras",
    "import numpy as np\nimport tensorflow as tf\nimport tensorflow_model_optimization as tfmot\nimport tf_keras",
    {"float32": "'float32'"},
    tuple(
        Path(__file__).with_name("functions") / path for path in ("legacy_keras", "tensorflow/quantiser.py", "shared")
    ),
    absent="only float32 is quantised",
    spellings=_SPELLINGS,
)
