"""Faults drawn, written and read; the artifact's files."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generators.faults import artifact
from generators.faults.fault import (
    FORWARD,
    STAGES,
    TO_INPUT,
    TO_WEIGHT,
    Fault,
    Injection,
    Site,
    as_json,
    fault_of,
    faults,
    injection,
    seeded_fault,
    sites_of,
)
from generators.faults.models import MODELS, PUBLISHED
from generators.schema import SchemaError, converted, parsed
from generators.training.networks import Layer, Network, checked

NETWORK = checked(
    Network(
        (3, 4, 4), 0,
        (
            Layer("c", "conv2d", ("x",), (4, 4, 4), (("channels", 4), ("kernel", 3))),
            Layer("n", "batch_norm", ("c",), (4, 4, 4)),
            Layer("r", "relu", ("n",), (4, 4, 4)),
            Layer("f", "flatten", ("r",), (64,)),
            Layer("d", "linear", ("f",), (10,), (("features", 10), ("bias", 1))),
        ),
    )
)  # fmt: skip
SITES = sites_of(NETWORK, kept=("m", "v"), statistics=("running_mean", "running_var"), ranks=2)
TEXT = """model,resnet18
stage,bkwd_inject
fmodel,INPUT
target_worker,5
target_layer,basicblock_4_basic_1_conv2_grad_in
target_epoch,7
target_step,35
inj_pos,124/3/1/450
inj_values,8.98393226329413e+17
learning_rate,0.001
seed,123
"""


def test_sites() -> None:
    assert len(SITES) == len(set(SITES))
    assert {site.stage for site in SITES} == set(STAGES)
    assert Site("c", TO_WEIGHT, "weight") in SITES
    assert Site("r", FORWARD, "output") in SITES
    assert Site("r", FORWARD, "weight") not in SITES
    assert Site("d", "optimizer", "bias.v") in SITES
    assert Site("n", "batch-norm", "running_var") in SITES
    assert not [site for site in sites_of(NETWORK) if not site.computed]


@given(faults(SITES, (2, 3), 11, ranks=2, models=tuple(MODELS.values())), st.integers(0, 5))
def test_drawn_faults_come_back_from_files(fault: Fault, seed: int) -> None:
    assert fault_of(parsed(json.dumps(as_json(fault)))) == fault
    assert fault.epoch in (2, 3)
    assert fault.step < 11
    assert fault.site in SITES
    array = np.random.default_rng(seed).standard_normal((2, 5, 5, 7)).astype(np.float32)
    done = fault.strike(array)
    kept = converted(parsed(json.dumps(as_json(injection(array, done)))), Injection)
    assert kept == injection(array, fault.strike(array))  # the seed alone decides
    assert np.array_equal(kept.strike.places, done.places)
    assert np.array_equal(kept.strike.after, done.after)
    assert np.array_equal(kept.values[0], array.reshape(-1)[done.places])


def test_the_same_number_draws_the_same_fault() -> None:
    first = [seeded_fault(3, number, SITES, (1,), 9) for number in range(300)]
    assert first == [seeded_fault(3, number, SITES, (1,), 9) for number in range(300)]
    assert first != [seeded_fault(4, number, SITES, (1,), 9) for number in range(300)]
    assert {fault.model for fault in first} == {model.name for model in PUBLISHED}
    assert {fault.site.stage for fault in first} == set(STAGES)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"model": "RDX"}, "no fault model 'RDX'"),
        ({"step": -1}, "are not negative"),
        ({"lasts": 0}, "lasts a step at least"),
        ({"half": "float8"}, "'float8' is none of bfloat16, float16"),
        ({"site": {"layer": "c", "stage": "sideways", "array": "input"}}, "no stage 'sideways'"),
        ({"site": {"layer": "c", "stage": "forward", "array": "bias"}}, "no array 'bias'"),
        ({"site": {"layer": "c", "stage": "forward", "array": "weight"}}, "INPUT strikes an operator's input"),
        ({"when": 3}, "unknown key"),
    ],
)
def test_faults_that_make_no_sense(changes: dict, told: str) -> None:
    data = {"model": "INPUT", "site": {"layer": "c", "stage": "forward", "array": "input"}, "epoch": 0, "step": 0,
            "worker": 0, "seed": 0}  # fmt: skip
    assert fault_of(data).model == "INPUT"
    with pytest.raises(SchemaError, match=told):
        fault_of(data | changes)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"ranges": [[3, 1], [2, 1]]}, "rise"),
        ({"ranges": [[11, 2]]}, "has not"),
        ({"ranges": []}, "has not"),
        ({"put": "AAAA"}, "patterns are not 2 of 32 bits"),
        ({"put": "?"}, "base64|Incorrect padding|Only base64"),
        ({"dtype": "int8"}, "not int8"),
        ({"keep": 2**32}, "no pattern of float32"),
    ],
)
def test_injections_that_make_no_sense(changes: dict, told: str) -> None:
    array = np.zeros((3, 4), np.float32)
    done = Fault("STUCK_1", Site("c", FORWARD, "output"), 0, 0, 0, 1, chosen=(3,)).strike(array)
    data = json.loads(json.dumps(as_json(injection(array, done)))) | {"ranges": [[1, 1], [5, 1]]}
    data |= {"before": "AAAAAAAAAAA=", "put": "CAAAAAgAAAA="}
    good = converted(data, Injection)
    assert good.strike.after.tolist() == [8, 8]
    with pytest.raises(SchemaError, match=told):
        converted(data | changes, Injection)


def test_a_file_of_the_artifact() -> None:
    found = artifact.read(TEXT)
    assert found.site == Site("basicblock_4_basic_1_conv2", TO_INPUT, "input")
    assert (found.worker, found.epoch, found.step, found.seed) == (5, 7, 35, 123)
    assert found.positions == ((124, 3, 1, 450),)
    assert found.values == (8.98393226329413e17,)
    rows = [line.split(",") for line in TEXT.split()]
    assert artifact.read("\n".join(",".join(row[i] for row in rows) for i in (0, 1))) == found
    several = artifact.read(TEXT.replace("1/450", "1/450,124/3/1/451").replace("e+17", "e+17,nan"))
    assert len(several.positions) == 2
    assert np.isnan(several.values[1])
    assert len(artifact.resnet18_layers()) == 20


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("fmodel,INPUT\n", "", "without fmodel"),
        ("fmodel,INPUT", "fmodel,FLIP", "fmodel: 'FLIP' is none of"),
        ("bkwd_inject", "fwrd_inject", "is no layer of fwrd_inject"),
        ("124/3", "124/-3", "inj_pos: '-3' is no whole number"),
        ("8.98393226329413e+17", "much", "inj_values: 'much' is no number"),
        ("1/450", "1/450,1/2/3/4", "2 positions and 1 values"),
        ("seed,123", "seed,123\nseed,4", "seed is there twice"),
        ("seed,123", "seed,123\nsead,4", "unknown key 'sead'"),
        ("learning_rate,0.001", "learning_rate,inf", "learning_rate: 'inf' is no number"),
    ],
)
def test_files_that_are_none(old: str, new: str, told: str) -> None:
    with pytest.raises(artifact.ArtifactError, match=told):
        artifact.read(TEXT.replace(old, new))


def test_places_of_the_artifacts_convolutions() -> None:
    """Its operands, built as it builds them, have at each position what ours have at the place."""
    rng = np.random.default_rng(0)
    for kernel, stride in ((3, 1), (3, 2), (1, 2), (1, 1)):
        grad = rng.standard_normal((2, 4, 4, 5))
        x = rng.standard_normal((2, 4 * stride, 4 * stride, 3))
        weight = rng.standard_normal((kernel, kernel, 3, 5))
        ahead, pad = int(stride > 1 and kernel > 1), (kernel - 1) // 2
        spread = np.zeros((2, 4 * stride, 4 * stride, 5))
        spread[:, ahead::stride, ahead::stride] = grad
        around = ((0, 0), (pad, pad), (pad, pad), (0, 0))
        theirs = {
            Site("c", TO_INPUT, "input"): (np.pad(spread, around), grad),
            Site("c", TO_INPUT, "weight"): (weight[::-1, ::-1].transpose(0, 1, 3, 2), weight),
            Site("c", TO_INPUT, "output"): (x, x),
            Site("c", TO_WEIGHT, "input"): (np.pad(x, around).transpose(3, 1, 2, 0), x),
            Site("c", TO_WEIGHT, "weight"): (spread.transpose(1, 2, 0, 3), grad),
            Site("c", TO_WEIGHT, "output"): (weight.transpose(2, 0, 1, 3), weight),
            Site("c", FORWARD, "weight"): (weight, weight),
        }
        for site, (their, ours) in theirs.items():
            met = 0
            for position in np.ndindex(their.shape):
                if their[position]:
                    assert ours[artifact.place_of(position, site, kernel, stride)] == their[position], (site, position)
                    met += 1
                elif max(p - s for p, s in zip(position, ours.shape, strict=True)) < 0 and site.array != "output":
                    zero = replace(site)
                    with pytest.raises(artifact.ArtifactError, match="zeros"):
                        artifact.place_of(position, zero, kernel, stride)
            assert met == ours.size
