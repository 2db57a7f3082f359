"""ValueMismatch: OpenVINO, Attention of com.microsoft with a value for what is hidden.

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


random = np.random.default_rng(0)
x, w, b = (random.standard_normal(shape).astype(np.float32) for shape in ((1, 3, 4), (4, 12), (12,)))
mask = np.array([[1, 0, 1]], np.int32)


def expected(hidden):
    """In float64, one head."""
    q, k, v = np.split(x.astype(np.float64) @ w + b, 3, -1)
    scores = q @ k.swapaxes(-1, -2) / 2 + np.where(mask != 0, 0.0, hidden)[:, None]
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v


given = {"x": x, "w": w, "b": b, "mask": mask}
got = run("Attention", given, ("w", "b"), num_heads=1, mask_filter_value=-1.0)
worst = float(np.max(np.abs(got - expected(-1.0))))
shown = worst > 1e-3
print("reproduced:" if shown else "not reproduced:", "greatest error", worst)
sys.exit(shown)
