"""Loops in which a fault strikes: the array at its site is looked at in the fault-free step, the fault drawn on it by
`generators/faults/`, and the loop run with the patterns put in its place; so a run and its replay are one program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from generators.faults import bits
from generators.faults.fault import TO_INPUT, TO_WEIGHT, Fault, Injection, Site, injection
from generators.faults.models import MODELS
from generators.training.networks import Network
from harness.execute.pool import Pool
from harness.studies.loops.loop import Loop
from harness.studies.loops.programs import forward_lines
from harness.studies.loops.train import Arrays, Part, Trained, train

HERE = Path(__file__).parent
FRAMEWORKS = ("torch", "tensorflow", "jax")
GUARDED = ("torch", "tensorflow")
"""Whose loops the guard can go back in."""
_MODEL = {
    "tensorflow": "def struck_model(stepping, p, norms, x, training):",
    "jax": "def struck_model(stepping, p, b, x, training):",
}
_GIVEN = {"tensorflow": "p, norms", "jax": "p, b"}
"""What a layer of the model takes beside its input: parameters, and what keeps statistics."""
SERIES = ("history", "variance", "finite")
"""By step: the greatest magnitude of what the optimiser keeps, of moving variances, and whether
parameters and statistics are finite."""
SHOWN = (*SERIES, "captured", "alarms", "repeated")
CHANNELS_LAST = {3: (1, 2, 0), 4: (0, 2, 3, 1)}
KERNEL_LAST = {2: (1, 0), 4: (2, 3, 1, 0)}
"""Axes of arrays of PyTorch's layout in the order of faults: of activations, and of weights."""


@dataclass(frozen=True, eq=False)
class Watched:
    """What a part of a run gave. trained: the state after it, curves and tests, shorter where it broke off because
    the loss was not finite; shown: SHOWN by name."""

    trained: Trained
    shown: Arrays


@cache
def _text(framework: str, guarded: bool) -> str:
    guard = ["guard/bounds.py", f"guard/{framework}.py"] if guarded else []
    layer = [f"helpers/{framework}_layer.py"] if framework in _MODEL else []
    lines = text_of(*guard, *layer, f"helpers/{framework}_steps.py").splitlines()
    return "\n".join(line for line in lines if not line.startswith("from harness."))


def text_of(*names: str) -> str:
    """These files of the folder, one after the other."""
    return "\n\n".join((HERE / name).read_text(encoding="utf-8") for name in names)


def watched(
    pool: Pool, loop: Loop, state: Arrays, part: Part, guarded: bool = False, bounds: Arrays | None = None
) -> Watched:
    """A fault-free part, looked at. bounds: of a guard, by its names, from the steps before. Raises LoopError."""
    return _run(pool, loop, state, part, None, guarded, bounds=bounds)


def captured(pool: Pool, loop: Loop, state: Arrays, part: Part, fault: Fault, step: int = 0) -> np.ndarray:
    """The array that the fault would strike in this step of the part, channels last. Raises LoopError."""
    rows = slice(0, (step + 1) * loop.batch)
    short = Part(part.x[rows], part.y[rows], part.rates[: step + 1], part.test_x[:0], part.test_y[:0])
    seen = _run(pool, loop, state, short, (fault, None, step), False)
    return canonical(seen.shown["captured"], fault.site)


def inject(pool: Pool, loop: Loop, state: Arrays, part: Part, fault: Fault, step: int = 0) -> Injection:
    """What the fault does to the array at its site in this step of the part, which is run that far. Raises LoopError,
    and ValueError where the fault cannot strike the array."""
    array = captured(pool, loop, state, part, fault, step)
    return injection(array, fault.strike(array))


def struck(
    pool: Pool, loop: Loop, state: Arrays, part: Part, fault: Fault, done: Injection, step: int = 0,
    guarded: bool = False, bounds: Arrays | None = None,
) -> Watched:  # fmt: skip
    """The part with the fault in this step of it. Raises LoopError."""
    return _run(pool, loop, state, part, (fault, done, step), guarded, bounds)


