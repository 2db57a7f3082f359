"""One fault: its model, where and when it strikes, and what it did; drawn, and as JSON."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from generators.faults import bits
from generators.faults.models import MODELS, OPERANDS, PUBLISHED, FaultModel, Strike, strike
from generators.graphs import HypothesisDraw, SeededDraw
from generators.ops.spec import Draw
from generators.schema import converted
from generators.training.networks import INPUT, Layer, Network, parameters_of

FORWARD, TO_INPUT, TO_WEIGHT = "forward", "backward-input", "backward-weight"
OPTIMIZER, STATISTICS, REDUCED = "optimizer", "batch-norm", "reduced-gradient"
STAGES = (FORWARD, TO_INPUT, TO_WEIGHT, OPTIMIZER, STATISTICS, REDUCED)
"""Where a fault may strike: an operator's result, its gradient to the input, its gradient to the weight (each with the
arrays OPERANDS), the optimiser's state after the step, running statistics after the step, and a gradient after the
ranks have added it up, on one of them."""
LARGEST = 1 << 24
"""Elements that one fault may strike."""


class FaultError(ValueError):
    """A fault that makes no sense; the message says why."""


@dataclass(frozen=True)
class Site:
    """layer: by name; stage: of STAGES; array: of OPERANDS where an operator computes. There `input` and `weight` are
    the two operands, in this order: of the forward operator the layer's input and weight; of the gradient to the input
    the gradient that comes and the weight; of that to the weight the layer's input and the gradient that comes.
    Elsewhere `array` is the name of a value of that layer: what the optimiser keeps of a parameter (`weight.m`), a
    statistic (`running_var`), a parameter (`weight`)."""

    layer: str
    stage: str
    array: str

    def __post_init__(self) -> None:
        if self.stage not in STAGES:
            raise FaultError(f"no stage {self.stage!r}; there are {', '.join(STAGES)}")
        if self.computed and self.array not in OPERANDS:
            raise FaultError(f"no array {self.array!r}; there are {', '.join(OPERANDS)}")

    @property
    def computed(self) -> bool:
        """Is it where an operator computes?"""
        return self.stage in (FORWARD, TO_INPUT, TO_WEIGHT)


@dataclass(frozen=True)
class Fault:
    """model: of MODELS; site; epoch, step (of the epoch) and worker (a rank) that it strikes, all from 0; seed: of its
    places and values; lasts: steps; chosen: bits of FLIP and of what is stuck (none: a random one); size: of RELATIVE;
    half: what operands of 16 bits are."""

    model: str
    site: Site
    epoch: int
    step: int
    worker: int
    seed: int
    lasts: int = 1
    chosen: tuple[int, ...] = ()
    size: float = 0.0
    half: str = bits.HALVES[0]

    def __post_init__(self) -> None:
        if self.model not in MODELS:
            raise FaultError(f"no fault model {self.model!r}; there are {', '.join(MODELS)}")
        if self.half not in bits.HALVES:
            raise FaultError(f"{self.half!r} is none of {', '.join(bits.HALVES)}")
        if min(self.epoch, self.step, self.worker, self.seed) < 0 or self.lasts < 1:
            raise FaultError("epoch, step, worker and seed are not negative, and a fault lasts a step at least")
        if self.site.computed and MODELS[self.model].array not in ("", self.site.array):
            raise FaultError(
                f"{self.model} strikes an operator's {MODELS[self.model].array}, not its {self.site.array}"
            )

    def strike(self, array: np.ndarray) -> Strike:
        """What it does to an array (channels last), drawn by its own seed. Raises ValueError."""
        rng = np.random.default_rng([self.seed, 17])
        return strike(MODELS[self.model], array, rng, self.chosen, self.size, self.half)


@dataclass(frozen=True)
class Injection:
    """What a fault did, so that it can be done again. dtype, shape: of the array, channels last; ranges: of flat
    places, each the first and how many; before, put: patterns in these places, little-endian bytes in base64; keep:
    as of `Strike`."""

    dtype: str
    shape: tuple[int, ...]
    ranges: tuple[tuple[int, int], ...]
    before: str
    put: str
    keep: int = 0

    def __post_init__(self) -> None:
        width = bits.WIDTHS[bits.dtype_of(self.dtype).name]
        if not 0 <= self.keep < 1 << width:
            raise FaultError(f"keep is no pattern of {self.dtype}")
        last = 0
        for first, count in self.ranges:
            if first < last or count < 1:
                raise FaultError("ranges of places rise and are not empty")
            last = first + count
        count = sum(count for _, count in self.ranges)
        if not 0 < count <= LARGEST or last > int(np.prod(self.shape, dtype=object)):
            raise FaultError(f"places that an array of shape {list(self.shape)} has not")
        for text in (self.before, self.put):
            if len(base64.b64decode(text, validate=True)) != count * width // 8:
                raise FaultError(f"patterns are not {count} of {width} bits")

    @property
    def strike(self) -> Strike:
        """The same as arrays."""
        kind = f"<u{bits.WIDTHS[self.dtype] // 8}"
        places = np.concatenate([np.arange(first, first + count) for first, count in self.ranges])
        before, put = (np.frombuffer(base64.b64decode(text), kind).copy() for text in (self.before, self.put))
        return Strike(places, before, put, self.keep)

    @property
    def values(self) -> tuple[np.ndarray, np.ndarray]:
        """Before and after, as numbers."""
        done = self.strike
        return bits.values_of(done.before, self.dtype), bits.values_of(done.after, self.dtype)


def injection(array: np.ndarray, done: Strike) -> Injection:
    """The record of a strike on an array."""
    breaks = np.flatnonzero(np.diff(done.places) != 1) + 1
    ranges = tuple((int(part[0]), len(part)) for part in np.split(done.places, breaks))
    before, put = (
        base64.b64encode(p.astype(p.dtype.newbyteorder("<")).tobytes()).decode() for p in (done.before, done.put)
    )
    return Injection(str(array.dtype), array.shape, ranges, before, put, done.keep)


def fault_of(data: object) -> Fault:
    """Parsed JSON as a fault. Raises SchemaError."""
    return converted(data, Fault)


def as_json(record: Fault | Injection) -> Mapping[str, Any]:
    """What `fault_of` and `converted` read."""
    return asdict(record)


def operands_of(layer: Layer, network: Network) -> tuple[tuple[str, str], ...]:
    """Stages and arrays that a layer has: those with a weight for layers that have one."""
    weighted = "weight" in parameters_of(layer, network.shapes[layer.inputs[0]])
    stages = (FORWARD, *(TO_INPUT,) * (layer.inputs != (INPUT,)), *(TO_WEIGHT,) * weighted)
    return tuple((stage, array) for stage in stages for array in OPERANDS if weighted or array != "weight")


def sites_of(
    network: Network, kept: Sequence[str] = (), statistics: Sequence[str] = (), ranks: int = 1
) -> tuple[Site, ...]:
    """All that a fault may strike; the gradient of what takes the samples to its input is never computed. kept: what
    the optimiser keeps of each trained parameter; statistics: of each batch normalisation; ranks: more than one of them
    add up gradients."""
    found = [
        Site(la.name, *where)
        for la in network.layers
        if la.name not in network.idle
        for where in operands_of(la, network)
    ]
    for name in network.trained:
        layer, _, parameter = name.partition(".")
        found += [Site(layer, OPTIMIZER, f"{parameter}.{slot}") for slot in kept]
        found += [Site(layer, REDUCED, parameter)] * (ranks > 1)
    norms = [layer.name for layer in network.layers if layer.kind == "batch_norm"]
    return (*found, *(Site(name, STATISTICS, one) for name in norms for one in statistics))


def models_for(site: Site, models: Sequence[FaultModel]) -> list[FaultModel]:
    """Those that strike this array; what no operator computes is struck as an output is."""
    array = site.array if site.computed else "output"
    return [model for model in models if model.array in ("", array)]


def draw_fault(
    d: Draw, sites: Sequence[Site], epochs: Sequence[int], steps: int, ranks: int = 1,
    models: Sequence[FaultModel] = PUBLISHED,
) -> Fault:  # fmt: skip
    """One fault: a model first, each as often as any other, then a site that it strikes. epochs: from which one is
    drawn; steps: of each. Raises FaultError where no site is struck by any model."""
    able = [model for model in models if any(model in models_for(site, models) for site in sites)]
    if not able:
        raise FaultError("no site that these models strike")
    model = d.choice(able)
    stages = {site.stage for site in sites if model in models_for(site, models)}
    stage = d.choice([stage for stage in STAGES if stage in stages])
    site = d.choice([site for site in sites if site.stage == stage and model in models_for(site, models)])
    return Fault(
        model.name, site, d.choice(epochs), d.integer(0, steps - 1), d.integer(0, ranks - 1), d.integer(0, 2**31 - 1)
    )


def seeded_fault(
    seed: int, number: int, sites: Sequence[Site], epochs: Sequence[int], steps: int, **options: Any
) -> Fault:
    """The fault with this number of the study with this seed."""
    return draw_fault(SeededDraw(f"faults/{seed}/{number}"), sites, epochs, steps, **options)


@st.composite
def faults(draw: st.DrawFn, sites: Sequence[Site], epochs: Sequence[int], steps: int, **options: Any) -> Fault:
    """Faults, as a Hypothesis strategy."""
    return draw_fault(HypothesisDraw(draw), sites, epochs, steps, **options)
