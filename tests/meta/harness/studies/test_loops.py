"""The training programs of studies: three frameworks take the same first steps, and any of them goes on bit for bit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod

import numpy as np
import pytest

from generators.training.architectures.images import Images
from generators.training.architectures.named import architecture
from generators.training.networks import INPUT, Network, NetworkError
from harness.execute.pool import Limits, Pool
from harness.search.hypothesis_profiles import nightly
from harness.studies.datasets import load
from harness.studies.loops.loop import FRAMEWORKS, OPTIMIZERS, Loop
from harness.studies.loops.programs import program
from harness.studies.loops.train import Part, Trained, train

DIGITS = load("digits", train=40, test=100)
SMALL = architecture("smallcnn", DIGITS.shape, 10, 2)
RATES = np.full(3, 1e-2)
"""For batches of 16, 16 and 8."""


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(Limits(seconds=300)) as pool:
        yield pool


def parameters(network: Network) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {name: rng.normal(0, 0.3, shape) for name, shape in network.parameters.items()}


def part(first: int = 0, last: int = 40, test: int = 100) -> Part:
    rates = RATES[first // 16 : -(-last // 16)]
    held = slice(0, test)
    return Part(
        DIGITS.train[first:last], DIGITS.train_labels[first:last], rates, DIGITS.test[held], DIGITS.test_labels[held]
    )  # fmt: skip


def three(pool: Pool, network: Network, optimizer: str, *options: tuple[str, float]) -> dict[str, Trained]:
    """What each framework makes of the same steps in float64."""
    found = {}
    for framework in FRAMEWORKS:
        loop = Loop(framework, network, optimizer, options, 16, "float64")
        found[framework] = train(pool, loop, loop.begin(parameters(network)), part())
    return found


def check_same(found: dict[str, Trained], rtol: float, ignored: tuple[str, ...]) -> None:
    """The same batches, losses, predictions and states; names that begin with one of `ignored` apart."""
    base = found["torch"]
    assert base.state["step"] == 3
    for framework, other in found.items():
        np.testing.assert_array_equal(other.found["batches"], base.found["batches"], framework)
        np.testing.assert_array_equal(other.found["predictions"], base.found["predictions"], framework)
        for name in ("loss", "accuracy", "test_loss"):
            np.testing.assert_allclose(other.found[name], base.found[name], rtol, err_msg=f"{framework} {name}")
        for name, value in base.state.items():
            if not name.startswith(ignored):
                within = rtol * np.abs(value).max()
                np.testing.assert_allclose(other.state[name], value, rtol, within, err_msg=f"{framework} {name}")


@pytest.mark.slow(one_in=4)
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_frameworks_take_the_same_steps(pool: Pool, optimizer: str) -> None:
    """In float64, with an eps that counts for nothing. Keras' Adam rounds its betas to float32 first (`ops.cast` of a
    Python number), which is off by up to 3e-8, and so 1 - 0.999 by 3e-5 of itself."""
    if optimizer not in ("momentum", "adam") and not nightly():
        pytest.skip("the other optimisers are compared in the nightly profile")
    options = (("eps", 1e-30),) if "eps" in OPTIMIZERS[optimizer][0] else ()
    ignored = ("momentum.",) if optimizer == "momentum" else ("none",)  # Keras' has the learning rate in it
    found = three(pool, SMALL, optimizer, *options)
    assert np.ptp(found["torch"].found["predictions"]) > 0
    check_same(found, 1e-4 if optimizer == "adam" else 1e-10, ignored)


def every_window() -> Network:
    """Windows of all kinds, by channel and across, averages, gates and values side by side."""
    made = Images((2, 7, 5))
    wide = made.convolved(INPUT, 4, 1, bias=True, across=5)
    by_channel = made.depthwise(made.convolved(wide, 3, 3, pad=0), 3, 2)
    doubled = made.convolved(by_channel, 6, 3, groups=3)
    averages = made.add("avg_pool", made.add("avg_pool", wide, kernel=3, stride=1), kernel=2, stride=2, pad=0)
    greatest = made.add("max_pool", wide, kernel=3, stride=2, pad=0)
    both = made.add("concat", made.add("silu", doubled), greatest, averages)
    gates = made.add("sigmoid", made.add("linear", made.add("mean", both), features=14, bias=1))
    return made.done(made.add("flatten", made.add("scale", both, gates)), 10)


@pytest.mark.slow
def test_windows_are_the_same_in_all_frameworks(pool: Pool) -> None:
    network, rng = every_window(), np.random.default_rng(1)
    x, held = rng.random((40, *network.shape)), rng.random((9, *network.shape))
    some = Part(x, DIGITS.train_labels[:40], RATES, held, np.arange(9))
    found = {}
    for framework in FRAMEWORKS:
        loop = Loop(framework, network, "sgd", batch=16, dtype="float64")
        found[framework] = train(pool, loop, loop.begin(parameters(network)), some)
    assert np.ptp(found["torch"].found["predictions"]) > 0
    check_same(found, 1e-10, ("none",))


PARAMETERS = {
    "resnet18": 11_689_512, "resnet50": 25_557_032, "resnet101": 44_549_160, "resnet152": 60_192_808,
    "vgg16": 138_357_544, "vgg19": 143_667_240, "densenet121": 7_978_856, "densenet169": 14_149_480,
    "densenet201": 20_013_928, "inceptionv3": 23_817_352 + 17_216, "xception": 22_855_952, "mobilenet": 4_231_976,
    "efficientnetb0": 5_288_548, "efficientnetb1": 7_794_184, "efficientnetb2": 9_109_994,
    "efficientnetb4": 19_341_616, "efficientnetb7": 66_347_960,
}  # fmt: skip
"""As torchvision's and Keras' documentation have them (Keras: without running statistics, which are not trained; its
InceptionV3 has no factors in its normalisations, ours has)."""


@pytest.mark.parametrize("name", PARAMETERS)
def test_networks_are_those_that_were_published(name: str) -> None:
    network = architecture(name, (3, 224, 224), 1000)
    assert sum(prod(shape) for shape in network.parameters.values()) == PARAMETERS[name]


def test_a_picture_that_is_too_small() -> None:
    with pytest.raises(NetworkError, match="75 rows and columns or more, not 32 x 32"):
        architecture("inceptionv3", (3, 32, 32), 10)


@pytest.mark.parametrize("name", ["resnet18", "resnet50", "resnet29v2", "mobilenet", "efficientnetb0", "xception"])
def test_networks_are_the_same_in_all_frameworks(pool: Pool, name: str) -> None:
    """Running variances differ by n / (n - 1): PyTorch keeps the unbiased one, so that test results, which come from
    them, are not compared (and are of one class after three steps)."""
    if not nightly():
        pytest.skip("XLA takes 15 to 40 s to compile one: nightly profile")
    network = architecture(name, (1, 8, 8), 10, 2)
    found = three(pool, network, "sgd")
    for framework in FRAMEWORKS:  # test results come from running variances
        same = {name: found["torch"].found[name] for name in ("predictions", "test_loss")}
        found[framework] = replace(found[framework], found={**found[framework].found, **same})
    check_same(found, 1e-6, tuple(f"buffer.{n}" for n in Loop("torch", network).statistics if n.endswith("variance")))


@pytest.mark.slow(one_in=3)
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_run_goes_on_bit_for_bit(pool: Pool, framework: str) -> None:
    """From its state after the first step, in the same process and in another one."""
    loop = Loop(framework, SMALL, "momentum", batch=16, dtype="float64")
    begin = loop.begin(parameters(SMALL))
    whole = train(pool, loop, begin, part())
    first = train(pool, loop, begin, part(0, 16, 0))
    assert np.isnan(first.found["test_loss"])
    pool.restart_worker(framework)
    rest = train(pool, loop, first.state, part(16))
    for name, value in whole.state.items():
        np.testing.assert_array_equal(rest.state[name], value, name)
    np.testing.assert_array_equal(whole.found["predictions"], rest.found["predictions"])
    np.testing.assert_array_equal(whole.found["loss"], [*first.found["loss"], *rest.found["loss"]])


PROBES = {
    "torch": "def probe(name, value, given):\n"
    '    return value * (1 + given["factor"] * (given["step"] == 1)) if name == "l3.NAME" else value',
    "tensorflow": "def probe(name, value, given):\n"
    '    on = tf.cast(given["step"] == 1, value.dtype)\n'
    '    return value * (1 + given["factor"] * on) if name == "l3.NAME" else value',
    "jax": "def probe(name, value, given):\n"
    '    return value * (1 + given["factor"] * (given["step"] == 1)) if name == "l3.NAME" else value',
}


@pytest.mark.slow(one_in=9)
@pytest.mark.parametrize("place", ["input", "weight", "result"])
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_probe_changes_one_value_at_one_step(pool: Pool, framework: str, place: str) -> None:
    """A factor of 1 on the input, weight or result of one layer, in the second step only."""
    if framework != "torch" and place != "weight" and not nightly():
        pytest.skip("one place is enough where each compiles for seconds: nightly profile")
    text = PROBES[framework].replace("NAME", place)
    probed = Loop(framework, SMALL, "momentum", batch=16, dtype="float64", probe=text, given=("factor",))
    state = probed.begin(parameters(SMALL))
    found = [train(pool, probed, state, replace(part(), given={"factor": np.float64(factor)})) for factor in (0.0, 1.0)]
    plain = train(pool, Loop(framework, SMALL, "momentum", batch=16, dtype="float64"), state, part())
    np.testing.assert_allclose(found[0].found["loss"], plain.found["loss"], 1e-12)
    changed = found[1].found["loss"] != found[0].found["loss"]
    assert changed.tolist() == [False, True, True]


def test_a_probe_leaves_no_trace_where_there_is_none() -> None:
    for framework in FRAMEWORKS:
        text = program(Loop(framework, SMALL))
        assert "probe" not in text
        assert ", given" not in text
