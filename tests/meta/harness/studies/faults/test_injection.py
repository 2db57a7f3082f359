"""Where a fault strikes and where it does not: each of the nine arrays of a layer, states, and nothing at all."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from generators.faults.fault import (
    FORWARD,
    OPTIMIZER,
    STATISTICS,
    TO_INPUT,
    TO_WEIGHT,
    Fault,
    Site,
    injection,
)
from generators.faults.models import OPERANDS, Strike
from generators.training.networks import Layer, Network, checked
from harness.execute.pool import Pool
from harness.search.hypothesis_profiles import nightly
from harness.studies.faults.experiment import digest_of
from harness.studies.faults.injection import HERE, canonical, captured, inject, native, struck, watched
from harness.studies.faults.protocol import Plan, Study
from harness.studies.loops.loop import Loop
from harness.studies.loops.programs import program
from harness.studies.loops.train import Part, train

STAGES = (FORWARD, TO_INPUT, TO_WEIGHT)
PLAN = Plan(batch=16, width=4, warm=1, after=4, band=3, train=64, test=32)
NORMED = checked(
    Network(
        (1, 8, 8), 0,
        (
            Layer("c", "conv2d", ("x",), (4, 8, 8), (("channels", 4), ("kernel", 3))),
            Layer("n", "batch_norm", ("c",), (4, 8, 8)),
            Layer("r", "relu", ("n",), (4, 8, 8)),
            Layer("f", "flatten", ("r",), (256,)),
            Layer("d", "linear", ("f",), (10,), (("features", 10), ("bias", 1))),
        ),
    )
)  # fmt: skip


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool() as pool:
        yield pool


@pytest.fixture(scope="module")
def study() -> Study:
    made = Study(PLAN)
    made.network = NORMED
    return made


def setting(study: Study, optimizer: str = "adam") -> tuple[Loop, dict[str, np.ndarray], Part]:
    loop = study.loop(optimizer)
    return loop, loop.begin(study.parameters(0)), study.part(optimizer, 0, 0, 4, True)


def bits_of(run: Any) -> dict[str, bytes]:
    found = {**run.trained.state, **{name: run.trained.found[name] for name in ("loss", "accuracy", "predictions")}}
    return {name: array.tobytes() for name, array in found.items()}


@pytest.mark.parametrize("optimizer", ["sgd", "momentum", "adam", "rmsprop", "adagrad"])
def test_nothing_is_changed_where_nothing_strikes(optimizer: str, study: Study, pool: Pool) -> None:
    """Neither by looking on, nor by the guard; and the loop without either has nothing of it in its text."""
    loop, state, part = setting(study, optimizer)
    assert not re.search("FAULT|Stepping|steps\\(", program(loop))
    plain = train(pool, loop, state, part)
    for guarded in (False, True):
        run = watched(pool, loop, state, part, guarded)
        assert all(run.trained.state[name].tobytes() == array.tobytes() for name, array in plain.state.items())
        assert run.trained.found["loss"].tobytes() == plain.found["loss"].tobytes()
        assert run.shown["finite"].tolist() == [1.0] * 4


ALL = sorted({(la.name, stage, array) for la in NORMED.layers for stage in STAGES for array in OPERANDS})
WEIGHTED = ("c", "n", "d")


@pytest.mark.parametrize(("layer", "stage", "array"), [
    (layer, stage, array) for layer, stage, array in ALL
    if (layer in WEIGHTED or (array != "weight" and stage != TO_WEIGHT)) and (layer, stage) != ("c", TO_INPUT)
])  # fmt: skip
def test_the_same_bits_in_place_of_others_change_nothing(
    layer: str, stage: str, array: str, study: Study, pool: Pool
) -> None:  # fmt: skip
    """So a site is struck where it says, and all else is what it was, bit for bit."""
    loop, state, part = setting(study)
    fault = Fault("RELATIVE", Site(layer, stage, array), 0, 0, 0, 3)
    done = inject(pool, loop, state, part, fault)
    assert done.strike.after.tolist() == done.strike.before.tolist()
    assert bits_of(struck(pool, loop, state, part, fault, done)) == bits_of(watched(pool, loop, state, part))


def test_struck_bits_are_there_and_only_there(study: Study, pool: Pool) -> None:
    """States that are struck after the only step."""
    loop, state, part = setting(study)
    one = replace(part, x=part.x[:16], y=part.y[:16], rates=part.rates[:1])
    plain = watched(pool, loop, state, one).trained.state
    for site, name in (
        (Site("c", OPTIMIZER, "weight.first"), "first.c.weight"),
        (Site("d", OPTIMIZER, "bias.second"), "second.d.bias"),
        (Site("n", STATISTICS, "variance"), "buffer.n.variance"),
        (Site("n", STATISTICS, "mean"), "buffer.n.mean"),
    ):
        fault = Fault("FLIP", site, 0, 0, 0, 5, chosen=(31,))
        done = inject(pool, loop, state, one, fault)
        after = struck(pool, loop, state, one, fault, done).trained.state
        assert {key for key in plain if after[key].tobytes() != plain[key].tobytes()} == {name}
        changed = np.flatnonzero(after[name] != plain[name])
        assert changed.tolist() == native(done.shape, site)[done.strike.places].tolist()
        assert np.array_equal(after[name].reshape(-1)[changed], -plain[name].reshape(-1)[changed])


def test_a_later_step_is_struck(study: Study, pool: Pool) -> None:
    loop, state, part = setting(study)
    fault = Fault("FLIP", Site("d", FORWARD, "output"), 0, 0, 0, 5, chosen=(30,))
    done = inject(pool, loop, state, part, fault, step=2)
    loss = struck(pool, loop, state, part, fault, done, step=2).trained.found["loss"]
    plain = watched(pool, loop, state, part).trained.found["loss"]
    assert loss[:2].tobytes() == plain[:2].tobytes()
    assert loss[2] != plain[2]


def test_what_is_stuck_is_stuck_for_so_long(study: Study, pool: Pool) -> None:
    """The sign of one running variance, for two steps: what is negative then is so in the end, or not."""
    loop, state, part = setting(study)
    for lasts, negative in ((1, False), (4, True)):
        fault = Fault("STUCK_1", Site("n", STATISTICS, "mean"), 0, 0, 0, 5, lasts=lasts, chosen=(30,))
        done = inject(pool, loop, state, part, fault)
        assert done.keep == 0xFFFFFFFF - (1 << 30)
        run = struck(pool, loop, state, part, fault, done)
        place = int(done.strike.places[0])
        assert (abs(run.trained.state["buffer.n.mean"][place]) >= 2) == (negative or lasts == 1)
        bits = run.trained.state["buffer.n.mean"].view(np.uint32)[place]
        if negative:
            assert bits & (1 << 30)


def test_a_run_that_is_not_finite_breaks_off(study: Study, pool: Pool) -> None:
    loop, state, part = setting(study)
    fault = Fault("FLIP", Site("d", FORWARD, "weight"), 0, 0, 0, 5)
    array = captured(pool, loop, state, part, fault)
    nan = np.array([0x7FC00000], np.uint32)
    done = injection(array, Strike(np.array([3]), array.reshape(-1)[3:4].copy().view(np.uint32), nan))
    run = struck(pool, loop, state, part, fault, done)
    assert len(run.trained.found["loss"]) == 1
    assert np.isnan(run.trained.found["loss"][0])
    assert run.shown["finite"].tolist() == [0.0]
    found = study.curves([run])
    assert found.broken == 0
    assert len(found.loss) == PLAN.after
    safe = struck(pool, loop, state, part, fault, done, guarded=True)
    assert safe.shown["alarms"].tolist() == [0]
    assert bits_of(safe) == bits_of(watched(pool, loop, state, part))


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_the_guard_in_tensorflow(optimizer: str, pool: Pool) -> None:
    """It changes no bit where nothing strikes, also in a run that goes on; a fault in its second step is found, and
    training ends as without it."""
    study = Study(replace(PLAN, framework="tensorflow"))
    study.network = NORMED
    loop, state, part = setting(study, optimizer)
    plain, quiet = train(pool, loop, state, part), watched(pool, loop, state, part, True)
    assert all(quiet.trained.state[name].tobytes() == array.tobytes() for name, array in plain.state.items())
    assert quiet.trained.found["loss"].tobytes() == plain.found["loss"].tobytes()
    state, bounds = quiet.trained.state, {"bounds": quiet.shown["bounds"]}
    fault = Fault("FLIP", Site("d", TO_WEIGHT, "output"), 0, 0, 0, 5)
    array = captured(pool, loop, state, part, fault, 1)
    large = np.array([1e20], array.dtype).view(np.uint32)
    done = injection(array, Strike(np.array([3]), array.reshape(-1)[3:4].copy().view(np.uint32), large))
    wrong = struck(pool, loop, state, part, fault, done, 1)
    safe = struck(pool, loop, state, part, fault, done, 1, guarded=True, bounds=bounds)
    right = watched(pool, loop, state, part)
    assert (safe.shown["alarms"].tolist(), safe.shown["repeated"].tolist()) == ([1], [])
    assert bits_of(wrong) != bits_of(right)
    assert bits_of(safe) == bits_of(right)
    assert safe.shown["history"].tolist() == right.shown["history"].tolist()


def test_layouts_are_each_others_inverse() -> None:
    for site, shape in (
        (Site("c", FORWARD, "output"), (2, 3, 4, 5)),
        (Site("c", FORWARD, "weight"), (6, 3, 2, 2)),
        (Site("d", TO_WEIGHT, "output"), (4, 7)),
        (Site("d", TO_WEIGHT, "weight"), (4, 7)),
        (Site("d", OPTIMIZER, "weight.first"), (4, 7)),
        (Site("n", STATISTICS, "mean"), (5,)),
    ):
        array = np.arange(int(np.prod(shape))).reshape(shape)
        seen = canonical(array, site)
        assert np.array_equal(array.reshape(-1)[native(seen.shape, site)], seen.reshape(-1))
    assert canonical(np.zeros((2, 3, 4, 5)), Site("c", FORWARD, "output")).shape == (2, 4, 5, 3)
    assert canonical(np.zeros((6, 3, 2, 2)), Site("c", FORWARD, "weight")).shape == (2, 2, 3, 6)
    assert canonical(np.zeros((4, 7)), Site("d", FORWARD, "weight")).shape == (7, 4)


@pytest.mark.parametrize("array", OPERANDS)
@pytest.mark.parametrize("stage", STAGES)
def test_each_operand_by_its_formula(stage: str, array: str) -> None:
    """y = x W^T + b, dL/dx = g W, dL/dW = g^T x: one element of an operand or a result of one of them is replaced."""
    import torch

    text = (HERE / "helpers/torch_steps.py").read_text(encoding="utf-8")
    fault = {"layer": "d", "stage": stage, "array": array, "keep": 0, "capture": False}
    space: dict[str, Any] = {"FAULT": fault, "GUARDED": False, "SLOTS": {}}
    exec(compile(text, "torch_steps.py", "exec"), space)
    torch.manual_seed(0)
    model = torch.nn.Module()
    model.d = torch.nn.Linear(4, 3)
    x, g = torch.randn(5, 4), torch.randn(5, 3)
    put = np.array([7.0], np.float32).view(np.int32)
    state = {"fault.index": np.array([2]), "fault.put": put}
    x.requires_grad_()
    with space["struck"](model, dict(model.named_parameters()), {}, None, state, {}):
        y = model.d(x)
        y.backward(g)
    weight, bias = model.d.weight.detach(), model.d.bias.detach()

    def with_fault(value: torch.Tensor, here: str, operand: str) -> torch.Tensor:
        changed = value.detach().clone()
        if (stage, array) == (here, operand):
            changed.view(-1)[2] = 7.0
        return changed

    forward = with_fault(x, FORWARD, "input") @ with_fault(weight, FORWARD, "weight").T + bias
    to_input = with_fault(g, TO_INPUT, "input") @ with_fault(weight, TO_INPUT, "weight")
    to_weight = with_fault(g, TO_WEIGHT, "weight").T @ with_fault(x, TO_WEIGHT, "input")
    expected = (
        with_fault(forward, FORWARD, "output"), with_fault(to_input, TO_INPUT, "output"),
        with_fault(to_weight, TO_WEIGHT, "output"), g.sum(0),
    )  # fmt: skip
    for given, wanted in zip((y.detach(), x.grad, model.d.weight.grad, model.d.bias.grad), expected, strict=True):
        assert given is not None
        assert torch.allclose(given, wanted, rtol=1e-5, atol=1e-6)
    assert "forward" not in vars(model.d)


SITES = (
    Site("d", FORWARD, "input"), Site("d", TO_INPUT, "weight"), Site("d", TO_WEIGHT, "weight"),
    Site("c", FORWARD, "weight"), Site("c", TO_WEIGHT, "input"), Site("r", FORWARD, "output"),
    Site("n", FORWARD, "input"), Site("n", FORWARD, "weight"), Site("n", TO_INPUT, "input"),
    Site("n", TO_WEIGHT, "input"),
)  # fmt: skip


@pytest.mark.slow(one_in=2, ci=2)
@pytest.mark.parametrize("framework", ["tensorflow", "jax"])
def test_frameworks_are_struck_alike(framework: str, pool: Pool) -> None:
    """The same fault in the same place has the same value before it, and the same parameters after it, to rounding; the
    same bits in place of others change nothing but last bits, since the step is not compiled. Running variances are
    compared with a framework's own: PyTorch's are of n - 1."""
    studies = [Study(replace(PLAN, framework=name)) for name in ("torch", framework)]
    found = []
    for study in studies:
        study.network = NORMED
        loop, state, part = setting(study, "sgd")
        part = replace(part, x=part.x[:32], y=part.y[:32], rates=part.rates[:2])
        plain = watched(pool, loop, state, part).trained.state
        results = []
        for number, site in enumerate(SITES):
            fault = Fault("FLIP", site, 0, 0, 0, number, chosen=(31,))
            done = inject(pool, loop, state, part, fault)
            run = struck(pool, loop, state, part, fault, done)
            nothing = replace(done, put=done.before)
            same = struck(pool, loop, state, part, fault, nothing)
            for name, array in plain.items():
                assert np.allclose(same.trained.state[name], array, rtol=1e-4, atol=1e-6), (site, name)
            results.append((done, run.trained.state))
        found.append(results)
    for site, (one, first), (other, second) in zip(SITES, *found, strict=True):
        assert (one.shape, one.ranges) == (other.shape, other.ranges)
        assert np.allclose(one.values, other.values, rtol=1e-3, atol=1e-6), site
        for name, array in first.items():
            if not name.endswith("variance"):
                assert np.allclose(array, second[name], rtol=1e-3, atol=1e-5), (site, name)


HALF_SITES = (
    (Site("n", TO_INPUT, "output"), 16), (Site("d", FORWARD, "weight"), 16), (Site("n", FORWARD, "weight"), 32),
    (Site("c", FORWARD, "output"), 16), (Site("d", TO_WEIGHT, "output"), 16),
    (Site("d", OPTIMIZER, "weight.first"), 32),
)  # fmt: skip
"""With the width of what is struck there: normalisation's parameters and the optimiser's state are not rounded."""


@pytest.mark.slow(one_in=3, ci=2)
@pytest.mark.parametrize("half", ["bfloat16", "float16"])
@pytest.mark.parametrize("framework", ["torch", "tensorflow", "jax"])
def test_layers_compute_in_16_bits(framework: str, half: str, pool: Pool) -> None:
    """What is struck there has 16 bits, and is one of the numbers that they have; training is what it is in 32 bits, to
    their precision, and not the same; the same fault is done again bit for bit, and its own bits change nothing."""
    if (framework, half) in (("tensorflow", "bfloat16"), ("jax", "float16")) and not nightly():
        pytest.skip("one of them is enough outside of the nightly profile")
    losses = {}
    for precision in ("float32", half):
        study = Study(replace(PLAN, framework=framework, precision=precision))
        study.network = NORMED
        loop, state, part = setting(study)
        part = replace(part, x=part.x[:32], y=part.y[:32], rates=part.rates[:2])
        plain = watched(pool, loop, state, part)
        losses[precision] = plain.trained.found["loss"]
    assert all(array.dtype == np.float32 for name, array in plain.trained.state.items() if name != "step")
    assert np.allclose(losses["float32"], losses[half], rtol=0.02)
    assert (losses["float32"] != losses[half]).all()
    for site, width in HALF_SITES if framework == "torch" else HALF_SITES[:3]:
        fault = Fault("FLIP", site, 0, 0, 0, 5, half=half, chosen=(width - 1,))
        done = inject(pool, loop, state, part, fault)
        assert done.dtype == (half if width == 16 else "float32"), site
        assert (-done.values[0] == done.values[1]).all()
        found = struck(pool, loop, state, part, fault, done)
        assert digest_of(found) == digest_of(struck(pool, loop, state, part, fault, done)), site
        assert digest_of(found) != digest_of(plain), site
        same = struck(pool, loop, state, part, fault, replace(done, put=done.before))
        if framework == "torch":
            assert bits_of(same) == bits_of(plain), site
        for name, array in plain.trained.state.items():
            assert np.allclose(same.trained.state[name], array, rtol=0.05, atol=3e-3), (site, name)


def test_a_digest_is_of_every_bit(study: Study, pool: Pool) -> None:
    loop, state, part = setting(study)
    run = watched(pool, loop, state, part)
    first = digest_of(run)
    assert first == digest_of(watched(pool, loop, state, part))
    for name in run.trained.state:
        array = run.trained.state[name].copy()
        array.reshape(-1).view(np.uint8)[0] ^= 1
        assert digest_of(replace(run, trained=replace(run.trained, state={**run.trained.state, name: array}))) != first
