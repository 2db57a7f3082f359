"""Networks of residual blocks."""

from __future__ import annotations

from collections.abc import Callable

from generators.training.architectures.images import Images
from generators.training.networks import INPUT, Network, Shape

SMALL = 64
"""Rows of samples up to which a ResNet begins as for CIFAR: with a convolution of 3 x 3 and no pooling."""


def resnet18(shape: Shape, classes: int, width: int = 0) -> Network:
    """He et al., Deep Residual Learning for Image Recognition, 2015: two blocks of two convolutions a stage."""
    return _residual(shape, classes, width or 64, (2, 2, 2, 2), _basic)


def resnet50(shape: Shape, classes: int, width: int = 0) -> Network:
    """The same with 3, 4, 6 and 3 bottlenecks, which step in their convolution of 3 x 3 (as torchvision's do)."""
    return _residual(shape, classes, width or 64, (3, 4, 6, 3), _bottleneck)


def resnet101(shape: Shape, classes: int, width: int = 0) -> Network:
    """The same with 3, 4, 23 and 3."""
    return _residual(shape, classes, width or 64, (3, 4, 23, 3), _bottleneck)


def resnet152(shape: Shape, classes: int, width: int = 0) -> Network:
    """The same with 3, 8, 36 and 3."""
    return _residual(shape, classes, width or 64, (3, 8, 36, 3), _bottleneck)


def _basic(made: Images, source: str, channels: int, stride: int) -> str:
    inner = made.add("relu", made.normed(source, channels, 3, stride))
    return made.normed(inner, channels, 3)


def _bottleneck(made: Images, source: str, channels: int, stride: int) -> str:
    inner = made.add("relu", made.normed(source, channels, 1))
    inner = made.add("relu", made.normed(inner, channels, 3, stride))
    return made.normed(inner, 4 * channels, 1)


def _residual(
    shape: Shape, classes: int, base: int, counts: tuple[int, ...], block: Callable[[Images, str, int, int], str]
) -> Network:
    made = Images(shape)
    if min(shape[1:]) > SMALL:
        value = made.add("relu", made.normed(INPUT, base, 7, 2))
        value = made.add("max_pool", value, kernel=3, stride=2)
    else:
        value = made.add("relu", made.normed(INPUT, base, 3))
    for stage, count in enumerate(counts):
        for number in range(count):
            stride = 2 if stage and not number else 1
            inner = block(made, value, base * 2**stage, stride)
            if made.shapes[inner] != made.shapes[value]:
                value = made.normed(value, made.shapes[inner][0], 1, stride)
            value = made.add("relu", made.add("add", inner, value))
    return made.done(made.add("mean", value), classes)


def resnet29v2(shape: Shape, classes: int, width: int = 0) -> Network:
    """The ResNet v2 of depth 29 of Keras' CIFAR-10 example, which Morin and Willetts train: three stages of three
    bottlenecks with normalisation in front of each convolution (He et al., Identity Mappings in Deep Residual Networks,
    2016)."""
    made, base = Images(shape), width or 16

    def normal(source: str) -> str:
        return made.add("relu", made.add("batch_norm", source))

    value = normal(made.convolved(INPUT, base, 3, bias=True))
    inner, outer = base, 4 * base
    for stage in range(3):
        for number in range(3):
            stride = 2 if stage and not number else 1
            first = value if not stage and not number else normal(value)
            branch = normal(made.convolved(first, inner, 1, stride, bias=True))
            branch = normal(made.convolved(branch, inner, 3, bias=True))
            branch = made.convolved(branch, outer, 1, bias=True)
            if not number:
                value = made.convolved(value, outer, 1, stride, bias=True)
            value = made.add("add", value, branch)
        inner, outer = outer, 2 * outer
    return made.done(made.add("mean", normal(value)), classes)
