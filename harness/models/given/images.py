"""Images as inputs: decoded in a worker, which is confined where the model's are, since decoders are native code; then
resized, cropped and scaled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
from PIL import Image

from harness.conversions.model_file import FormatError, why_not
from harness.execute.pool import Job, Pool
from oracles.judge.outcome import Value

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".webp")
RESAMPLING = {"nearest": 0, "bilinear": 2, "bicubic": 3, "area": 4, "lanczos": 1}
WIDEST = 1 << 14
"""Pixels of an image's side."""

_PROGRAM = """import warnings

import numpy as np
from PIL import Image

PATH = {path!r}
INPUTS, PARAMETERS = [], []


def load(parameters):
    def run():
        # more pixels than Pillow takes for an image at all: a file that was made to exhaust memory
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        with Image.open(PATH, formats=("PNG", "JPEG", "BMP", "WEBP")) as file:
            return [np.asarray(file.convert("RGB"))]

    return run
"""


@dataclass(frozen=True)
class ImagePreprocessing:
    """How an image becomes an array. size: height and width; resize: a key of RESAMPLING; shorter: the image is first
    resized so that its shorter side has this many pixels, and `size` is cropped from its centre (0: it is resized to
    `size`); scale: what a pixel (0 to 255) is multiplied with; mean, std: by channel, subtracted and divided by then;
    layout: nchw or nhwc; channels: rgb or bgr; dtype: of the array; constants: by name, what the model's other inputs
    are filled with."""

    size: tuple[int, int]
    resize: str = "bilinear"
    shorter: int = 0
    scale: float = 1 / 255
    mean: tuple[float, float, float] = (0.0, 0.0, 0.0)
    std: tuple[float, float, float] = (1.0, 1.0, 1.0)
    layout: Literal["nchw", "nhwc"] = "nchw"
    channels: Literal["rgb", "bgr"] = "rgb"
    dtype: Literal["float32", "float64", "float16", "uint8", "int8"] = "float32"
    constants: Mapping[str, float] = field(default_factory=dict)

    def wrong(self) -> str | None:
        """The first key whose value cannot be."""
        checks = {
            "size": 0 < min(self.size) <= max(self.size) <= WIDEST,
            "resize": self.resize in RESAMPLING,
            "shorter": self.shorter == 0 or max(self.size) <= self.shorter <= WIDEST,
            "std": 0 not in self.std,
        }
        return next((key for key, right in checks.items() if not right), None)


def pixels_of(pool: Pool, paths: list[Path]) -> list[np.ndarray]:
    """Each image as uint8 of (height, width, 3), red first. Raises FormatError."""
    texts = [_PROGRAM.format(path=str(path.resolve())) for path in paths]
    jobs = [Job("images", ("PIL.Image",), text, {}, reads=(path,)) for text, path in zip(texts, paths, strict=True)]
    found = []
    for path, outcome in zip(paths, pool.run(jobs, confirm=False), strict=True):
        if not isinstance(outcome, Value):
            raise FormatError(f"cannot read {path} as an image: {why_not(outcome)}")
        found.append(np.asarray(outcome.outputs[0]))
    return found


def prepared(pixels: np.ndarray, how: ImagePreprocessing) -> np.ndarray:
    """One image as an array without a batch. pixels: uint8 of (height, width, 3), red first."""
    image = Image.fromarray(pixels)
    height, width = how.size
    if how.shorter:
        share = how.shorter / min(image.size)
        image = image.resize((round(image.width * share), round(image.height * share)), RESAMPLING[how.resize])
        left, top = (image.width - width) // 2, (image.height - height) // 2
        image = image.crop((left, top, left + width, top + height))
    else:
        image = image.resize((width, height), RESAMPLING[how.resize])
    pixels = np.asarray(image).astype(np.float64)
    if how.channels == "bgr":
        pixels = pixels[..., ::-1]
    values = (pixels * how.scale - np.asarray(how.mean)) / np.asarray(how.std)
    if how.layout == "nchw":
        values = np.moveaxis(values, -1, 0)
    return np.ascontiguousarray(values.astype(how.dtype))
