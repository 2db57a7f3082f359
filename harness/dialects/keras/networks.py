"""Operators of networks: convolutions, pools, normalisations, attention, losses, recurrent layers, images."""

from __future__ import annotations

from typing import Any

from generators.ops.spec import Call, Spelling, Unsupported
from harness.dialects.keras.texts import attribute, composed, where

_LAST = "channels_last"
_FIRST = "channels_first"


def _turned(text: str, rank: int, back: bool = False) -> str:
    """With the channels last, as Keras convolves on a CPU, or in the second place again."""
    perm = (0, rank - 1, *range(1, rank - 1)) if back else (0, *range(2, rank), 1)
    return f"keras.ops.transpose({text}, {perm})"


def _strided(call: Call) -> bool:
    attrs: Any = call.attrs
    return max(attrs["stride"]) > 1 and max(attrs["dilation"]) > 1


def _conv(call: Call) -> str | Unsupported:
    """Of a kernel (spatial, I, O), with padding of its own."""
    attrs: Any = call.attrs
    if _strided(call):
        return Unsupported("Keras convolves with strides or with dilation")
    n = len(attrs["stride"])
    kernel, x = f"keras.ops.transpose({{1}}, {(*range(2, n + 2), 1, 0)})", _turned("{0}", n + 2)
    padding = "valid" if "padding" in attrs else "same"
    if any(attrs.get("padding", ())):
        pads = list(zip(attrs["padding"][:n], attrs["padding"][n:], strict=True))
        x = f"keras.ops.pad({x}, {[(0, 0), *pads, (0, 0)]})"
    text = f"keras.ops.conv({x}, {kernel}, {attrs['stride']}, '{padding}', '{_LAST}', {attrs['dilation']})"
    return _turned(f"keras.ops.add({text}, {{2}})" if len(call.operands) == 3 else text, n + 2, back=True)


