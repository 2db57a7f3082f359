"""Networks of convolutions one behind the other."""

from __future__ import annotations

from generators.training.architectures.images import Images
from generators.training.networks import INPUT, Network, Shape


def smallcnn(shape: Shape, classes: int, width: int = 0) -> Network:
    """Three convolutions, as the three-layer network of Zhuang et al. (Randomness in Neural Network Training, MLSys
    2022): 16, 32 and 32 channels, the first two before a maximum of 2 x 2, and one dense layer."""
    made, value, base = Images(shape), INPUT, width or 16
    for number, channels in enumerate((base, 2 * base, 2 * base)):
        value = made.add("relu", made.convolved(value, channels, 3, bias=True))
        if number < 2:
            value = made.halved(value)
    return made.done(made.add("flatten", value), classes)


def mediumcnn(shape: Shape, classes: int, width: int = 0, kernel: int = 3) -> Network:
    """Six convolutions with windows of one size, normalised, each with twice the channels of the one before and before
    a maximum of 2 x 2: the network whose kernels Zhuang et al. time, for windows of 1, 3, 5 and 7 (16 to 512
    channels). Windows of even size make a row and a column more."""
    made, value, channels = Images(shape), INPUT, width or 16
    for _ in range(6):
        value = made.add("relu", made.add("batch_norm", made.convolved(value, channels, kernel, bias=True)))
        value, channels = made.halved(value), 2 * channels
    return made.done(made.add("mean", value), classes)


def vgg16(shape: Shape, classes: int, width: int = 0) -> Network:
    """Simonyan and Zisserman, Very Deep Convolutional Networks for Large-Scale Image Recognition, 2014, without
    dropout, as Keras has it."""
    return _vgg(shape, classes, width or 64, (2, 2, 3, 3, 3))


def vgg19(shape: Shape, classes: int, width: int = 0) -> Network:
    """The same with four convolutions in the last three stages."""
    return _vgg(shape, classes, width or 64, (2, 2, 4, 4, 4))


def _vgg(shape: Shape, classes: int, base: int, counts: tuple[int, ...]) -> Network:
    made, value = Images(shape), INPUT
    for stage, count in enumerate(counts):
        for _ in range(count):
            value = made.add("relu", made.convolved(value, base * 2 ** min(stage, 3), 3, bias=True))
        value = made.halved(value)
    value = made.add("flatten", value)
    for _ in range(2):
        value = made.add("relu", made.add("linear", value, features=64 * base, bias=1))
    return made.done(value, classes)
