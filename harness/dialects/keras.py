"""Keras 3: models of `keras.ops`, as far as a file of them can be written. Its spellings stand here, since it has
targets only for globs that name them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from generators.graph import DTYPES
from generators.ops.spec import Call, Spelling, Unsupported
from harness.dialects.dialect import Dialect, functions


def _same(*names: str) -> dict[str, Spelling]:
    """Those of one operand that Keras calls as we do."""
    return {name: f"keras.ops.{name}({{0}})" for name in names}


def _pair(**names: str) -> dict[str, Spelling]:
    """Those of two operands, by our name."""
    return {name: f"keras.ops.{theirs}({{0}}, {{1}})" for name, theirs in names.items()}


def _along(*names: str) -> dict[str, Spelling]:
    """Reductions."""
    return {name: f"keras.ops.{name}({{0}}, axis={{axes}}, keepdims={{keepdims}})" for name in names}


def _sum(call: Call) -> str:
    """It takes no dtype: what wraps in 32 bits, and then in fewer, has wrapped in those."""
    text = "keras.ops.sum({0}, axis={axes}, keepdims={keepdims})"
    narrow = call.operands[0].dtype in ("int8", "uint8", "int16", "uint16")
    return f"keras.ops.cast({text}, {{dtype}})" if narrow else text


def _conv2d(call: Call) -> str | Unsupported:
    """NCHW by OIHW, as Keras convolves on a CPU: NHWC by HWIO, with padding of its own."""
    attrs: Any = call.attrs
    if max(attrs["stride"]) > 1 and max(attrs["dilation"]) > 1:
        return Unsupported("Keras convolves with strides or with dilation")
    top, left, bottom, right = attrs["padding"]
    pads = f"((0, 0), ({top}, {bottom}), ({left}, {right}), (0, 0))"
    padded = f"keras.ops.pad(keras.ops.transpose({{0}}, (0, 2, 3, 1)), {pads})"
    kernel = "keras.ops.transpose({1}, (2, 3, 1, 0))"
    text = f"keras.ops.conv({padded}, {kernel}, {attrs['stride']}, 'valid', 'channels_last', {attrs['dilation']})"
    return f"keras.ops.transpose(keras.ops.add({text}, {{2}}), (0, 3, 1, 2))"


KERAS = Dialect(
    "keras",
    "import numpy as np\nimport keras",
    {name: repr(name) for name in DTYPES},
    (),
    absent="its spellings here have no complex numbers",
    spellings={
        **_same("abs", "sign", "square", "reciprocal", "sqrt", "rsqrt", "exp", "expm1", "log", "log1p", "log2"),
        **_same("sin", "cos", "tan", "sinh", "cosh", "tanh", "erf", "floor", "ceil", "trunc", "isnan", "isinf"),
        **_same("isfinite", "logical_not", "relu", "relu6", "selu", "sigmoid", "silu", "softplus", "softsign"),
        **_same("log_sigmoid"),
        **_pair(add="add", sub="subtract", mul="multiply", div="divide", maximum="maximum", minimum="minimum"),
        **_pair(logical_and="logical_and", logical_or="logical_or", logical_xor="logical_xor", equal="equal"),
        **_pair(not_equal="not_equal", less="less", less_equal="less_equal", greater="greater", matmul="matmul"),
        **_pair(greater_equal="greater_equal", outer="outer"),
        **_along("mean", "max", "min", "all", "any", "logsumexp"),
        # of integers narrower than 32 bits sums and products are of 32 bits, as numpy's are, unless one says otherwise
        "sum": _sum,
        "prod": "keras.ops.prod({0}, axis={axes}, keepdims={keepdims}, dtype={dtype})",
        "neg": "keras.ops.negative({0})",
        "asin": "keras.ops.arcsin({0})",
        "acos": "keras.ops.arccos({0})",
        "atan": "keras.ops.arctan({0})",
        "asinh": "keras.ops.arcsinh({0})",
        "acosh": "keras.ops.arccosh({0})",
        "atanh": "keras.ops.arctanh({0})",
        "gelu": "keras.ops.gelu({0}, approximate=False)",
        "gelu_tanh": "keras.ops.gelu({0}, approximate=True)",
        "leaky_relu": "keras.ops.leaky_relu({0}, negative_slope={alpha})",
        "cast": "keras.ops.cast({0}, {dtype})",
        "where": "keras.ops.where({0}, {1}, {2})",
        "clip": "keras.ops.clip({0}, {min}, {max})",
        "softmax": "keras.ops.softmax({0}, axis={axis})",
        "log_softmax": "keras.ops.log_softmax({0}, axis={axis})",
        "reshape": "keras.ops.reshape({0}, {shape})",
        "flatten": "keras.ops.reshape({0}, (-1,))",
        "transpose": "keras.ops.transpose({0}, {perm})",
        "squeeze": "keras.ops.squeeze({0}, axis={axes})",
        "unsqueeze": "keras.ops.expand_dims({0}, axis={axis})",
        "broadcast_to": "keras.ops.broadcast_to({0}, {shape})",
        "concat": "keras.ops.concatenate([{args}], axis={axis})",
        "stack": "keras.ops.stack([{args}], axis={axis})",
        "flip": "keras.ops.flip({0}, {axes})",
        "tile": "keras.ops.tile({0}, {repeats})",
        "repeat": "keras.ops.repeat({0}, {repeats}, axis={axis})",
        "take": "keras.ops.take({0}, {1}, axis={axis})",
        "embedding": "keras.ops.take({0}, {1}, axis=0)",
        "conv2d": _conv2d,
        "global_avg_pool": "keras.ops.mean({0}, axis=(2, 3), keepdims=True)",
    },
)

_SPELLINGS: dict[str, Spelling] = {
    "linear": "keras_dense({0}, {1}, {2}, turned=True)",
    "matmul": "keras_dense({0}, {1})",
}
KERAS_LAYERS = replace(
    KERAS,
    helpers=functions("keras"),
    spellings={**(KERAS.spellings or {}), **_SPELLINGS},
)
"""The same with products of constant matrices as Dense layers."""
