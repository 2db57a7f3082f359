"""Networks that published studies train, by name, for samples of any shape (channels, rows, columns) and any number of
classes. width: channels of the first convolution (0: the published number); all others keep their ratio to it."""

from __future__ import annotations

from collections.abc import Callable

from generators.training.blocks import Layers
from generators.training.networks import INPUT, Network, NetworkError, Shape, checked

SMALL = 64
"""Rows of samples up to which a ResNet begins as for CIFAR: with a convolution of 3 x 3 and no pooling."""


class _Images(Layers):
    """A network of convolutions in the making."""

    def convolved(self, source: str, channels: int, kernel: int, stride: int = 1, bias: bool = False) -> str:
        """A convolution alone."""
        return self.add("conv2d", source, channels=channels, kernel=kernel, stride=stride, bias=int(bias))

    def normed(self, source: str, channels: int, kernel: int, stride: int = 1) -> str:
        """A convolution without biases, and batch normalisation."""
        return self.add("batch_norm", self.convolved(source, channels, kernel, stride))

    def done(self, source: str, classes: int) -> Network:
        """With the dense layer of the classes."""
        self.add("linear", source, features=classes, bias=1)
        return checked(Network(self.shapes[INPUT], 0, tuple(self.layers)))


def smallcnn(shape: Shape, classes: int, width: int = 0) -> Network:
    """Three convolutions, as the three-layer network of Zhuang et al. (Randomness in Neural Network Training, MLSys
    2022): 16, 32 and 32 channels, the first two before a maximum of 2 x 2, and one dense layer."""
    made, value, base = _Images(shape), INPUT, width or 16
    for number, channels in enumerate((base, 2 * base, 2 * base)):
        value = made.add("relu", made.convolved(value, channels, 3, bias=True))
        if number < 2 and min(made.shapes[value][1:]) > 1:
            value = made.add("max_pool", value, kernel=2, stride=2)
    return made.done(made.add("flatten", value), classes)


def resnet18(shape: Shape, classes: int, width: int = 0) -> Network:
    """He et al., Deep Residual Learning for Image Recognition, 2015: two blocks of two convolutions a stage."""
    return _residual(shape, classes, width or 64, (2, 2, 2, 2), _basic)


def resnet50(shape: Shape, classes: int, width: int = 0) -> Network:
    """The same with 3, 4, 6 and 3 bottlenecks, which step in their convolution of 3 x 3 (as torchvision's do)."""
    return _residual(shape, classes, width or 64, (3, 4, 6, 3), _bottleneck)


def _basic(made: _Images, source: str, channels: int, stride: int) -> str:
    inner = made.add("relu", made.normed(source, channels, 3, stride))
    return made.normed(inner, channels, 3)


def _bottleneck(made: _Images, source: str, channels: int, stride: int) -> str:
    inner = made.add("relu", made.normed(source, channels, 1))
    inner = made.add("relu", made.normed(inner, channels, 3, stride))
    return made.normed(inner, 4 * channels, 1)


def _residual(
    shape: Shape, classes: int, base: int, counts: tuple[int, ...], block: Callable[[_Images, str, int, int], str]
) -> Network:
    made = _Images(shape)
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
    made, base = _Images(shape), width or 16

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


ARCHITECTURES: dict[str, Callable[[Shape, int, int], Network]] = {
    "smallcnn": smallcnn, "resnet18": resnet18, "resnet50": resnet50, "resnet29v2": resnet29v2,
}  # fmt: skip


def architecture(name: str, shape: Shape, classes: int, width: int = 0) -> Network:
    """The network of this name. Raises NetworkError where there is none, or a sample is no picture."""
    if name not in ARCHITECTURES:
        raise NetworkError(f"no network is called {name!r}; there are {', '.join(ARCHITECTURES)}")
    if len(shape) != 3:
        raise NetworkError(f"{name} takes samples of channels, rows and columns, not of shape {shape}")
    return ARCHITECTURES[name](shape, classes, width)
