"""ValueMismatch: OpenVINO, MatMulNBits of com.microsoft with indices of groups.

Exit status 1: shows; 0: does not."""

import sys

import numpy as np
import openvino
from onnx import ValueInfoProto, helper, numpy_helper


def run(operator, given, held, **attributes):
    """What OpenVINO makes of one operator of com.microsoft. given: inputs, by name in order; held: constants among
    them; None: left out."""
    names = [name if array is not None else "" for name, array in given.items()]
    tensors = {name: numpy_helper.from_array(array, name) for name, array in given.items() if array is not None}
    graph = helper.make_graph(
        [helper.make_node(operator, names, ["y"], domain="com.microsoft", **attributes)],
        "graph",
        [
            helper.make_tensor_value_info(name, one.data_type, one.dims)
            for name, one in tensors.items()
            if name not in held
        ],
        [ValueInfoProto(name="y")],
        [tensors[name] for name in held],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    proto = helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString()
    feed = {name: given[name] for name in tensors if name not in held}
    core = openvino.Core()
    compiled = core.compile_model(core.read_model(proto), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    return np.array(compiled(feed)[compiled.outputs[0]])


def expected(x, levels, scales, points, groups):
    """In float64: one scale and zero point for each group of rows."""
    w = (levels - points[:, groups]) * scales[:, groups].astype(np.float64)
    return x @ w.T


def packed(numbers, bits):
    """Bytes, the first number in the lowest bits."""
    parts = numbers.reshape(*numbers.shape[:-1], -1, 8 // bits).astype(np.uint32)
    return sum(parts[..., place] << bits * place for place in range(8 // bits)).astype(np.uint8)


K, N, BLOCK = 32, 4, 16
random = np.random.default_rng(0)
x = random.standard_normal((2, K)).astype(np.float32)
scales = np.array([[0.5, 0.25], [1, 2], [0.125, 1], [2, 0.5]], np.float32)
rows = np.arange(K)

levels, points, groups = random.integers(0, 16, (N, K)), np.full((N, 2), 8), rows % 2
given = {
    "x": x,
    "w": packed(levels.reshape(N, 2, BLOCK), 4),
    "scales": scales,
    "points": None,
    "groups": groups.astype(np.int32),
}
got = run("MatMulNBits", given, {"w", "scales", "groups"}, K=K, N=N, bits=4, block_size=BLOCK)
right = expected(x, levels, scales, points, groups)

worst = float(np.max(np.abs(got - right)))
shown = worst > 1e-3
print("reproduced:" if shown else "not reproduced:", "greatest error", worst)
sys.exit(shown)
