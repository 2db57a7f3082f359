"""What `networks.py` measures: a fault that is planted in a network is found and its layer named, also where no output
shows it, and without names of values on the way; the network itself is said to be right."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from planted.networks import Found, Plant, examined, measured_plant, plants, told, values_of

from harness.models.rows import LAYER
from oracles.onnx.model import read

HIDDEN = Plant("gate", "Sigmoid", (2, 8), "scale", 1e-3)
SHOWN = Plant("hidden", "Relu", (2, 8), "offset", 1e-3, hidden=True)


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two branches, of which one adds next to nothing to the output."""
    draw = np.random.default_rng(3)
    arrays = {"w": draw.normal(size=(6, 8)), "v": draw.normal(size=(6, 8)), "u": draw.normal(size=(8, 4)), "s": 1e-9}
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["first"]),
        helper.make_node("Relu", ["first"], ["hidden"]),
        helper.make_node("MatMul", ["x", "v"], ["second"]),
        helper.make_node("Sigmoid", ["second"], ["gate"]),
        helper.make_node("Mul", ["gate", "s"], ["small"]),
        helper.make_node("Add", ["hidden", "small"], ["sum"]),
        helper.make_node("MatMul", ["sum", "u"], ["y"]),
    ]
    ports = [helper.make_tensor_value_info(*one) for one in (("x", TensorProto.FLOAT, [2, 6]), ("y", 1, [2, 4]))]
    kept = [numpy_helper.from_array(np.asarray(value, np.float32), name) for name, value in arrays.items()]
    graph = helper.make_graph(nodes, "network", ports[:1], ports[1:], kept)
    path = tmp_path_factory.mktemp("network") / "network.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return path


def test_a_fault_that_outputs_hide_is_a_deviation_in_its_layer(network: Path, tmp_path: Path) -> None:
    seen = examined(network, tmp_path, {}, HIDDEN).results
    right, wrong = seen.rows
    assert right.status == "agree"
    assert wrong.status == LAYER
    assert wrong.ratio is not None
    assert wrong.ratio < 1  # of the outputs
    assert "gate (Sigmoid, 4 of 7)" in wrong.message
    assert seen.exit_status == 1
    assert "1 of 2 variants deviate, 1 of them in a layer whose error the outputs hide" in seen.headline


def test_plants_are_found_and_named(network: Path, tmp_path: Path) -> None:
    base = examined(network, tmp_path, {})
    assert base.results.exit_status == 0
    found = [measured_plant(network, tmp_path, base.sets[0], plant, {}) for plant in (HIDDEN, SHOWN)]
    assert [one.plant.output for one in found if one.named] == ["gate", "hidden"]
    assert [one.reachable for one in found] == [False, True]
    assert all(one.found and one.right for one in found)
    lines = list(told(found))
    assert "  of all 2 found, 2 named" in lines
    assert lines[-1] == "false alarms: none"


def test_what_is_drawn_fits_the_network(network: Path) -> None:
    x = np.random.default_rng(0).normal(size=(2, 6)).astype(np.float32)
    values = values_of(read(onnx.load(network)), [x])
    assert set(values) == {"first", "hidden", "second", "gate", "small", "sum", "y"}
    drawn = plants("network", values, 1)
    assert drawn == plants("network", values, 1)
    assert {one.size for one in drawn} == {1e-3, 1e-4, 1e-5, 0.0}
    assert not any(one.kind in ("axis", "epsilon") for one in drawn)  # no two sizes are one, nothing normalises


def test_what_is_missed_is_counted() -> None:
    right = Found("a", HIDDEN, 2.0, 2.0, True, ("gate",), "", True)
    other = Found("b", SHOWN, 0.5, 0.5, False, (), "", False)
    lines = list(told([right, other]))
    assert lines[:3] == [
        "0.001: 2 planted; 1 move an output by more than is allowed",
        "  of these 1 found, 1 named",
        "  of all 1 found, 1 named",
    ]
    assert lines[-1] == "false alarms: b"
