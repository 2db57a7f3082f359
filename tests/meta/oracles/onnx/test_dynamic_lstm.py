"""DynamicQuantizeLSTM with constant weights, as quantisers write it, against ONNX Runtime, which alone has it."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

from oracles.models import noise
from oracles.onnx.noise import monte_carlo

T, B, SIZE, H = 6, 2, 5, 4


@pytest.mark.parametrize("by_column", [False, True])
@pytest.mark.parametrize(("direction", "kind"), [("reverse", np.uint8), ("bidirectional", np.int8)])
def test_it_agrees_and_another_scale_does_not(direction: str, kind: type, by_column: bool) -> None:
    rng, count = np.random.default_rng(1), 2 if direction == "bidirectional" else 1
    low, high = (-64, 64) if kind is np.int8 else (0, 256)  # without VNNI sums of two products of int8 saturate
    shape = (count, 4 * H) if by_column else (count,)
    constants = {
        "w": rng.integers(low, high, (count, SIZE, 4 * H)).astype(kind),
        "r": rng.integers(low, high, (count, H, 4 * H)).astype(kind),
        "b": rng.normal(size=(count, 8 * H)).astype(np.float32),
        "h": rng.normal(size=(count, B, H)).astype(np.float32),
        "c": rng.normal(size=(count, B, H)).astype(np.float32),
        "scale": rng.uniform(0.003, 0.01, shape).astype(np.float32),
        "zero": np.full(shape, 0 if kind is np.int8 else 128, kind),
    }
    names = ["x", "w", "r", "b", "", "h", "c", "", "scale", "zero", "scale", "zero"]
    settings = {"hidden_size": H, "direction": direction, "domain": "com.microsoft"}
    node = helper.make_node("DynamicQuantizeLSTM", names, ["y", "yh", "yc"], **settings)
    x = rng.normal(size=(T, B, SIZE)).astype(np.float32)

    def model(scale: float = 1.0) -> ModelProto:
        kept = {**constants, "scale": (constants["scale"] * np.float32(scale))}
        outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in node.output]
        given = [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)]
        graph = helper.make_graph([node], "g", given, outputs, [numpy_helper.from_array(a, n) for n, a in kept.items()])
        opsets = [helper.make_opsetid("", 14), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=8)

    right = monte_carlo(model(), [x], 8, 0)
    bounds = noise.expect(list(node.output), ["float32"] * 3, right[0::2], right[1::2]).values
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # each thread quantises the hidden states of its own samples
    for scale, agrees in ((1.0, True), (1.001, False)):
        session = onnxruntime.InferenceSession(
            model(scale).SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        got = [np.asarray(value) for value in session.run(None, {"x": x})]
        assert all((np.abs(y - b.value) <= b.error).all() for y, b in zip(got, bounds, strict=True)) == agrees
