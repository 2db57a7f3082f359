"""Files of inputs that say more than they have, or unpack to more than is read: one line, before memory is taken."""

from __future__ import annotations

import io
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest

from harness.conversions.model_file import FormatError, Port
from harness.models.given import inputs

PORTS = [Port("x", "float32", (None, 3))]


def _array(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, array, allow_pickle=True)
    return file.getvalue()


def _zipped(path: Path, data: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", data)
    return path


def test_what_it_holds_is_read(tmp_path: Path) -> None:
    path = _zipped(tmp_path / "i.npz", _array(np.ones((1, 3), np.float32)))
    assert inputs.read_arrays(path, PORTS)[0][0].tolist() == [[1, 1, 1]]


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (_array(np.ones((1, 3), np.float32)).replace(b"(1, 3)", b"(9, 9)"), r"12 bytes for float32\[9, 9\]"),
        (_array(np.array([{}], dtype=object)), "objects, which are not read"),
        (b"\x93NUMPY\x09\x00", "unknown version"),
        (b"", "cannot read"),
    ],
)
def test_an_array_that_lies_is_one_line(data: bytes, told: str, tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=told) as caught:
        inputs.read_arrays(_zipped(tmp_path / "i.npz", data), PORTS)
    assert str(caught.value).isprintable()


def test_a_zip_bomb_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = _zipped(tmp_path / "i.npz", bytes(32 << 20))
    monkeypatch.setattr(inputs, "LARGEST", 16 << 20)
    tracemalloc.start()
    try:
        with pytest.raises(FormatError, match="more than 16777216 bytes when it is unpacked"):
            inputs.read_arrays(path, PORTS)
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()
