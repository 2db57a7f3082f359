"""Networks that published studies train, by name, for samples of any shape (channels, rows, columns) and any number of
classes. width: channels of the first convolution (0: the published number); all others keep their ratio to it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from generators.training.architectures.dense import densenet121, densenet169, densenet201
from generators.training.architectures.inception import inceptionv3, xception
from generators.training.architectures.mobile import efficientnet, mobilenet
from generators.training.architectures.plain import mediumcnn, smallcnn, vgg16, vgg19
from generators.training.architectures.residual import resnet18, resnet29v2, resnet50, resnet101, resnet152
from generators.training.networks import Network, NetworkError, Shape

ARCHITECTURES: dict[str, Callable[[Shape, int, int], Network]] = {
    "smallcnn": smallcnn,
    "mediumcnn": mediumcnn,
    "resnet18": resnet18,
    "resnet29v2": resnet29v2,
    "resnet50": resnet50,
    "resnet101": resnet101,
    "resnet152": resnet152,
    "vgg16": vgg16,
    "vgg19": vgg19,
    "densenet121": densenet121,
    "densenet169": densenet169,
    "densenet201": densenet201,
    "inceptionv3": inceptionv3,
    "xception": xception,
    "mobilenet": mobilenet,
    "efficientnetb0": efficientnet,
    "efficientnetb1": partial(efficientnet, wider=1.0, deeper=1.1),
    "efficientnetb2": partial(efficientnet, wider=1.1, deeper=1.2),
    "efficientnetb4": partial(efficientnet, wider=1.4, deeper=1.8),
    "efficientnetb7": partial(efficientnet, wider=2.0, deeper=3.1),
}


def architecture(name: str, shape: Shape, classes: int, width: int = 0) -> Network:
    """The network of this name. Raises NetworkError where there is none, or a sample is no picture or too small."""
    if name not in ARCHITECTURES:
        raise NetworkError(f"no network is called {name!r}; there are {', '.join(ARCHITECTURES)}")
    if len(shape) != 3:
        raise NetworkError(f"{name} takes samples of channels, rows and columns, not of shape {shape}")
    return ARCHITECTURES[name](shape, classes, width)
