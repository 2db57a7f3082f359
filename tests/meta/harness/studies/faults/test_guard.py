"""The guard of training loops: bounds that fault-free training keeps, faults that break them, and the way back."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.studies.faults.guard.bounds import JUMP, RECENT, SLACK, WARM, Bounds, limits

STEPS = 24
X = np.random.default_rng(0).standard_normal((STEPS, 16, 6)).astype(np.float32)
Y = (X[..., 0] > 0).astype(np.int64)
OPTIMIZERS = ("sgd", "momentum", "adam", "rmsprop", "adagrad")
Strike = Callable[[Any, int], None]
"""Is called with what is trained, after the step with this number."""


class Torch:
    """Training in PyTorch, guarded."""

    def __init__(self, name: str) -> None:
        import torch

        from harness.studies.faults.guard.torch import Guard

        self.torch = torch
        torch.manual_seed(0)
        self.first, self.norm, self.last = torch.nn.Linear(6, 8), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 2)
        self.model = torch.nn.Sequential(self.first, self.norm, torch.nn.ReLU(), self.last)
        made = {
            "sgd": lambda p: torch.optim.SGD(p, 0.1),
            "momentum": lambda p: torch.optim.SGD(p, 0.05, momentum=0.9),
            "adam": lambda p: torch.optim.Adam(p, 0.01),
            "rmsprop": lambda p: torch.optim.RMSprop(p, 0.01),
            "adagrad": lambda p: torch.optim.Adagrad(p, 0.05),
        }
        self.optimizer = made[name](self.model.parameters())
        self.guard = Guard(self.model, self.optimizer)

    def step(self, number: int, spike: float) -> float:
        self.optimizer.zero_grad()
        outputs = self.model(self.torch.from_numpy(X[number]))
        loss = self.torch.nn.functional.cross_entropy(outputs, self.torch.from_numpy(Y[number]))
        loss.backward()
        if spike:
            assert self.first.weight.grad is not None
            self.first.weight.grad[1, 2] = spike
        self.optimizer.step()
        self.loss = loss
        return loss.item()

    def after(self, number: int) -> int:
        return self.guard.after(number, self.loss)

    def arrays(self) -> list[np.ndarray]:
        return [value.detach().numpy().copy() for value in self.guard._tensors()]

    def set(self, what: str, value: float) -> None:
        with self.torch.no_grad():
            if what == "variance":
                assert self.norm.running_var is not None
                self.norm.running_var[3] = value
            else:
                slot = {"m": ("exp_avg", "momentum_buffer"), "v": ("exp_avg_sq", "square_avg", "sum")}[what]
                state = self.optimizer.state[self.last.weight]
                state[next(name for name in slot if name in state)][0, 1] = value


class TensorFlow:
    """Training in TensorFlow, guarded."""

    def __init__(self, name: str) -> None:
        import keras
        import tensorflow as tf

        from harness.studies.faults.guard.tensorflow import Guard

        self.tf = tf
        keras.config.set_floatx("float32")
        keras.utils.set_random_seed(0)
        self.norm = keras.layers.BatchNormalization()
        self.model = keras.Sequential([keras.layers.Dense(8), self.norm, keras.layers.ReLU(), keras.layers.Dense(2)])
        self.model.build((None, 6))
        self.optimizer = {
            "sgd": lambda: keras.optimizers.SGD(0.1),
            "momentum": lambda: keras.optimizers.SGD(0.05, momentum=0.9),
            "adam": lambda: keras.optimizers.Adam(0.01),
            "rmsprop": lambda: keras.optimizers.RMSprop(0.01),
            "adagrad": lambda: keras.optimizers.Adagrad(0.05),
        }[name]()
        variables = {v.path: v.value for v in self.model.trainable_variables}
        self.trained = list(self.model.trainable_variables)
        self.optimizer.build(self.trained)
        self.guard = Guard(variables, self.optimizer, {"norm": self.norm})

    def step(self, number: int, spike: float) -> float:
        tf = self.tf
        with tf.GradientTape() as tape:
            outputs = self.model(tf.constant(X[number]), training=True)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(tf.constant(Y[number]), outputs))
        self.gradients: list[Any] = list(tape.gradient(loss, [v.value for v in self.trained]))
        if spike:
            self.gradients[0] = tf.tensor_scatter_nd_update(self.gradients[0], [[2, 1]], [spike])
        self.optimizer.apply(self.gradients, self.trained)
        self.loss = float(loss)
        return self.loss

    def after(self, number: int) -> int:
        return self.guard.after(number, self.loss, self.gradients)

    def arrays(self) -> list[np.ndarray]:
        return [value.numpy() for value in self.guard.all]

    def set(self, what: str, value: float) -> None:
        if what == "variance":
            variable, place = self.guard.norms["norm"].moving_variance.value, [[3]]
        else:
            names = {"m": ("_momentums", "momentums"), "v": ("_velocities", "_accumulators")}[what]
            slots = next(getattr(self.optimizer, name) for name in names if hasattr(self.optimizer, name))
            variable, place = slots[-2].value, [[1, 0]]
        variable.assign(self.tf.tensor_scatter_nd_update(variable, place, [value]))


def trained(
    kind: type, name: str, spikes: dict[int, float] | None = None, strike: Strike | None = None, lasting: bool = False
) -> Any:
    """All steps, guarded. spikes: elements of gradients by step; strike: after a step; both the first time only, unless
    they are lasting. The number of steps that ran is `ran`."""
    run = kind(name)
    done: set[int] = set()
    number = run.ran = 0
    while number < STEPS:
        run.guard.before(number)
        fresh = lasting or number not in done
        run.step(number, (spikes or {}).get(number, 0.0) if fresh else 0.0)
        if strike and fresh:
            strike(run, number)
        done.add(number)
        number = run.after(number)
        run.ran += 1
        assert run.ran < 3 * STEPS
    return run


KINDS = (Torch, TensorFlow)


@cache
def fault_free(kind: type, name: str) -> Any:
    return trained(kind, name)


def same(run: Any, other: Any) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(run.arrays(), other.arrays(), strict=True))


@pytest.mark.slow(one_in=4)
@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("kind", KINDS)
def test_fault_free_training_raises_no_alarm(kind: type, name: str) -> None:
    run = fault_free(kind, name)
    assert run.guard.alarms == []
    assert run.ran == STEPS
    assert run.guard.bounds.steps == STEPS


@pytest.mark.slow(one_in=4)
@pytest.mark.parametrize(
    ("kind", "name", "spike"),
    [
        *((Torch, name, spike) for name in ("adam", "sgd") for spike in (3e17, -3e17, np.inf, np.nan, -100.0)),
        (TensorFlow, "adam", -3e17),
        (TensorFlow, "sgd", np.nan),
    ],
)
def test_a_gradient_is_found_at_once_and_training_ends_as_without_it(kind: type, name: str, spike: float) -> None:
    run = trained(kind, name, {15: spike})
    assert [step for step, _ in run.guard.alarms] == [15]
    assert "gradient of" in run.guard.alarms[0][1]
    assert run.guard.repeated == []
    assert run.ran == STEPS + 2  # two iterations again
    assert same(run, fault_free(kind, name))


KEPT = (
    ("adam", "m", -1e17),  # the side that a check of one side misses
    ("adam", "m", 1e17),
    ("adam", "v", -1e-3),
    ("adam", "v", 1e17),
    ("momentum", "m", -1e17),
    ("rmsprop", "v", 1e17),
    ("adagrad", "v", -1e-6),  # the sum of squares fell
    ("adagrad", "v", 1e17),
    ("sgd", "variance", -50.0),
    ("sgd", "variance", 1e17),
    ("sgd", "variance", np.inf),
)


@pytest.mark.slow(one_in=4)
@pytest.mark.parametrize(
    ("kind", "name", "what", "value"),
    [*((Torch, *case) for case in KEPT), *((TensorFlow, *case) for case in KEPT[::3])],
)
def test_what_is_kept_is_held_to_its_recurrence(kind: type, name: str, what: str, value: float) -> None:
    run = trained(kind, name, strike=lambda run, number: run.set(what, value) if number == 12 else None)
    assert [step for step, _ in run.guard.alarms] == [12]
    assert same(run, fault_free(kind, name))


@pytest.mark.parametrize("kind", KINDS)
def test_a_loss_that_jumps_is_run_again(kind: type) -> None:
    """A step of another loss, whose gradients are of ordinary size, as a fault of the forward pass leaves it."""
    run, done = kind("sgd"), set()
    number = 0
    while number < STEPS:
        run.guard.before(number)
        run.step(number, 0.0)
        if number == 12 and number not in done:
            run.loss = run.loss * 0 + JUMP * max(run.guard.bounds.losses) * 1.01
        done.add(number)
        number = run.after(number)
    assert [step for step, _ in run.guard.alarms] == [12]
    assert "the loss is" in run.guard.alarms[0][1]
    assert run.guard.repeated == []
    assert same(run, fault_free(kind, "sgd"))


def test_a_loss_that_jumps_again_is_believed_and_held_to_recent_ones_only() -> None:
    bounds = Bounds()
    for loss in [9.0, *[1.0] * RECENT]:
        assert bounds.wrong(loss, {}, {}, {}) == ""
        bounds.accept(loss, {}, {}, {})
    assert bounds.wrong(JUMP, {}, {}, {}) == ""
    assert bounds.wrong(JUMP * 1.01, {}, {}, {}) == "the loss is 2.02, at most 2"
    bounds.accept(JUMP * 1.01, {}, {}, {})
    assert bounds.wrong(JUMP * 1.01, {}, {}, {}) == ""


@pytest.mark.parametrize("kind", KINDS)
def test_what_comes_again_is_believed(kind: type) -> None:
    run = trained(kind, "sgd", {15: 80.0}, lasting=True)
    assert run.guard.alarms[0][0] == 15
    assert run.guard.repeated[0][0] == 15
    assert run.ran == STEPS + 2 * len(run.guard.alarms)
    assert run.guard.bounds.steps == STEPS + len(run.guard.alarms)  # the step before each of them counts twice


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_step_is_run_again_too(kind: type) -> None:
    run = trained(kind, "adam", {0: np.nan})
    assert [step for step, _ in run.guard.alarms] == [0]
    assert same(run, fault_free(kind, "adam"))


NUMBERS = st.lists(st.floats(-1e3, 1e3, width=32), min_size=1, max_size=40)


@given(NUMBERS, st.floats(0, 0.999), st.floats(1e-3, 1))
def test_limits_hold_for_every_sequence_of_gradients(gradients: list[float], factor: float, rate: float) -> None:
    kept = {"mean": 0.0, "square": 0.0, "sum": 0.0, "momentum": 0.0}
    most = 0.0
    for g in gradients:
        most = max(most, abs(g))
        before = dict(kept)
        kept["mean"] = factor * kept["mean"] + (1 - factor) * g
        kept["square"] = factor * kept["square"] + (1 - factor) * g * g
        kept["sum"] += g * g
        kept["momentum"] = factor * kept["momentum"] + rate * g
        for rule, value in kept.items():
            low, high = limits(rule, most, before[rule], before[rule], factor, rate)
            room = SLACK * max(abs(low), abs(high))
            assert low - room <= value <= high + room


def test_limits_are_reached() -> None:
    """By gradients that are all alike: none could be narrower."""
    mean = square = momentum = momentum_before = 0.0
    for _ in range(2000):
        momentum_before = momentum
        mean, square, momentum = 0.9 * mean + 0.1 * -2, 0.9 * square + 0.1 * 4, 0.9 * momentum + 0.5 * -2
    assert mean == pytest.approx(limits("mean", 2.0, 0, 0, 0, 0)[0])
    assert square == pytest.approx(limits("square", 2.0, 0, 0, 0, 0)[1])
    assert momentum == pytest.approx(limits("momentum", 2.0, momentum_before, momentum_before, 0.9, 0.5)[0])
    assert limits("sum", 2.0, 3.0, 5.0, 0, 0) == (3.0, 9.0)


def test_nothing_is_held_against_the_first_steps_but_what_is_not_finite() -> None:
    bounds = Bounds()
    for step in range(WARM):
        assert bounds.wrong(1.0, {"w": (-(10.0**step), 0.0)}, {}, {}) == ""
        assert bounds.wrong(1.0, {"w": (0.0, float("nan"))}, {}, {}) == "the gradient of w is not finite"
        assert bounds.wrong(float("inf"), {}, {}, {}) == "the loss is inf"
        bounds.accept(1.0, {"w": (-(10.0**step), 0.0)}, {}, {})
    assert bounds.wrong(1.0, {"w": (-7.9e7, 0.0)}, {}, {}) == ""
    assert bounds.wrong(1.0, {"w": (-8.1e7, 0.0)}, {}, {}) == "the gradient of w is 8.1e+07, at most 8e+07"


def test_replicas_that_differ_are_found(tmp_path: Path) -> None:
    import torch
    import torch.distributed as dist

    from harness.studies.faults.guard.torch import Guard

    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/meeting", rank=0, world_size=1)
    try:
        model = torch.nn.Linear(2, 1)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        guard = Guard(model, optimizer, replicas=True)
        guard.before(0)
        loss = model(torch.ones(1, 2)).sum()
        loss.backward()
        optimizer.step()
        assert guard.after(0, loss) == 1
        guard.before(1)
        with torch.no_grad():
            model.weight.fill_(float("nan"))  # equal to nothing, itself not either
        assert guard.after(1, loss) == 0
        assert guard.alarms == [(1, "replicas differ in weight")]
    finally:
        dist.destroy_process_group()
