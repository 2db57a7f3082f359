"""Images as inputs: decoded in a worker, prepared as a file says."""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from harness.conversions.model_file import FormatError, Port
from harness.execute.pool import Limits, Pool
from harness.models.given.images import ImagePreprocessing, pixels_of, prepared
from harness.models.given.media import read_folder

RNG = np.random.default_rng(11)
IMAGES = Port("x", "float32", (None, 3, 4, 5))


def image(path: Path, size: tuple[int, int]) -> np.ndarray:
    """A file of random pixels, and the pixels."""
    pixels = RNG.integers(256, size=(*size, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(path)
    return pixels


def test_images_are_prepared_as_the_file_says(tmp_path: Path) -> None:
    pixels = image(tmp_path / "b.png", (4, 5))
    image(tmp_path / "a.png", (4, 5))
    (tmp_path / "how.toml").write_text(
        'size = [4, 5]\nmean = [0.5, 0.4, 0.3]\nstd = [0.2, 0.2, 0.25]\nchannels = "bgr"\n'
    )
    with Pool() as pool:
        _, (array,) = read_folder(pool, tmp_path, tmp_path / "how.toml", [IMAGES])
    value = (pixels[..., ::-1] / 255 - [0.5, 0.4, 0.3]) / [0.2, 0.2, 0.25]
    assert array.dtype == np.float32
    assert np.allclose(array[0], np.moveaxis(value, -1, 0), rtol=1e-6)
    cropped = prepared(pixels, ImagePreprocessing((2, 2), "nearest", 4, 1, layout="nhwc", dtype="uint8"))
    assert (cropped == pixels[1:3, 1:3]).all()


def test_files_that_are_no_images(tmp_path: Path) -> None:
    """A text, a program in another format that Pillow knows, and one that says to have more pixels than any."""
    image(tmp_path / "good.png", (4, 5))
    (tmp_path / "text.png").write_text("text")
    (tmp_path / "page.jpg").write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 5 5\n")
    bomb = bytearray((tmp_path / "good.png").read_bytes())
    bomb[16:24] = (60_000).to_bytes(4, "big") * 2
    bomb[29:33] = zlib.crc32(bomb[12:29]).to_bytes(4, "big")
    (tmp_path / "bomb.png").write_bytes(bomb)
    with Pool(Limits(seconds=10.0, memory=1 << 30)) as pool:
        assert pixels_of(pool, [tmp_path / "good.png"])[0].shape == (4, 5, 3)
        for name, told in (
            ("text.png", "cannot identify"),
            ("page.jpg", "cannot identify"),
            ("bomb.png", "Decompression"),
        ):
            with pytest.raises(FormatError, match=rf"cannot read .*{name} as an image: .*{told}"):
                pixels_of(pool, [tmp_path / name])
