"""Injections of the published artifact, struck into our own network of the same name.

What differs, since the artifact trains on eight workers of a TPU: here one process trains with the batch of one worker,
whichever the file names; the learning rate stays as it begins; initial parameters and the order of samples are ours."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from generators.faults import bits
from generators.faults.artifact import ArtifactError, ArtifactInjection, place_of, resnet18_layers
from generators.faults.fault import Fault, Site, injection
from generators.faults.models import Strike
from generators.training.networks import Layer
from harness.execute.pool import Pool
from harness.studies.faults.experiment import FaultFile, digest_of
from harness.studies.faults.injection import canonical, captured, struck
from harness.studies.faults.protocol import Plan, Study

OPTIMIZERS = {"resnet18": "adam", "resnet18_sgd": "sgd"}
"""The artifact's networks that there are here, and what trains them."""


def plan_of(found: ArtifactInjection, dataset: str, batch: int, width: int, after: int) -> Plan:
    """Raises ArtifactError where the network is another one, PlanError where the plan makes no sense."""
    if found.network not in OPTIMIZERS:
        raise ArtifactError(f"model: {found.network!r} is not here; there are {', '.join(OPTIMIZERS)}")
    optimizer = OPTIMIZERS[found.network]
    return Plan(
        "resnet18", dataset, optimizers=(optimizer,), models=(found.model,), batch=batch, width=width, after=after,
        seed=found.seed, guarded=False, rate=found.learning_rate,
    )  # fmt: skip


def file_of(study: Study, pool: Pool, found: ArtifactInjection, epoch: int, step: int) -> FaultFile:
    """Run the injection for the first time, at this epoch and step: the file from which it is done again. Raises
    ArtifactError where a position is not in the array, and LoopError."""
    (optimizer,), (first,) = study.plan.optimizers, study.points
    layer = _layer(study, found.site.layer)
    fault = Fault(
        found.model, Site(layer.name, found.site.stage, found.site.array), epoch, step, found.worker, study.plan.seed
    )
    numbers, shape = layer.numbers, _shape(study, layer, fault.site)
    places = [place_of(one, found.site, numbers["kernel"], numbers.get("stride", 1)) for one in found.positions]
    _check(found, places, shape)  # before hours of training
    state, loop = study.state_at(pool, optimizer, 0), study.loop(optimizer)
    part = study.part(optimizer, study.plan.seed, first, first + study.plan.after, True)
    array = captured(pool, loop, state, part, fault)
    done = injection(array, _strike(array, places, found.values))
    run = struck(pool, loop, state, part, fault, done)
    return FaultFile(study.plan, fault, done, "", digest_of(run))


def _layer(study: Study, name: str) -> Layer:
    names, own = resnet18_layers(), [layer for layer in study.network.layers if layer.kind == "conv2d"]
    if name not in names:
        raise ArtifactError(f"target_layer: {name!r} is none of {', '.join(names)}")
    return own[names.index(name)]


def _shape(study: Study, layer: Layer, site: Site) -> tuple[int, ...]:
    """Of the array at this site, as a fault strikes it: channels last."""
    match site.stage, site.array:
        case ("forward", "weight") | ("backward-input", "weight") | ("backward-weight", "output"):
            shape = study.network.parameters[f"{layer.name}.weight"]
        case ("forward", "output") | ("backward-input", "input") | ("backward-weight", "weight"):
            shape = (study.plan.batch, *layer.shape)
        case _:
            shape = (study.plan.batch, *study.network.shapes[layer.inputs[0]])
    return canonical(np.empty(shape, bool), site).shape


def _check(found: ArtifactInjection, places: Sequence[tuple[int, ...]], shape: tuple[int, ...]) -> None:
    for position, place in zip(found.positions, places, strict=True):
        if not all(0 <= i < size for i, size in zip(place, shape, strict=True)):
            raise ArtifactError(
                f"inj_pos: {'/'.join(map(str, position))} is behind the last element of an array of shape "
                f"{list(shape)}, in what the artifact pads it with or nowhere"
            )
    if len(set(places)) != len(places):
        raise ArtifactError("inj_pos: a place is there twice")


def _strike(array: np.ndarray, places: Sequence[tuple[int, ...]], values: Sequence[float]) -> Strike:
    flat = np.array([int(np.ravel_multi_index(place, array.shape)) for place in places])
    order = np.argsort(flat)
    with np.errstate(over="ignore"):
        put = np.array(values, np.float64)[order].astype(array.dtype)
    before = np.ascontiguousarray(array).reshape(-1)[flat[order]]
    return Strike(flat[order], bits.patterns_of(before), bits.patterns_of(put))
