"""Fault models: which elements of an array a fault strikes, and what becomes of their bits.

The first eighteen are those of the study of hardware failures in training (Y. He et al., Understanding and Mitigating
Hardware Failures in Deep Learning Training Accelerator Systems, ISCA 2023) by their names. Elements are counted as
accelerators hold them, channels last: activations (samples, rows, columns, channels), kernels (rows, columns, inputs,
outputs), matrices (inputs, outputs)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

import numpy as np

from generators.faults import bits

OPERANDS = ("input", "weight", "output")
TILE = 16
"""Rows and columns of a tile, in the last two dimensions."""


@dataclass(frozen=True)
class FaultModel:
    """name:    as files have it
    array:   of an operator, that it strikes ("": any of OPERANDS, and what is no operator's)
    effect:  what elements become: bit (one random bit inverted), random (a random finite pattern), element (another
             element of the array), zero; bits (chosen ones inverted), stuck-0 and stuck-1 (chosen ones held),
             relative (times one plus a chosen size)
    group:   so many contiguous elements, at a multiple of that number; region: `tile` or `channel`, whole, instead
    most:    groups behind each other, a number drawn from 1 to this
    half:    the elements are those of 16 bits: an array of more is rounded to that first, in what is struck"""

    name: str
    array: str
    effect: str
    group: int = 1
    most: int = 1
    half: bool = False
    region: str = ""


PUBLISHED = (
    FaultModel("INPUT", "input", "bit"),
    FaultModel("INPUT_16", "input", "bit", half=True),
    FaultModel("WT", "weight", "bit"),
    FaultModel("WT_16", "weight", "bit", half=True),
    FaultModel("RBFLIP", "output", "bit"),
    FaultModel("RD", "output", "random"),
    FaultModel("RD_CORRECT", "output", "element"),
    FaultModel("ZERO", "output", "zero"),
    FaultModel("N16_RD", "output", "random", 16),
    FaultModel("N16_RD_CORRECT", "output", "element", 16),
    FaultModel("RD_GLB", "output", "random", 16, 1000),
    FaultModel("RD_CORRECT_GLB", "output", "element", 16, 1000),
    FaultModel("N64_INPUT", "input", "element", 64),
    FaultModel("N64_WT", "weight", "element", 64),
    FaultModel("N64_INPUT_16", "input", "element", 64, half=True),
    FaultModel("N64_WT_16", "weight", "element", 64, half=True),
    FaultModel("N64_INPUT_GLB", "input", "element", 64, 1000),
    FaultModel("N64_WT_GLB", "weight", "element", 64, 1000),
)
OWN = (
    FaultModel("FLIP", "", "bits"),
    FaultModel("STUCK_0", "", "stuck-0"),
    FaultModel("STUCK_1", "", "stuck-1"),
    FaultModel("TILE", "", "random", region="tile"),
    FaultModel("CHANNEL", "", "random", region="channel"),
    FaultModel("RELATIVE", "", "relative"),
)
MODELS: Mapping[str, FaultModel] = {model.name: model for model in (*PUBLISHED, *OWN)}


@dataclass(frozen=True, eq=False)
class Strike:
    """What a fault does to an array: the elements at `places` (flat, channels last, rising) become the pattern
    `(old & keep) | put`, `before` and `after` being what that was when it first struck. keep: 0 where values are
    replaced, the bits that are left alone where some are held."""

    places: np.ndarray
    before: np.ndarray
    put: np.ndarray
    keep: int = 0

    @property
    def after(self) -> np.ndarray:
        """The patterns that the elements have from then on."""
        return (self.before & self.before.dtype.type(self.keep)) | self.put


def strike(
    model: FaultModel, array: np.ndarray, rng: np.random.Generator, chosen: tuple[int, ...] = (), size: float = 0.0,
    half: str = bits.HALVES[0],
) -> Strike:  # fmt: skip
    """Draw where and how a fault of this model strikes an array (channels last). chosen: bits; size: relative; half:
    what operands of 16 bits are. Raises ValueError where it cannot."""
    dtype = str(array.dtype)
    if not array.size:
        raise ValueError("an array without elements")
    width = bits.WIDTHS[bits.dtype_of(dtype).name]
    if chosen and not 0 <= min(chosen) <= max(chosen) < width:
        raise ValueError(f"{dtype} has bits 0 to {width - 1}, not {' '.join(map(str, chosen))}")
    places = _places(model, array.shape, rng)
    flat = np.ascontiguousarray(array).reshape(-1)
    old = flat[places]
    before = bits.patterns_of(old)
    if model.effect.startswith("stuck"):
        held = bits.mask_of(chosen or (int(rng.integers(width)),))
        keep = (1 << width) - 1 - held
        return Strike(places, before, np.full_like(before, held if model.effect.endswith("1") else 0), keep)
    operand = bits.rounded(old, half) if model.half and width > 16 else old
    match model.effect:
        case "bit":
            new = bits.flipped(operand, rng.integers(bits.WIDTHS[str(operand.dtype)], size=len(places)))
        case "bits":
            new = bits.flipped(operand, chosen or (int(rng.integers(width)),))
        case "random":
            new = bits.random_finite(rng, len(places), dtype)
        case "element":
            others = rng.integers(max(1, array.size - 1), size=len(places))
            taken = flat[(others + (others >= places)) % array.size]
            new = bits.rounded(taken, half) if model.half and width > 16 else taken
        case "zero":
            new = np.zeros_like(old)
        case "relative":
            with np.errstate(all="ignore"):
                new = (old.astype(np.float64) * (1.0 + size)).astype(old.dtype)
        case other:
            raise ValueError(f"{model.name}: unknown effect {other}")
    with np.errstate(all="ignore"):
        return Strike(places, before, bits.patterns_of(new.astype(old.dtype)))


def _places(model: FaultModel, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Flat places, rising. A group that the array's end cuts off is shorter."""
    if model.region:
        return _region(model.region, shape, rng)
    total = prod(shape)
    groups = -(-total // model.group)
    first = int(rng.integers(groups))
    count = int(rng.integers(1, min(model.most, groups - first) + 1))
    return np.arange(first * model.group, min((first + count) * model.group, total))


def _region(region: str, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """A whole channel (an index of the last dimension), or an aligned tile of the last two, in one place of others."""
    whole = (1, *shape) if len(shape) < 2 else shape
    order = np.arange(prod(whole)).reshape(-1, *whole[-2:])
    if region == "channel":
        return order[..., int(rng.integers(whole[-1]))].reshape(-1)
    corner = [TILE * int(rng.integers(-(-size // TILE))) for size in whole[-2:]]
    plane = order[int(rng.integers(len(order)))]
    return plane[corner[0] : corner[0] + TILE, corner[1] : corner[1] + TILE].reshape(-1)
