"""MobileNet (Howard et al., 2017) and EfficientNet (Tan and Le, Rethinking Model Scaling for Convolutional Neural
Networks, 2019), as Keras has them but without dropout: what is random in a model has no place in a comparison."""

from __future__ import annotations

from math import ceil

from generators.training.architectures.images import Images
from generators.training.networks import INPUT, Network, Shape

_STAGES = (
    (1, 16, 1, 3, 1), (2, 24, 2, 3, 6), (2, 40, 2, 5, 6), (3, 80, 2, 3, 6), (3, 112, 1, 5, 6), (4, 192, 2, 5, 6),
    (1, 320, 1, 3, 6),
)  # fmt: skip
"""Of EfficientNet-B0: blocks, channels, the step of the first, window, and how many times wider a block is within."""


def mobilenet(shape: Shape, classes: int, width: int = 0) -> Network:
    """Thirteen windows of each channel by itself, each before one of one point."""
    made = Images(shape, (width or 32) / 32)
    value = made.add("relu", made.normed(INPUT, made.scaled(32), 3, 2))
    strides = {128: 2, 256: 2, 512: 2, 1024: 2}
    for channels in (64, 128, 128, 256, 256, *(512,) * 6, 1024, 1024):
        value = made.add("relu", made.add("batch_norm", made.depthwise(value, 3, strides.pop(channels, 1))))
        value = made.add("relu", made.normed(value, made.scaled(channels), 1))
    return made.done(made.add("mean", value), classes)


def efficientnet(shape: Shape, classes: int, width: int = 0, *, wider: float = 1.0, deeper: float = 1.0) -> Network:
    """wider, deeper: what channels and blocks of B0 are multiplied by."""
    made = Images(shape, wider * (width or 32) / 32)

    def channels_of(count: int) -> int:
        """Channels are multiples of 8, at least nine tenths of what the scale asks for."""
        asked = count * made.scale
        kept = max(8, int(asked + 4) // 8 * 8)
        return kept if kept >= 0.9 * asked else kept + 8

    value = made.add("silu", made.normed(INPUT, channels_of(32), 3, 2))
    for count, channels, first, kernel, expand in _STAGES:
        for number in range(ceil(count * deeper)):
            stride, before = first if not number else 1, made.shapes[value][0]
            inner = made.add("silu", made.normed(value, expand * before, 1)) if expand > 1 else value
            inner = made.add("silu", made.add("batch_norm", made.depthwise(inner, kernel, stride)))
            squeezed = made.add("linear", made.add("mean", inner), features=max(1, before // 4), bias=1)
            gates = made.add("linear", made.add("silu", squeezed), features=expand * before, bias=1)
            inner = made.add("scale", inner, made.add("sigmoid", gates))
            inner = made.normed(inner, channels_of(channels), 1)
            value = made.add("add", inner, value) if made.shapes[inner] == made.shapes[value] else inner
    value = made.add("silu", made.normed(value, channels_of(1280), 1))
    return made.done(made.add("mean", value), classes)
