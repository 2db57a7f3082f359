"""Data sets in their published formats, on files of a few samples."""

from __future__ import annotations

import io
import os
import pickle
import struct
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from PIL import Image

from harness.execute.reading import FileError
from harness.studies.datasets import load
from harness.studies.datasets.dataset import Pictures


def picture(path: Path, colour: tuple[int, int, int], size: tuple[int, int] = (12, 8)) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, colour).save(path)


def cifar(folder: Path, labels: int) -> np.ndarray:
    """Files of CIFAR's binary version, two records each; returns the pixels of the first training record."""
    rng = np.random.default_rng(0)

    def write(name: str, fine: tuple[int, ...]) -> np.ndarray:
        pixels = rng.integers(0, 256, (len(fine), 3072), np.uint8)
        heads = np.array([[7] * (labels - 1) + [label] for label in fine], np.uint8)
        (folder / name).write_bytes(np.concatenate([heads, pixels], 1).tobytes())
        return pixels

    if labels == 1:
        first, *_ = [write(f"data_batch_{number}.bin", (number, 0)) for number in range(1, 6)]
        write("test_batch.bin", (3, 9))
        (folder / "batches.meta.txt").write_text("\n".join(f"class{i}" for i in range(10)) + "\n\n")
        return first[0]
    first = write("train.bin", (99, 5))
    write("test.bin", (3, 1))
    (folder / "fine_label_names.txt").write_text("\n".join(f"class{i}" for i in range(100)) + "\n")
    return first[0]


def test_digits() -> None:
    data = load("digits")
    assert (data.train.shape, data.test.shape) == ((1438, 1, 8, 8), (359, 1, 8, 8))
    assert (data.train[:1].dtype, data.train_labels.dtype, len(data.classes)) == (np.float32, np.int64, 10)
    assert load("digits", train=3, test=2).test_labels.tolist() == data.test_labels[:2].tolist()


@pytest.mark.parametrize(("name", "labels", "expected"), [("cifar10", 1, [1, 0, 2]), ("cifar100", 2, [99, 5])])
def test_cifar(tmp_path: Path, name: str, labels: int, expected: list[int]) -> None:
    pixels = cifar(tmp_path, labels)
    data = load(name, tmp_path)
    assert data.train_labels[: len(expected)].tolist() == expected
    assert data.test_labels.tolist() == ([3, 9] if labels == 1 else [3, 1])
    np.testing.assert_array_equal(data.train[:1][0], pixels.reshape(3, 32, 32).astype(np.float32) / np.float32(255))


class Python2(pickle._Pickler):
    """Writes strings as Python 2 does, in opcodes that the pickler of Python 3 no longer writes."""

    dispatch: ClassVar[dict[type, Callable[..., None]]] = dict(pickle._Pickler.dispatch)
    write: Callable[[bytes], None]
    memoize: Callable[[object], None]

    def save_string(self, value: str | bytes) -> None:
        data = value.encode() if isinstance(value, str) else value
        self.write(pickle.BINSTRING + struct.pack("<i", len(data)) + data)
        self.memoize(value)

    dispatch[str] = dispatch[bytes] = save_string


def pickled(path: Path, value: object) -> None:
    """Protocol 2, and the names of numpy before 2.0."""
    Python2(file := io.BytesIO(), 2).dump(value)
    path.write_bytes(file.getvalue().replace(b"numpy._core.multiarray", b"numpy.core.multiarray"))


@pytest.mark.parametrize("name", ["cifar10", "cifar100"])
def test_pickles_of_cifar_are_the_same_samples(tmp_path: Path, name: str) -> None:
    """The Python version against the binary one."""
    (binary := tmp_path / "binary").mkdir()
    (python := tmp_path / "python").mkdir()
    cifar(binary, 1 if name == "cifar10" else 2)
    wanted = load(name, binary)
    count = len(wanted.classes)
    labels, names = (b"labels", "label_names") if count == 10 else (b"fine_labels", "fine_label_names")
    files = [f"data_batch_{number}" for number in range(1, 6)] if count == 10 else ["train"]
    bytes_, held = ((x[:] * 255).round().astype(np.uint8).reshape(-1, 3072) for x in (wanted.train, wanted.test))
    size = len(bytes_) // len(files)
    for number, file in enumerate(files):
        rows = slice(number * size, (number + 1) * size)
        pickled(python / file, {b"data": bytes_[rows], labels: wanted.train_labels[rows].tolist()})
    test = "test_batch" if count == 10 else "test"
    pickled(python / test, {b"data": held, labels: wanted.test_labels.tolist()})
    pickled(python / ("batches.meta" if count == 10 else "meta"), {names.encode(): [b"a"] * count})
    found = load(name, python)
    for field in ("train", "train_labels", "test", "test_labels"):
        np.testing.assert_array_equal(getattr(found, field), getattr(wanted, field), field)
    assert found.classes == ("a",) * count


class Harmful:
    """Whose pickle calls a function when it is read."""

    def __init__(self, *call: object) -> None:
        self.call = call

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return self.call[0], self.call[1:]


