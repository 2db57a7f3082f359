"""Models as people have them: half precision, quantised by QuantizeLinear and DequantizeLinear, with arrays in files
beside them, and larger than what is kept twice."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
from examples.commands import model as command
from onnx import TensorProto, helper, numpy_helper

from harness.models.report import copies

RNG = np.random.default_rng(3)
FEW = ("--targets", "ort-all,openvino,onnx-reference", "--edges", "ort-optimised,openvino-onnx", "--runs", "0")


def model_of(nodes: Sequence, element: int, arrays: dict[str, np.ndarray], ends: tuple[int, int]) -> onnx.ModelProto:
    """From `x` to `y`, rows of so many numbers."""
    x, y = (helper.make_tensor_value_info(n, element, ["N", size]) for n, size in zip(("x", "y"), ends, strict=True))
    held = [numpy_helper.from_array(array, name) for name, array in arrays.items()]
    graph = helper.make_graph(list(nodes), "net", [x], [y], held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def dense(dtype: type, element: int, width: int = 24) -> onnx.ModelProto:
    """Two products with a rectifier between them."""
    nodes = (
        helper.make_node("MatMul", ["x", "first"], ["a"]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("MatMul", ["b", "second"], ["y"]),
    )
    first, second = RNG.standard_normal((16, width)) / 4, RNG.standard_normal((width, 8)) / np.sqrt(width)
    return model_of(nodes, element, {"first": first.astype(dtype), "second": second.astype(dtype)}, (16, 8))


def quantised() -> onnx.ModelProto:
    """A product of levels, written with QuantizeLinear and DequantizeLinear."""
    nodes = (
        helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["d"]),
        helper.make_node("DequantizeLinear", ["weight", "step"], ["w"]),
        helper.make_node("MatMul", ["d", "w"], ["y"]),
    )
    arrays = {
        "scale": np.float32(0.03), "zero": np.uint8(120), "step": np.float32(0.01),
        "weight": RNG.integers(-127, 128, (16, 8)).astype(np.int8),
    }  # fmt: skip
    return model_of(nodes, TensorProto.FLOAT, {name: np.asarray(one) for name, one in arrays.items()}, (16, 8))


@pytest.mark.slow(one_in=3)
@pytest.mark.parametrize(
    ("model", "judged"),
    [
        pytest.param(dense(np.float16, TensorProto.FLOAT16), "All 5 variants", id="float16"),
        # ONNX Runtime has no kernel: it refuses
        pytest.param(dense(ml_dtypes.bfloat16, TensorProto.BFLOAT16), "2 of 3 judged", id="bfloat16"),
        pytest.param(quantised(), "4 of 5 judged", id="QDQ"),
    ],
)
def test_narrow_models_are_judged(model: onnx.ModelProto, judged: str, tmp_path: Path) -> None:
    onnx.save(model, tmp_path / "net.onnx")
    status, told = command(tmp_path / "net.onnx", *FEW, "--out", tmp_path / "out")
    assert status == 0, told
    assert judged in told


@pytest.mark.slow
def test_arrays_beside_a_model_go_into_what_is_made_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ONNX Runtime's optimiser leaves arrays in files where they are, which another folder has not."""
    onnx.save(
        dense(np.float32, TensorProto.FLOAT), tmp_path / "net.onnx",
        save_as_external_data=True, location="net.bin", size_threshold=0,
    )  # fmt: skip
    status, told = command(tmp_path / "net.onnx", *FEW, "--out", tmp_path / "out")
    assert status == 0, told
    assert "All 5 variants" in told
    assert sorted(one.name for one in (tmp_path / "out/converted").iterdir()) == [
        "openvino-onnx.bin", "openvino-onnx.xml", "ort-optimised.onnx",
    ]  # fmt: skip
    monkeypatch.setattr(copies, "LARGE", 1000)
    status, told = command(tmp_path / "net.onnx", *FEW, "--out", tmp_path / "out")
    assert "MB of converted files are not kept" in told
    assert not any((tmp_path / "out/converted").iterdir())
    assert command(tmp_path / "net.onnx", *FEW, "--out", tmp_path / "out")[0] == 0
