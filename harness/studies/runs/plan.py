"""What the runs of a study have in common, and what one of them has of its own."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from generators.training.architectures.named import architecture
from harness.studies.datasets import load
from harness.studies.datasets.dataset import DataSet
from harness.studies.loops.loop import Loop

AUGMENTATIONS = ("none", "crop", "crop+flip")
DROP = 0.1
"""What the learning rate is multiplied by at each of the epochs at which it drops."""


@dataclass(frozen=True)
class Plan:
    """dataset, folder, side, train, test: as `datasets.load` takes them; network, width: as `architecture` does; rate:
    the learning rate, drops: epochs from which it is a tenth of what it was; augment: of AUGMENTATIONS; timeout:
    seconds that one epoch may take."""

    dataset: str = "digits"
    folder: Path | None = None
    side: int = 0
    train: int = 0
    test: int = 0
    network: str = "smallcnn"
    width: int = 0
    optimizer: str = "adam"
    rate: float = 4e-4
    drops: tuple[int, ...] = (50, 100)
    batch: int = 128
    epochs: int = 200
    augment: str = "none"
    device: str = "cpu"
    timeout: float = 3600.0

    @property
    def about(self) -> dict[str, str]:
        """What results depend on."""
        kept = {name: value for name, value in asdict(self).items() if name not in ("folder", "timeout")}
        return {name: str(value) for name, value in kept.items()}

    def data(self) -> DataSet:
        """Raises FileError."""
        return load(self.dataset, self.folder, self.side, self.train, self.test)

    def loop(self, data: DataSet, run: Run) -> Loop:
        """Raises NetworkError."""
        network = architecture(self.network, data.shape, len(data.classes), self.width)
        return Loop(
            run.framework, network, self.optimizer, batch=self.batch, deterministic=run.deterministic,
            device=self.device,
        )  # fmt: skip

    def rates(self, epoch: int, steps: int) -> np.ndarray:
        """Of each step of an epoch, float64."""
        return np.full(steps, self.rate * DROP ** sum(epoch >= drop for drop in self.drops))


@dataclass(frozen=True)
class Run:
    """group: that it belongs to; number: in its group; init, order: seeds; deterministic: is the framework in its
    documented deterministic mode? threads: of its process."""

    framework: str
    group: str
    number: int
    init: int
    order: int
    deterministic: bool = True
    threads: int = 1

    @property
    def name(self) -> str:
        """Of its file."""
        return f"{self.framework}-{self.group}-{self.number}"

    def again(self, **changes: int) -> Run:
        """The run with something else."""
        return replace(self, **changes)


def augmented(x: np.ndarray, seed: int, epoch: int, how: str) -> np.ndarray:
    """Each picture moved by up to an eighth of its side, black coming in, and, with `crop+flip`, half of them mirrored.
    x: (n, channels, rows, columns)."""
    if how == "none" or not len(x):
        return x
    rng = np.random.default_rng((seed, epoch))
    most = max(1, x.shape[-1] // 8)
    padded = np.pad(x, ((0, 0), (0, 0), (most, most), (most, most)))
    down, across = rng.integers(0, 2 * most + 1, (2, len(x)))
    rows = down[:, None, None] + np.arange(x.shape[2])[None, :, None]
    columns = across[:, None, None] + np.arange(x.shape[3])[None, None, :]
    found = padded[np.arange(len(x))[:, None, None], :, rows, columns].transpose(0, 3, 1, 2)
    if how == "crop+flip":
        mirrored = rng.random(len(x)) < 0.5
        found[mirrored] = found[mirrored, :, :, ::-1]
    return np.ascontiguousarray(found)