def _depthwise(call: Call) -> str | Unsupported:
    """A kernel of Keras is (height, width, channels, multiplier)."""
    attrs: Any = call.attrs
    if len(set(attrs["stride"])) > 1:
        return Unsupported("Keras has one stride for both axes")
    (top, left), shape, channels = attrs["padding"], call.operands[1].shape, call.operands[0].shape[1]
    apart = (channels, shape[0] // channels, *shape[2:])
    kernel = f"keras.ops.transpose(keras.ops.reshape({{1}}, {apart}), (2, 3, 0, 1))"
    padded = f"keras.ops.pad({_turned('{0}', 4)}, {[(0, 0), (top, top), (left, left), (0, 0)]})"
    text = f"keras.ops.depthwise_conv({padded}, {kernel}, {attrs['stride']}, 'valid', '{_LAST}')"
    return _turned(text, 4, back=True)


def _conv_transpose(call: Call) -> str | Unsupported:
    if call.attrs["groups"] != 1:
        return Unsupported("keras.ops.conv_transpose has no groups")
    if _strided(call):
        return Unsupported("Keras convolves with strides or with dilation")
    return "keras_conv_transpose({0}, {1}, {stride}, {dilation}, {padding}, {shape})"


def _max_pool(call: Call) -> str | Unsupported:
    attrs: Any = call.attrs
    if any(attrs["padding"]) or set(attrs["dilation"]) != {1}:
        return Unsupported("keras.ops.max_pool has no such padding and no dilation")
    return f"keras.ops.max_pool({{0}}, {{kernel}}, {{stride}}, 'valid', '{_FIRST}')"


def _avg_pool(call: Call) -> str | Unsupported:
    attrs: Any = call.attrs
    if any(attrs["padding"]):
        return Unsupported("keras.ops.average_pool has no such padding")
    return f"keras.ops.average_pool({{0}}, {{kernel}}, {{stride}}, 'valid', '{_FIRST}')"


def _pool_same(kind: str) -> str:
    return f"keras.ops.{kind}_pool({{0}}, {{kernel}}, {{stride}}, 'same', '{_FIRST}')"


def _layer_norm(call: Call) -> str:
    axes = list(range(-call.operands[1].rank, 0))
    return f"keras.ops.layer_normalization({{0}}, {{1}}, {{2}}, axis={axes}, epsilon={{epsilon}})"


def _rms_norm(call: Call) -> str:
    axes = list(range(-call.operands[1].rank, 0))
    return f"keras.ops.rms_normalization({{0}}, {{1}}, axis={axes}, epsilon={{epsilon}})"


def _resize(method: str, antialias: bool = False) -> Spelling:
    """Results of TensorFlow are float32, where they are not of the nearest pixel."""
    more = ", antialias=True" if antialias else ""
    text = f"keras.ops.image.resize({{0}}, {{size}}, {method!r}, data_format='{_FIRST}'{more})"
    if method == "nearest":
        return text
    return where(lambda call: call.result.dtype == "float32", "it resizes in float32", text)


def _attention(**more: str) -> str:
    """Keras has the length before the heads."""
    said = "".join(f", {key}={value}" for key, value in more.items())
    turned = ", ".join(f"keras.ops.swapaxes({{{i}}}, 1, 2)" for i in range(3))
    return f"keras.ops.swapaxes(keras.ops.dot_product_attention({turned}, scale={{scale}}{said}), 1, 2)"


def _wide(call: Call) -> str:
    """The mask or the bias with all its axes."""
    rank = call.operands[3].rank
    return "{3}" if rank == 4 else f"keras.ops.reshape({{3}}, {(1,) * (4 - rank) + call.operands[3].shape})"


def _fold(call: Call) -> str:
    return "keras.ops.fold({0}, {image}, {kernel}, dilation={dilation}, padding={padding}, stride={stride})"


def _patches(call: Call) -> str | Unsupported:
    attrs: Any = call.attrs
    if max(attrs["stride"]) > 1 and max(attrs["dilation"]) > 1:
        return Unsupported("Keras takes patches with strides or with dilation")
    if attrs["padding"] not in ("VALID", "SAME") or len(set(attrs["dilation"])) > 1:
        return Unsupported("no such padding, and one dilation")
    return (
        f"keras.ops.image.extract_patches({{0}}, {{kernel}}, {{stride}}, {attrs['dilation'][0]}, "
        f"{attrs['padding'].lower()!r}, 'channels_last')"
    )


def _ctc(call: Call) -> str:
    return (
        'keras.ops.ctc_loss({1}, keras.ops.transpose({0}, (1, 0, 2)), np.array({sizes}, "int32"), '
        'np.array({steps}, "int32"))'
    )


def _reduced(text: str) -> Spelling:
    """The losses of all elements, or what they come to."""

    def spell(call: Call) -> str:
        reduction = call.attrs["reduction"]
        return text if reduction == "none" else f"keras.ops.{reduction}({text})"

    return spell


SPELLINGS: dict[str, Spelling] = {
    **composed(
        "rnn_cell gru_cell lstm_cell margin_ranking hinge_embedding soft_margin cosine_embedding pairwise_distance "
        "triplet_margin multi_margin kl_div_log_target poisson_nll gaussian_nll embedding_bag embedding_bag_weighted "
        "local_response_norm lp_pool1d lp_pool2d max_unpool2d rotary_embedding"
    ),
    "conv1d": _conv,
    "conv2d": _conv,
    "conv3d": _conv,
    "conv1d_same": _conv,
    "conv2d_same": _conv,
    "depthwise_conv2d": _depthwise,
    **{f"conv_transpose{n}d": _conv_transpose for n in (1, 2, 3)},
    **{f"max_pool{n}d": _max_pool for n in (1, 2, 3)},
    **{f"avg_pool{n}d": _avg_pool for n in (1, 2, 3)},
    **{f"max_pool{n}d_same": _pool_same("max") for n in (1, 2)},
    **{f"avg_pool{n}d_same": _pool_same("average") for n in (1, 2)},
    **{f"adaptive_avg_pool{n}d": f"keras.ops.adaptive_average_pool({{0}}, {{output}}, '{_FIRST}')" for n in (1, 2, 3)},
    **{f"adaptive_max_pool{n}d": f"keras.ops.adaptive_max_pool({{0}}, {{output}}, '{_FIRST}')" for n in (1, 2, 3)},
    "global_avg_pool": "keras.ops.mean({0}, axis=(2, 3), keepdims=True)",
    "global_max_pool": "keras.ops.max({0}, axis=(2, 3), keepdims=True)",
    "layer_norm": _layer_norm,
    "rms_norm": _rms_norm,
    "batch_norm": "keras.ops.batch_normalization({0}, {3}, {4}, 1, {2}, {1}, {epsilon})",
    "batch_norm_training": "keras_batch_training({args}, {epsilon})",
    "group_norm": "keras_group_norm({args}, {groups}, {epsilon})",
    "instance_norm": "keras_group_norm({args}, {shape0}[1], {epsilon})",
    "resize_nearest": attribute("mode", "center", "keras.ops.image.resize has one mode", _resize("nearest")),
    "resize_linear": attribute("mode", "center", "keras.ops.image.resize has one mode", _resize("bilinear")),
    "resize_cubic": attribute("mode", "keys", "keras.ops.image.resize has one mode", _resize("bicubic")),
    "resize_antialias": _resize("bilinear", antialias=True),
    "upsample_nearest": f"keras.layers.UpSampling2D({{factor}}, data_format='{_FIRST}', dtype={{dtype}})({{0}})",
    "attention": lambda call: _attention(is_causal=str(call.attrs["causal"])),
    "attention_masked": lambda call: _attention(mask=_wide(call)),
    "attention_biased": lambda call: _attention(bias=_wide(call)),
    "unfold": "keras.ops.unfold({0}, {kernel}, dilation={dilation}, padding={padding}, stride={stride})",
    "fold": _fold,
    "image_patches": _patches,
    **{
        name: where(
            lambda call: call.operands[0].rank in (3, 4),
            "keras.ops.image has images",
            f"keras.ops.image.{name}({{0}}, data_format='{_LAST}')",
        )
        for name in ("rgb_to_hsv", "hsv_to_rgb")
    },
    "ctc_loss": _ctc,
    "rnn": "keras_rnn({args}, {activation}, {direction}, {output})",
    "gru": "keras_gru({args}, {reset}, {direction}, {output})",
    "lstm": "keras_lstm({args}, {direction}, {output})",
    "bce_with_logits": _reduced("keras.ops.binary_crossentropy({1}, {0}, from_logits=True)"),
    "cross_entropy": where(
        lambda call: call.operands[0].rank > 1,
        "keras.ops.sparse_categorical_crossentropy has a batch",
        _reduced("keras.ops.sparse_categorical_crossentropy({1}, keras.ops.moveaxis({0}, 1, -1), from_logits=True)"),
    ),
    "softmax_cross_entropy": attribute(
        "output", "loss", "keras.ops has the loss", "keras.ops.categorical_crossentropy({1}, {0}, from_logits=True)"
    ),
    "mse_loss": _reduced("keras.ops.square(keras.ops.subtract({0}, {1}))"),
    "l1_loss": _reduced("keras.ops.abs(keras.ops.subtract({0}, {1}))"),
    "dropout_off": "keras.layers.Dropout({rate}, dtype={dtype})({0}, training=False)",
}
