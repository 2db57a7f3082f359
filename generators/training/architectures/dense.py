"""Networks in which every layer takes what all earlier ones of its stage give (Huang et al., Densely Connected
Convolutional Networks, 2017)."""

from __future__ import annotations

from generators.training.architectures.images import Images
from generators.training.networks import INPUT, Network, Shape


def densenet121(shape: Shape, classes: int, width: int = 0) -> Network:
    """Stages of 6, 12, 24 and 16 blocks; each block adds half as many channels as the first convolution has."""
    return _dense(shape, classes, width or 64, (6, 12, 24, 16))


def densenet169(shape: Shape, classes: int, width: int = 0) -> Network:
    """The same with 6, 12, 32 and 32 blocks."""
    return _dense(shape, classes, width or 64, (6, 12, 32, 32))


def densenet201(shape: Shape, classes: int, width: int = 0) -> Network:
    """The same with 6, 12, 48 and 32 blocks."""
    return _dense(shape, classes, width or 64, (6, 12, 48, 32))


def _dense(shape: Shape, classes: int, base: int, counts: tuple[int, ...]) -> Network:
    made, growth = Images(shape), max(1, base // 2)

    def normal(source: str) -> str:
        return made.add("relu", made.add("batch_norm", source))

    value = made.add("relu", made.normed(INPUT, base, 7, 2))
    value = made.add("max_pool", value, kernel=3, stride=2)
    for stage, count in enumerate(counts):
        for _ in range(count):
            inner = made.add("relu", made.normed(normal(value), 4 * growth, 1))
            value = made.add("concat", value, made.convolved(inner, growth, 3))
        if stage < len(counts) - 1:
            value = made.convolved(normal(value), max(1, made.shapes[value][0] // 2), 1)
            if min(made.shapes[value][1:]) > 1:
                value = made.add("avg_pool", value, kernel=2, stride=2, pad=0)
    return made.done(made.add("mean", normal(value)), classes)