def _run(
    pool: Pool, loop: Loop, state: Arrays, part: Part, what: tuple[Fault, Injection | None, int] | None, guarded: bool,
    bounds: Arrays | None = None,
) -> Watched:  # fmt: skip
    given = {"fault.index": np.zeros(0, np.int64), "fault.put": np.zeros(0, np.int64), "bounds": np.zeros(0)}
    described = None
    if what:
        fault, done, step = what
        described, arrays = printed(fault, done, step)
        given |= arrays
    shown = (*SHOWN, "bounds") if guarded else SHOWN
    if bounds is not None:
        given["bounds"] = bounds["bounds"]
    head = f"FAULT = {described!r}\nGUARDED = {guarded}\n"
    site = what[0].site if what else None
    model = struck_model(loop.framework, loop.network, forward_lines(loop), site) if site and site.computed else ""
    own = replace(loop, stepping=head + _text(loop.framework, guarded) + model, given=tuple(given), more=shown)
    trained = train(pool, own, state, replace(part, given=given))
    found = dict(trained.found)
    return Watched(replace(trained, found=found), {name: found.pop(name) for name in shown})


def printed(fault: Fault, done: Injection | None, step: int) -> tuple[Mapping[str, Any], Arrays]:
    """FAULT, and the arrays `fault.index` and `fault.put`, of the programs (helpers/torch_steps.py). done: what is put;
    None: the array is captured."""
    index, put, keep = np.zeros(0, np.int64), np.zeros(0, np.int64), 0
    if done:
        strike, width = done.strike, bits.WIDTHS[done.dtype]
        index, put = native(done.shape, fault.site)[strike.places], strike.put.view(f"int{width}")
        keep = int(np.array(done.keep, f"uint{width}").view(f"int{width}"))
    described = {
        "layer": fault.site.layer, "stage": fault.site.stage, "array": fault.site.array, "step": step,
        "lasts": fault.lasts, "keep": keep, "capture": done is None,
    }  # fmt: skip
    return described, {"fault.index": index, "fault.put": put}


def struck_model(framework: str, network: Network, forward: Sequence[str], site: Site) -> str:
    """The model, its layer at this site with the fault in it, as text; "" for PyTorch, where a module's forward pass is
    put in another's place. forward: the lines of its forward pass, one a layer, and what it returns."""
    if framework not in _MODEL:
        return ""
    inputs = {layer.name: layer.inputs[0] for layer in network.layers}
    lines = []
    for line in forward:
        name, _, text = line.partition(" = ")
        if name == site.layer:
            given = f"{inputs[name]}, {_GIVEN[framework]}"
            line = f"{name} = stepping.layer(lambda {given}: {text}, {given})"
        lines.append(f"    {line}")
    return "\n".join(["", "", "", _MODEL[framework], *lines])


def _axes(site: Site, dimensions: int) -> tuple[int, ...]:
    """Axes of an array of PyTorch's at this site, in the order of faults."""
    weights = {(TO_INPUT, "weight"), (TO_WEIGHT, "output"), ("forward", "weight")}
    of_weight = (site.stage, site.array) in weights or (not site.computed and site.array.startswith("weight"))
    return (KERNEL_LAST if of_weight else CHANNELS_LAST).get(dimensions, tuple(range(dimensions)))


def canonical(array: np.ndarray, site: Site) -> np.ndarray:
    """An array of PyTorch's layout, channels last."""
    axes = _axes(site, array.ndim)
    return array.transpose(axes if len(axes) == array.ndim else None)


def native(shape: tuple[int, ...], site: Site) -> np.ndarray:
    """For each flat place of an array of this shape, channels last, the flat place in PyTorch's layout."""
    axes = _axes(site, len(shape))
    own = tuple(shape[axes.index(axis)] for axis in range(len(shape)))
    return np.arange(int(np.prod(shape))).reshape(own).transpose(axes).reshape(-1)


def struck_width(fault: Fault, done: Injection) -> int:
    """Bits of an element that was struck, 16 for an operand that was rounded to them."""
    return 16 if MODELS[fault.model].half else bits.WIDTHS[done.dtype]


def flipped_bit(fault: Fault, done: Injection) -> int:
    """The one bit that a fault inverted in the one place that it struck, counted in the 16 bits of an operand that was
    rounded to them; -1 where there is no such bit."""
    strike = done.strike
    if len(strike.places) > 1:
        return -1
    before, after = strike.before, strike.after
    if struck_width(fault, done) < bits.WIDTHS[done.dtype]:
        before, after = (bits.patterns_of(bits.rounded(values, fault.half)) for values in done.values)
    changed = int(before[0] ^ after[0])
    return changed.bit_length() - 1 if changed and changed & (changed - 1) == 0 else -1
