"""Injections in the files of the published artifact (YLab-UChicago/ISCA_AE): comma-separated lines, each a key and its
value or values; `inj_pos` has a position a value, its indices between slashes.

The artifact computes gradients of convolutions by convolutions of its own, whose operands are padded, turned and
transposed; its positions are places in those. Here they become places of ours (`generators/faults/models.py`)."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite

from generators.faults.fault import FORWARD, TO_INPUT, TO_WEIGHT, Site
from generators.faults.models import MODELS, PUBLISHED
from generators.schema import DIGITS

KEYS = (
    "model", "stage", "fmodel", "target_worker", "target_layer", "target_epoch", "target_step", "inj_pos", "inj_values",
    "learning_rate", "seed",
)  # fmt: skip
SUFFIXES = {"_grad_in": TO_INPUT, "_grad_wt": TO_WEIGHT}
MOST = 64_000
"""Positions of one injection: a thousand groups of 64."""
Position = tuple[int, ...]


class ArtifactError(ValueError):
    """A file that holds no injection, or one that has no counterpart here; the message says why."""


@dataclass(frozen=True)
class ArtifactInjection:
    """What a file says. site: with the artifact's name of the layer; positions, values: as they stand there."""

    network: str
    model: str
    site: Site
    worker: int
    epoch: int
    step: int
    positions: tuple[Position, ...]
    values: tuple[float, ...]
    learning_rate: float
    seed: int


def read(text: str) -> ArtifactInjection:
    """The injection of a file; the keys may also stand in its first line and their values in the second, positions and
    values between spaces. Raises ArtifactError."""
    rows = [[cell.strip() for cell in row] for row in csv.reader(io.StringIO(text)) if any(row)]
    if len(rows) == 2 and set(rows[0]) >= set(KEYS):
        if len(rows[1]) != len(rows[0]):
            raise ArtifactError(f"{len(rows[1])} values for {len(rows[0])} keys")
        rows = [[key, *value.split()] for key, value in zip(rows[0], rows[1], strict=True)]
    found: dict[str, list[str]] = {}
    for row in rows:
        if row[0] not in KEYS:
            raise ArtifactError(f"unknown key {row[0]!r}; there are {', '.join(KEYS)}")
        if row[0] in found:
            raise ArtifactError(f"{row[0]} is there twice")
        found[row[0]] = row[1:]
    missing = [key for key in KEYS if key not in found or not any(found[key])]
    if missing:
        raise ArtifactError(f"without {', '.join(missing)}")
    return _injection(found)


def _injection(found: dict[str, list[str]]) -> ArtifactInjection:
    one = {key: values[0] for key, values in found.items()}
    model = MODELS.get(one["fmodel"])
    if model not in PUBLISHED:
        raise ArtifactError(f"fmodel: {one['fmodel']!r} is none of {', '.join(m.name for m in PUBLISHED)}")
    if one["stage"] not in ("fwrd_inject", "bkwd_inject"):
        raise ArtifactError(f"stage: {one['stage']!r} is neither fwrd_inject nor bkwd_inject")
    suffix = next((suffix for suffix in SUFFIXES if one["target_layer"].endswith(suffix)), "")
    if bool(suffix) != (one["stage"] == "bkwd_inject"):
        raise ArtifactError(f"target_layer: {one['target_layer']!r} is no layer of {one['stage']}")
    layer = one["target_layer"].removesuffix(suffix)
    positions = tuple(tuple(_whole("inj_pos", part) for part in text.split("/")) for text in found["inj_pos"])
    values = tuple(_number("inj_values", text) for text in found["inj_values"])
    if not len(positions) == len(values) <= MOST:
        raise ArtifactError(f"{len(positions)} positions and {len(values)} values (at most {MOST} of each)")
    return ArtifactInjection(
        one["model"], model.name, Site(layer, SUFFIXES.get(suffix, FORWARD), model.array),
        _whole("target_worker", one["target_worker"]), _whole("target_epoch", one["target_epoch"]),
        _whole("target_step", one["target_step"]), positions, values, _number("learning_rate", one["learning_rate"]),
        _whole("seed", one["seed"]),
    )  # fmt: skip


def _whole(key: str, text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 18):
        raise ArtifactError(f"{key}: {text[:40]!r} is no whole number")
    return int(text)


def _number(key: str, text: str) -> float:
    try:
        found = float(text) if len(text) <= DIGITS else None
    except ValueError:
        found = None
    if found is None or (key == "learning_rate" and not isfinite(found)):
        raise ArtifactError(f"{key}: {text[:40]!r} is no number")
    return found


def place_of(position: Position, site: Site, kernel: int, stride: int) -> Position:
    """The place of ours, as indices, that a position in an operand or result of a convolution of the artifact is (SAME
    padding; a kernel of this many rows and columns). Raises ArtifactError where it lies in the zeros between and around
    the elements, with which the artifact's operands are filled up."""
    if len(position) != 4:
        raise ArtifactError(f"{'/'.join(map(str, position))} is no place of a convolution")
    a, b, c, d = position
    pad = (kernel - 1) // 2

    def inside(row: int, column: int, spread: int, padded: int) -> tuple[int, int]:
        # rows stand `spread` apart, behind a zero where the kernel is more than one element
        ahead = 1 if spread > 1 and kernel > 1 else 0
        shifted = [index - padded - ahead for index in (row, column)]
        if any(index < 0 or index % spread for index in shifted):
            told = "/".join(map(str, position))
            raise ArtifactError(f"{told} lies in the zeros that the artifact puts between and around elements")
        return shifted[0] // spread, shifted[1] // spread

    match site.stage, site.array:
        case (stage, "input") if stage == TO_INPUT:
            return (a, *inside(b, c, stride, pad), d)
        case (stage, "weight") if stage == TO_INPUT:
            return kernel - 1 - a, kernel - 1 - b, d, c
        case (stage, "input") if stage == TO_WEIGHT:
            return (d, *inside(b, c, 1, pad), a)
        case (stage, "weight") if stage == TO_WEIGHT:
            return (c, *inside(a, b, stride, 0), d)
        case (stage, "output") if stage == TO_WEIGHT:
            return b, c, a, d
        case _:
            return position


def resnet18_layers() -> Sequence[str]:
    """The artifact's names of the convolutions of ResNet18, in the order of the forward pass, a block's first, second,
    and the one beside them."""
    names = ["conv1"]
    for stage in range(1, 5):
        for block in range(2):
            beside = ("downsample",) if stage > 1 and block == 0 else ()
            names += [f"basicblock_{stage}_basic_{block}_{name}" for name in ("conv1", "conv2", *beside)]
    return tuple(names)
