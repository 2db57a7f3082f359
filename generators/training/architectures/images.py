"""Networks of convolutions in the making, for samples of channels, rows and columns."""

from __future__ import annotations

from generators.training.blocks import Layers
from generators.training.networks import INPUT, Network, Shape, checked


class Images(Layers):
    """A network in the making. scale: what all numbers of channels are multiplied by."""

    def __init__(self, shape: Shape, scale: float = 1.0) -> None:
        super().__init__(shape)
        self.scale = scale

    def scaled(self, channels: int) -> int:
        """So many channels in a network of another width."""
        return max(1, round(channels * self.scale))

    def convolved(
        self, source: str, channels: int, kernel: int, stride: int = 1, *,
        bias: bool = False, across: int = 0, pad: int = 1, groups: int = 1,
    ) -> str:  # fmt: skip
        """A convolution alone, with windows of `kernel` rows and as many columns or `across`. pad: 0 for none; groups:
        1, or the number of channels that come."""
        numbers = {"channels": channels, "kernel": kernel, "stride": stride, "bias": int(bias)}
        numbers |= {"across": across} if across else {}
        numbers |= ({} if pad else {"pad": 0}) | ({"groups": groups} if groups > 1 else {})
        return self.add("conv2d", source, tied="", **numbers)

    def normed(self, source: str, channels: int, kernel: int, stride: int = 1, *, across: int = 0, pad: int = 1) -> str:
        """A convolution without biases, and batch normalisation."""
        return self.add("batch_norm", self.convolved(source, channels, kernel, stride, across=across, pad=pad))

    def depthwise(self, source: str, kernel: int, stride: int = 1) -> str:
        """A convolution of each channel by itself, without biases."""
        channels = self.shapes[source][0]
        return self.convolved(source, channels, kernel, stride, groups=channels)

    def halved(self, source: str) -> str:
        """The greatest of each 2 x 2, as long as there are two rows and two columns."""
        if min(self.shapes[source][1:]) < 2:
            return source
        return self.add("max_pool", source, kernel=2, stride=2)

    def done(self, source: str, classes: int) -> Network:
        """With the dense layer of the classes."""
        self.add("linear", source, features=classes, bias=1)
        return checked(Network(self.shapes[INPUT], 0, tuple(self.layers)))
