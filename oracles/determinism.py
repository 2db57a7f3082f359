"""Are repeated results the same bits? The first difference is named: run, epoch, step, array, element, and its size in
units in the last place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

SAME, VARIES, BROKEN = "same", "varies", "broken"
"""All runs have the same bits; they differ, which nobody promised they would not; they differ, and it is promised."""
BEFORE = -1
"""Epoch or step of what is there before the first one."""


@dataclass(frozen=True)
class Moment:
    """When arrays were looked at. what: they are, such as "initial", "data", "batch" or "state"; step: within its
    epoch, which is the number of its batch."""

    what: str
    epoch: int = BEFORE
    step: int = BEFORE

    def __str__(self) -> str:
        told = [f"epoch {self.epoch}"] * (self.epoch > BEFORE) + [f"step {self.step}"] * (self.step > BEFORE)
        return ", ".join([*told, self.what])


Trace = Sequence[tuple[Moment, Mapping[str, np.ndarray]]]
"""What one run had, in the order of time; arrays by name, the first part of it the kind, the middle the layer
(`parameter.l3.weight`)."""


@dataclass(frozen=True)
class Difference:
    """run: its number, compared with run 0; array: its whole name; element: its place (empty: the arrays cannot be
    compared, see why); first, second: run 0's number, and this one's; ulps: between them; differing, elements: of the
    array at that moment; largest: distance in it, in units in the last place (a NaN against a number: infinite)."""

    run: int
    moment: Moment
    array: str
    element: tuple[int, ...] = ()
    first: float = 0.0
    second: float = 0.0
    ulps: float = 0.0
    differing: int = 0
    elements: int = 0
    largest: float = 0.0
    why: str = ""

    @property
    def layer(self) -> str:
        """Of the array's name: what stands between its kind and its own name."""
        parts = self.array.split(".")
        return ".".join(parts[1:-1]) if len(parts) > 2 else ""

    def __str__(self) -> str:
        where = f"run {self.run}, {self.moment}"
        if self.layer:
            where += f", layer {self.layer}"
        where += f", array {self.array}"
        if self.why:
            return f"{where}: {self.why}"
        place = ", ".join(map(str, self.element))
        return (
            f"{where}, element [{place}]: {self.second!r} for {self.first!r}, {self.ulps:g} ulps "
            f"({self.differing} of {self.elements} elements differ, by at most {self.largest:g} ulps)"
        )


def same(a: np.ndarray, b: np.ndarray) -> bool:
    """The same dtype, shape and bits; any NaN equals any other, -0 is not 0."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    return not _differing(a, b).any() if a.size else True


def ulps(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Distances, element by element, of arrays of one dtype: how many numbers of the dtype lie between them, plus one;
    of integers and booleans their absolute difference; infinite between a NaN and a number; -0 and 0 are 1 apart."""
    if a.dtype.kind == "c":
        return np.maximum(ulps(_real(a), _real(b)), ulps(_imaginary(a), _imaginary(b)))
    if a.dtype.kind in "biu":
        return np.abs(a.astype(np.float64) - b.astype(np.float64))
    nan_a, nan_b = np.isnan(a), np.isnan(b)
    found = np.abs(_ordered(a) - _ordered(b))
    return np.where(nan_a & nan_b, 0.0, np.where(nan_a != nan_b, np.inf, found))


def _real(a: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(np.real(a))


def _imaginary(a: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(np.imag(a))


def _ordered(a: np.ndarray) -> np.ndarray:
    """Numbers in the order of the floating numbers, one apart where those are neighbours; exact below 2**53."""
    width = a.dtype.itemsize * 8
    bits = np.ascontiguousarray(a).view(f"u{a.dtype.itemsize}").astype(object if width == 64 else np.int64)
    top = 1 << (width - 1)
    return np.where(bits >= top, top - 1 - bits, bits)


def _differing(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Element by element: are the bits others?"""
    if a.dtype.kind == "c":
        return _differing(_real(a), _real(b)) | _differing(_imaginary(a), _imaginary(b))
    if a.dtype.kind in "biu":
        return a != b
    if a.dtype.kind in "US":
        return a != b
    bits = f"u{a.dtype.itemsize}"
    other = np.ascontiguousarray(a).view(bits) != np.ascontiguousarray(b).view(bits)
    return other & ~(np.isnan(a) & np.isnan(b))


def compare(run: int, moment: Moment, name: str, a: np.ndarray, b: np.ndarray) -> Difference | None:
    """The first element in which an array of a run differs from run 0's, or None."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return Difference(run, moment, name, why=f"{b.dtype} {b.shape} for {a.dtype} {a.shape}")
    if not a.size:
        return None
    other = _differing(np.atleast_1d(a), np.atleast_1d(b))
    if not other.any():
        return None
    if a.dtype.kind in "US":
        return Difference(run, moment, name, why="another text")
    place = tuple(int(i) for i in np.argwhere(other)[0])
    gaps = ulps(np.atleast_1d(a), np.atleast_1d(b)).astype(np.float64)
    return Difference(
        run, moment, name, place[: a.ndim], _number(np.atleast_1d(a)[place]), _number(np.atleast_1d(b)[place]),
        float(gaps[place]), int(other.sum()), a.size, float(gaps.max()),
    )  # fmt: skip


def _number(value: np.generic) -> float:
    return float(np.abs(value)) if np.iscomplexobj(value) else float(np.asarray(value))


def first_difference(run: int, base: Trace, other: Trace) -> Difference | None:
    """The first moment, and in it the first array in run 0's order, in which a run differs; None: nowhere."""
    for (moment, arrays), (theirs, found) in zip(base, other, strict=False):
        if moment != theirs:
            return Difference(run, moment, "", why=f"{theirs} for {moment}")
        for name, array in arrays.items():
            if name not in found:
                return Difference(run, moment, name, why="not there")
            difference = compare(run, moment, name, array, found[name])
            if difference:
                return difference
        more = next((name for name in found if name not in arrays), None)
        if more is not None:
            return Difference(run, moment, more, why="not there in run 0")
    if len(base) != len(other):
        longer = max(base, other, key=len)
        moment = longer[min(len(base), len(other))][0]
        return Difference(run, moment, "", why=f"{len(other)} moments for {len(base)}")
    return None


@dataclass(frozen=True)
class Judgement:
    """verdict: SAME, VARIES or BROKEN; differences: the first one of each run that differs from run 0."""

    verdict: str
    differences: tuple[Difference, ...]


def judge(runs: Sequence[Trace], promised: bool) -> Judgement:
    """promised: does documentation say that these runs have the same bits? Raises ValueError where there is nothing to
    compare: two runs at least, with one array at least."""
    if len(runs) < 2 or not any(arrays for _, arrays in runs[0]):
        raise ValueError("nothing to compare: two runs of at least one array are needed")
    found = [first_difference(number, runs[0], run) for number, run in enumerate(runs[1:], 1)]
    differences = tuple(one for one in found if one)
    return Judgement((BROKEN if promised else VARIES) if differences else SAME, differences)
