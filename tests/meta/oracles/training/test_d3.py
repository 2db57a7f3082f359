"""D3's judgement: closeness, relative changes, clusters."""

from __future__ import annotations

import numpy as np
import pytest

from generators.training.networks import Layer, Network, checked
from oracles.training import d3

LOGITS = np.array([[0.0, 1.0, -1.0], [2.0, 0.0, 0.5]], np.float32)


def test_closeness_has_d3s_thresholds_and_nan_is_nan() -> None:
    assert d3.closeness(LOGITS, LOGITS) == d3.Closeness(True, 0.0, True)
    near, far = LOGITS.copy(), LOGITS.copy()
    near[0, 0] += 1e-3
    far[0, 0] += 1e-2
    assert d3.closeness(LOGITS, near).consistent
    assert not d3.closeness(LOGITS, far).consistent
    assert d3.closeness(LOGITS, far).largest == pytest.approx(1e-2 * 0.2447 * 0.7553, rel=0.02)
    lost = LOGITS.copy()
    lost[0] = np.nan
    assert d3.closeness(lost, lost) == d3.Closeness(True, 0.0, False)
    assert d3.closeness(LOGITS, lost) == d3.Closeness(False, np.inf, False)
    assert not d3.closeness(LOGITS, LOGITS[:1]).consistent


CHAIN = checked(
    Network(
        (3,), 0,
        (
            Layer("l0", "linear", ("x",), (4,), (("features", 4), ("bias", 1))),
            Layer("l1", "tanh", ("l0",), (4,)),
            Layer("l2", "linear", ("l1",), (4,), (("features", 4), ("bias", 1))),
            Layer("l3", "add", ("l2", "l0"), (4,)),
        ),
    )
)  # fmt: skip


def chain_values() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {f"parameter.{name}": rng.standard_normal(shape) for name, shape in CHAIN.parameters.items()}


def test_relative_change_is_of_the_greatest_layer_before() -> None:
    changes = d3.relative_changes(CHAIN, {"l0": 0.0, "l1": 0.0, "l2": 1e-3, "l3": 2e-3})
    assert changes["l0"] == changes["l1"] == 0
    assert changes["l2"] == pytest.approx(1e-3 / 1e-7)
    assert changes["l3"] == pytest.approx(1e-3 / (1e-3 + 1e-7))


def test_a_cluster_names_the_layers_in_which_it_began() -> None:
    values, x = chain_values(), np.random.default_rng(1).standard_normal((5, 3))
    changed = values | {"parameter.l2.weight": values["parameter.l2.weight"] + 0.1}
    assert d3.cluster(CHAIN, values, changed, x).startswith("linear + ")
    assert d3.cluster(CHAIN, values, values, x) == d3.INFERENCE
    lost = values | {"parameter.l2.weight": values["parameter.l2.weight"] * np.nan}
    assert d3.cluster(CHAIN, values, lost, x).startswith("linear + ")