def test_pickles_run_nothing(tmp_path: Path) -> None:
    """A pickle that names a function, or a class of numpy that no array needs, is refused before it is called."""
    (tmp_path / "batches.meta").touch()
    made, path = tmp_path / "made", tmp_path / "data_batch_1"
    pixels = np.zeros((1, 3072), np.uint8)
    cases: list[tuple[object, str]] = [
        (Harmful(os.mkdir, str(made)), r"it names (posix|os)\.mkdir"),
        (Harmful(eval, "1"), r"it names __builtin__\.eval"),
        (Harmful(np.load, str(made)), r"it names numpy.*load"),
        ({b"data": np.array([None]), b"labels": [1]}, "data is no array of bytes"),
        ({b"data": pixels, b"labels": [1, 2]}, "1 samples and 2 labels"),
        ({b"data": pixels, b"labels": [-1]}, "labels is no list of labels"),
        ([1], "a list, not a dict"),
    ]
    for value, message in cases:
        pickled(path, value)
        with pytest.raises(FileError, match=message):
            load("cifar10", tmp_path)
    pickled(path, {b"data": pixels, b"labels": [1]})
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(FileError, match="data_batch_1: no pickle of CIFAR"):
        load("cifar10", tmp_path)
    assert not made.exists()


def test_celeba(tmp_path: Path) -> None:
    names = "Bald Blond_Hair Male Young"
    rows = ["000001.png -1  1 -1  1", "000002.png  1 -1  1 -1", "000003.png -1  1  1  1"]
    (tmp_path / "list_attr_celeba.txt").write_text("\n".join(["3", names, *rows]) + "\n")
    (tmp_path / "list_eval_partition.txt").write_text("000001.png 0\n000002.png 2\n000003.png 2\n")
    for number in (1, 2, 3):
        picture(tmp_path / "img_align_celeba" / f"00000{number}.png", (255, 0, 51 * number))
    data = load("celeba", tmp_path, side=4)
    assert (data.train_labels.tolist(), data.test_labels.tolist()) == ([1], [0, 1])
    assert {name: mask.tolist() for name, mask in data.subgroups.items()} == {
        "male": [True, True], "female": [False, False], "young": [False, True], "old": [True, False],
    }  # fmt: skip
    assert isinstance(data.test, Pictures)
    np.testing.assert_allclose(data.test[np.array([1])][0, :, 0, 0], [1, 0, 0.6], atol=1e-6)


@pytest.mark.parametrize("flat", [False, True])
def test_imagenet(tmp_path: Path, flat: bool) -> None:
    for wnid, blue in (("n01440764", 0), ("n01443537", 255)):
        picture(tmp_path / "train" / wnid / f"{wnid}_1.JPEG", (0, 0, blue))
        picture(tmp_path / "val" / ("" if flat else wnid) / f"ILSVRC2012_val_{wnid}.JPEG", (0, 0, blue), (8, 20))
    if flat:
        lines = [f"ILSVRC2012_val_{wnid},{wnid} 1 2 3 4 " for wnid in ("n01443537", "n01440764")]
        (tmp_path / "LOC_val_solution.csv").write_text("\n".join(["ImageId,PredictionString", *lines]))
    data = load("imagenet", tmp_path, side=8)
    assert data.classes == ("n01440764", "n01443537")
    assert (data.train_labels.tolist(), data.test_labels.tolist(), data.shape) == ([0, 1], [0, 1], (3, 8, 8))
    np.testing.assert_allclose(data.test[np.arange(2)][:, 2].mean((1, 2)), [0, 1], atol=0.02)


def test_what_is_wrong_is_one_line_with_a_name(tmp_path: Path) -> None:
    cases: list[tuple[str, Path | None, str]] = [
        ("mnist", None, "no data set is called 'mnist'"),
        ("cifar10", None, "cifar10 is read from a folder"),
        ("cifar10", tmp_path, "data_batch_1.bin: No such file"),
        ("imagenet", tmp_path, "train: No such file"),
        ("celeba", tmp_path, "list_attr_celeba.txt: No such file"),
    ]
    for name, folder, message in cases:
        with pytest.raises(FileError, match=message):
            load(name, folder)
    (tmp_path / "train.bin").write_bytes(b"123")
    with pytest.raises(FileError, match=r"train\.bin: 3 bytes are no records of 3074"):
        load("cifar100", tmp_path)
    (tmp_path / "list_attr_celeba.txt").write_text("1\nBlond_Hair Male\n")
    with pytest.raises(FileError, match="does not name Young"):
        load("celeba", tmp_path)
    picture(tmp_path / "train" / "a" / "broken.jpeg", (0, 0, 0))
    (tmp_path / "train" / "a" / "broken.jpeg").write_bytes(b"\xff\xd8\xff")
    picture(tmp_path / "val" / "a" / "fine.jpeg", (0, 0, 0))
    data = load("imagenet", tmp_path, side=4)
    with pytest.raises(FileError, match=r"broken\.jpeg: not a picture"):
        data.train[np.array([0])]
