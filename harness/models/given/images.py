"""Images of strangers, decoded in a worker, which is confined where the model's are: decoders are native code."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from harness.conversions.model_file import FormatError, why_not
from harness.execute.pool import Job, Pool
from oracles.judge.outcome import Value

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".webp")

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


def images_of(folder: Path) -> list[Path]:
    """Its images in the order of their names."""
    return sorted(path for path in folder.iterdir() if path.suffix.lower() in SUFFIXES)


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
