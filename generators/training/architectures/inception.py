"""Inception (Szegedy et al., Rethinking the Inception Architecture for Computer Vision, 2015) and Xception (Chollet,
Xception: Deep Learning with Depthwise Separable Convolutions, 2017), as Keras has them."""

from __future__ import annotations

from generators.training.architectures.images import Images
from generators.training.networks import INPUT, Network, NetworkError, Shape

LEAST = 75
"""Rows and columns that are left of none in Inception's windows without padding, as Keras' documentation says, too."""


class _Inception(Images):
    def unit(self, source: str, channels: int, kernel: int, stride: int = 1, *, across: int = 0, pad: int = 1) -> str:
        """A convolution, normalisation and relu."""
        return self.add("relu", self.normed(source, self.scaled(channels), kernel, stride, across=across, pad=pad))

    def chain(self, source: str, *steps: tuple[int, int, int]) -> str:
        """Convolutions one behind the other: channels, rows and columns of the windows."""
        for channels, rows, columns in steps:
            source = self.unit(source, channels, rows, across=columns)
        return source

    def pooled(self, source: str) -> str:
        """The mean of each 3 x 3."""
        return self.add("avg_pool", source, kernel=3, stride=1)


def inceptionv3(shape: Shape, classes: int, width: int = 0) -> Network:
    """Version 3, without its second output. Raises NetworkError for pictures below 75 rows or columns."""
    if min(shape[1:]) < LEAST:
        size = f"{shape[1]} x {shape[2]}"
        raise NetworkError(f"inceptionv3 takes pictures of {LEAST} rows and columns or more, not {size}")
    made = _Inception(shape, (width or 32) / 32)
    value = made.unit(INPUT, 32, 3, 2, pad=0)
    value = made.unit(made.unit(value, 32, 3, pad=0), 64, 3)
    value = made.add("max_pool", value, kernel=3, stride=2, pad=0)
    value = made.unit(made.unit(value, 80, 1, pad=0), 192, 3, pad=0)
    value = made.add("max_pool", value, kernel=3, stride=2, pad=0)
    for pooled in (32, 64, 64):
        value = made.add(
            "concat", made.unit(value, 64, 1), made.chain(value, (48, 1, 1), (64, 5, 5)),
            made.chain(value, (64, 1, 1), (96, 3, 3), (96, 3, 3)), made.unit(made.pooled(value), pooled, 1),
        )  # fmt: skip
    wide = made.unit(made.chain(value, (64, 1, 1), (96, 3, 3)), 96, 3, 2, pad=0)
    largest = made.add("max_pool", value, kernel=3, stride=2, pad=0)
    value = made.add("concat", made.unit(value, 384, 3, 2, pad=0), wide, largest)
    for inner in (128, 160, 160, 192):
        value = made.add(
            "concat", made.unit(value, 192, 1), made.chain(value, (inner, 1, 1), (inner, 1, 7), (192, 7, 1)),
            made.chain(value, (inner, 1, 1), (inner, 7, 1), (inner, 1, 7), (inner, 7, 1), (192, 1, 7)),
            made.unit(made.pooled(value), 192, 1),
        )  # fmt: skip
    short = made.unit(made.unit(value, 192, 1), 320, 3, 2, pad=0)
    long = made.unit(made.chain(value, (192, 1, 1), (192, 1, 7), (192, 7, 1)), 192, 3, 2, pad=0)
    value = made.add("concat", short, long, made.add("max_pool", value, kernel=3, stride=2, pad=0))
    for _ in range(2):
        short, long = made.unit(value, 384, 1), made.chain(value, (448, 1, 1), (384, 3, 3))
        forked = [made.chain(branch, (384, *window)) for branch in (short, long) for window in ((1, 3), (3, 1))]
        value = made.add("concat", made.unit(value, 320, 1), *forked, made.unit(made.pooled(value), 192, 1))
    return made.done(made.add("mean", value), classes)


def xception(shape: Shape, classes: int, width: int = 0) -> Network:
    """Windows of each channel by itself before those of one point; 8 blocks in the middle."""
    made = Images(shape, (width or 32) / 32)

    def separable(source: str, channels: int) -> str:
        return made.normed(made.depthwise(source, 3), made.scaled(channels), 1)

    def down(source: str, inner: int, channels: int, first: bool) -> str:
        aside = made.normed(source, made.scaled(channels), 1, 2)
        main = separable(made.add("relu", source) if first else source, inner)
        main = separable(made.add("relu", main), channels)
        return made.add("add", made.add("max_pool", main, kernel=3, stride=2), aside)

    value = made.add("relu", made.normed(INPUT, made.scaled(32), 3, 2, pad=0))
    value = made.add("relu", made.normed(value, made.scaled(64), 3, pad=0))
    for number, channels in enumerate((128, 256, 728)):
        value = down(value, channels, channels, first=number > 0)
    for _ in range(8):
        inner = value
        for _ in range(3):
            inner = separable(made.add("relu", inner), 728)
        value = made.add("add", inner, value)
    value = down(value, 728, 1024, first=True)
    for channels in (1536, 2048):
        value = made.add("relu", separable(value, channels))
    return made.done(made.add("mean", value), classes)
