"""The measured noise floor of whole networks: correct runs are accepted, a wrong layer is caught."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from examples.networks_onnx import FAULTS, NETWORKS
from onnx import TensorProto, helper

from harness.conversions.formats import RUNNERS
from harness.conversions.model_file import Port, Signature
from harness.execute.isolation import confinement
from harness.execute.isolation.confinement import Confinement
from harness.execute.pool import Job, Pool, ProgramError
from harness.models.given.inputs import drawn
from harness.models.layer_errors import layers_of
from harness.models.measure import once
from harness.models.reference import SOURCES, Reference, derive, monte_carlo_program
from harness.models.results import assemble
from harness.models.variants import ModelFile, Variant
from oracles.judge.compare import compare_all
from oracles.judge.outcome import Value
from oracles.judge.verdict import Verdict, judge
from oracles.models import noise
from oracles.onnx.noise import monte_carlo

RNG = np.random.default_rng(3)


@pytest.fixture(scope="module")
def workers() -> Iterator[Pool]:
    with Pool() as pool:
        yield pool


def ports_of(model: onnx.ModelProto) -> tuple[list[Port], list[Port]]:
    """Inputs and outputs."""
    sides = [
        [Port(v.name, "float32", tuple(d.dim_value for d in v.type.tensor_type.shape.dim)) for v in side]
        for side in (model.graph.input, model.graph.output)
    ]
    return sides[0], sides[1]


def verdicts(pool: Pool, network: str, faults: list[str], folder: Path) -> tuple[Reference, dict[str, Verdict]]:
    """What is made of the network on ONNX Runtime at two levels, and of the same with faults."""
    right = folder / f"{network}.onnx"
    onnx.save(NETWORKS[network](), right)
    inputs, outputs = ports_of(onnx.load(right))
    sets = drawn(inputs, 7, 1, {})
    reference = derive(pool, (right, "onnx"), (right, network), outputs, sets, 0)
    assert reference.expected, reference.how
    files = {"ort-all": right, "ort-disable": right}
    for fault in faults:
        model = NETWORKS[network]()
        FAULTS[fault][0](model)
        files[fault] = folder / f"{network} {fault}.onnx"
        onnx.save(model, files[fault])
    variants = [Variant(ModelFile(path, "onnx"), RUNNERS.get(name, RUNNERS["ort-all"])) for name, path in files.items()]
    runs = list(once(pool, variants, Signature(tuple(inputs), tuple(outputs)), sets))
    return reference, {
        name: judge(reference.expected[0], run.outcomes[0]) for name, run in zip(files, runs, strict=True)
    }


@pytest.mark.parametrize("network", NETWORKS)
def test_correct_runs_are_accepted_and_wrong_layers_caught(workers: Pool, network: str, tmp_path: Path) -> None:
    faults = [name for name, (_, networks) in FAULTS.items() if network in networks]
    reference, found = verdicts(workers, network, faults, tmp_path)
    statuses = {name: verdict.status for name, verdict in found.items()}
    assert statuses == {"ort-all": "agree", "ort-disable": "agree", **dict.fromkeys(faults, "mismatch")}
    assert all(verdict.undetermined == 0 for verdict in found.values())
    assert reference.expected
    (bound,) = reference.expected[0].values
    assert 1e-7 < np.max(bound.error / np.abs(bound.value).max()) < 1e-4  # a floor, and no barn door


@pytest.mark.parametrize("network", NETWORKS)
def test_the_layer_that_adds_error_is_named(workers: Pool, network: str, tmp_path: Path) -> None:
    right, wrong = tmp_path / "right.onnx", tmp_path / "wrong.onnx"
    onnx.save(NETWORKS[network](), right)
    (arrays,) = drawn(ports_of(onnx.load(right))[0], 3, 1, {})
    sound = layers_of(workers, right, Variant(ModelFile(right, "onnx"), RUNNERS["ort-all"]), arrays)
    assert (sound.why, sound.culprit) == ("", None)
    assert all(layer.judged for layer in sound.errors)
    for plant in (plant for plant, networks in FAULTS.values() if network in networks):
        model = onnx.load(right)
        output = plant(model)
        onnx.save(model, wrong)
        found = layers_of(workers, right, Variant(ModelFile(wrong, "onnx"), RUNNERS["ort-all"]), arrays)
        assert [layer.output for layer in found.errors if layer.wrong] == [output]


def test_layers_without_common_names_are_not_judged(workers: Pool, tmp_path: Path) -> None:
    onnx.save(NETWORKS["residual"](), tmp_path / "right.onnx")
    other = single("Relu", np.ones((1, 2), np.float32))
    onnx.save(other, tmp_path / "other.onnx")
    (arrays,) = drawn(ports_of(NETWORKS["residual"]())[0], 3, 1, {})
    variant = Variant(ModelFile(tmp_path / "other.onnx", "onnx"), RUNNERS["ort-all"])
    assert layers_of(workers, tmp_path / "right.onnx", variant, arrays).why


def test_a_network_that_cannot_be_had_as_onnx_has_no_reference(workers: Pool, tmp_path: Path) -> None:
    none = derive(workers, (tmp_path / "m.tflite", "tflite"), None, [], (), 0)
    assert none.expected is None
    assert none.how.startswith("no reference: the model cannot be had as ONNX")
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(b"no protobuf")
    sets = ((np.zeros((1, 2), np.float32),),)
    told = derive(workers, (broken, "onnx"), (broken, "the model"), [], sets, 0)
    assert told.expected is None
    assert told.how.startswith("no reference: the model does not evaluate in float64")


@pytest.mark.skipif(confinement.missing() is not None, reason=str(confinement.missing()))
def test_a_confined_worker_imports_the_evaluator(tmp_path: Path) -> None:
    """Of this repository it may read that folder alone."""
    x = np.ones((2, 2), np.float32)
    onnx.save(single("Exp", x), tmp_path / "m.onnx")
    text = monte_carlo_program(tmp_path / "m.onnx", ["x0"], 0)
    job = Job("reference", ("onnx",), text, {"x0": x})
    with Pool(confined=Confinement((tmp_path / "m.onnx", SOURCES))) as pool:
        (outcome,) = pool.run([job], confirm=False)
    assert isinstance(outcome, Value), outcome
    less = Confinement((tmp_path / "m.onnx",))
    with Pool(confined=less) as pool, pytest.raises(ProgramError, match=r"oracles\.onnx"):
        pool.run([job], confirm=False)


def test_a_node_without_a_rule_is_named(workers: Pool, tmp_path: Path) -> None:
    model = single("Exp", np.ones((1, 2), np.float32))
    model.graph.node[0].op_type = "Unheard"
    model.graph.node[0].name = "here"
    onnx.save(model, tmp_path / "m.onnx")
    sets = ((np.ones((1, 2), np.float32),),)
    told = derive(workers, (tmp_path / "m.onnx", "onnx"), (tmp_path / "m.onnx", "the model"), [], sets, 0)
    assert "Unheard here: no rule" in told.how


# ---- the noise itself ---------------------------------------------------------------------------------------


def single(kind: str, *inputs: np.ndarray, **attributes: Any) -> onnx.ModelProto:
    """A model of one node."""
    names = [f"x{place}" for place in range(len(inputs))]
    node = helper.make_node(kind, names, ["y"], **attributes)
    given = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in zip(names, inputs, strict=True)
    ]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph([node], "single", given, [output])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


@pytest.mark.parametrize("positive", [False, True])
def test_the_noise_of_a_sum_is_that_of_adding_in_float32(positive: bool) -> None:
    x, w = RNG.normal(size=(64, 500)).astype(np.float32), RNG.normal(size=(500, 1)).astype(np.float32)
    if positive:
        x, w = np.abs(x), np.abs(w)
    exact, runs = monte_carlo(single("MatMul", x, w), (x, w), 8, 0)
    spread = np.sqrt(np.mean((runs - exact) ** 2))
    added = np.cumsum(x * w.T, axis=1, dtype=np.float32)[:, -1:]  # one after the other
    error = np.sqrt(np.mean((added - exact) ** 2))
    assert 0.3 < error / spread < 1.5
    shuffled = np.sqrt(np.mean((x @ w - exact) ** 2))
    assert shuffled < 1.5 * spread


def test_what_only_moves_elements_has_no_noise() -> None:
    x = RNG.normal(size=(3, 4)).astype(np.float32)
    for kind, attributes in (("Relu", {}), ("Transpose", {"perm": [1, 0]}), ("Flatten", {}), ("Neg", {})):
        exact, runs = monte_carlo(single(kind, x, **attributes), (x,), 2, 0)
        assert (runs == exact).all(), kind


def test_the_same_seed_gives_the_same_noise() -> None:
    x = RNG.normal(size=(3, 4)).astype(np.float32)
    first, second, other = (monte_carlo(single("Exp", x), (x,), 2, seed)[1] for seed in (1, 1, 2))
    assert (first == second).all()
    assert (first != other).any()
    assert (first[0] != first[1]).any()


def test_everything_is_evaluated_in_float64() -> None:
    """Constants, casts and functions that name float32 do not narrow it."""
    for network in NETWORKS.values():
        model = network()
        x = RNG.normal(size=[d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]).astype(np.float32)
        exact, _ = monte_carlo(model, (x,), 1, 0)
        assert exact.dtype == np.float64
        assert (exact != exact.astype(np.float32)).any()
    cast = single("Cast", np.ones(3, np.float32), to=TensorProto.FLOAT)
    value = np.array([1 + 2**-23, 3, 0.1], np.float32)
    exact, _ = monte_carlo(cast, (value,), 1, 0)
    assert exact.dtype == np.float64


# ---- what is allowed ----------------------------------------------------------------------------------------


def test_what_is_allowed_grows_with_the_noise() -> None:
    exact = RNG.normal(size=(2, 50))
    for size in (1e-6, 1e-4):
        runs = exact + size * RNG.normal(size=(noise.RUNS, 2, 50))
        expected = noise.expect(["y"], ["float32"], [exact], [runs])
        assert not compare_all([(exact + 2 * size).astype(np.float32)], expected).discrepancy
        assert compare_all([(exact + 40 * size).astype(np.float32)], expected).discrepancy


def test_noise_that_decides_and_chaos_are_undetermined() -> None:
    runs = np.array([[3, 5], [3, 4]])
    expected = noise.expect(["y"], ["int64"], [np.array([3, 5])], [runs])
    assert expected.values[0].undetermined.tolist() == [False, True]
    chaos = noise.expect(["y"], ["float32"], [np.ones((1, 3))], [1 + RNG.normal(size=(noise.RUNS, 1, 3))])
    assert chaos.values[0].undetermined.all()


def test_nan_and_infinities_are_demanded_where_noise_does_not_change_them() -> None:
    exact = np.array([[np.nan, np.inf, 1.0]])
    runs = np.repeat(exact[None], noise.RUNS, axis=0)
    expected = noise.expect(["y"], ["float32"], [exact], [runs])
    assert not compare_all([exact.astype(np.float32)], expected).discrepancy
    wrong = compare_all([np.array([[0, np.inf, 1]], np.float32)], expected).discrepancy
    assert wrong is not None
    assert wrong.symptom == "special"


def test_nothing_to_compare_is_an_error() -> None:
    with pytest.raises(ValueError, match="nothing to compare"):
        assemble(ModelFile(Path("m.onnx"), "onnx"), [], [], Reference(None, ""), [], [], 0, 0, {})


def transformed(x: np.ndarray, turns: bool) -> np.ndarray:
    """The Fourier transform of real numbers in float32, term after term. turns: are angles reduced to one turn?"""
    n, one = len(x), np.float32(2 * np.pi / len(x))
    found = np.zeros((n, 2), np.float32)
    for place, value in enumerate(x):
        number = np.arange(n) * place
        angle = (number % n if turns else number).astype(np.float32) * one
        found += value * np.stack([np.cos(angle), -np.sin(angle)], -1)
    return found


def test_the_noise_of_a_transform_is_that_of_angles_of_one_turn() -> None:
    x = (1 + RNG.normal(size=300)).astype(np.float32)
    value, noisy = monte_carlo(single("DFT", x.reshape(1, -1, 1), axis=1), [x.reshape(1, -1, 1)], 8, 0)
    bound = noise.expect(["y"], ["float32"], [value], [noisy]).values[0]
    ratios = [float(np.max(np.abs(transformed(x, turns) - value[0]) / bound.error[0])) for turns in (True, False)]
    assert ratios[0] < 0.5
    assert ratios[1] > 2


def test_the_noise_of_terms_that_cancel_is_that_of_the_terms() -> None:
    x = np.array([[[1.0, -1.0 - 1e-4, 1.0]]], np.float32)
    scales = np.array([1, 1, 2], np.float32)
    for mode in ("linear", "cubic"):
        model = single("Resize", x, np.zeros(0, np.float32), scales, mode=mode)
        exact, runs = monte_carlo(model, [x, np.zeros(0, np.float32), scales], 16, 0)
        assert (np.abs(runs - exact).max(axis=0) > 2.0**-24).all()
    for kind in ("Sum", "Mean"):
        exact, runs = monte_carlo(single(kind, x, -x, x, -x), [x, -x, x, -x], 16, 0)
        assert (np.abs(runs - exact).max(axis=0) > 2.0**-25).all()


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_the_noise_of_a_loss_is_that_of_adding_its_terms(reduction: str) -> None:
    scores = RNG.normal(size=(4000, 3)).astype(np.float32) - 5
    classes, weights = RNG.integers(0, 3, 4000), np.array([0.5, 1.0, 0.7], np.float32)
    model = single("NegativeLogLikelihoodLoss", scores, classes, weights, reduction=reduction)
    value, noisy = monte_carlo(model, [scores, classes, weights], 8, 0)
    bound = noise.expect(["y"], ["float32"], [value], [noisy]).values[0]
    total, divisor = np.float32(0), np.float32(0)
    for row, number in zip(scores, classes, strict=True):
        total, divisor = total - row[number] * weights[number], divisor + weights[number]
    got = total / divisor if reduction == "mean" else total
    assert abs(got - value) < bound.error
    assert bound.error < 1e-3 * abs(value)
