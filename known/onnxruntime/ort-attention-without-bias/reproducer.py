"""ProcessCrash: ONNX Runtime, Attention of com.microsoft without a bias.

Exit status 1: shows; 0: does not."""

import subprocess
import sys

import numpy as np
import onnxruntime
from onnx import ValueInfoProto, helper, numpy_helper


def run(operator, given, held, **attributes):
    """What ONNX Runtime makes of one operator of com.microsoft. given: inputs, by name in order; held: constants among
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
    session = onnxruntime.InferenceSession(proto, providers=["CPUExecutionProvider"])
    return session.run(None, feed)[0]


if len(sys.argv) > 1:
    random = np.random.default_rng(0)
    x, w = (random.standard_normal(shape).astype(np.float32) for shape in ((1, 3, 4), (4, 12)))
    print(run("Attention", {"x": x, "w": w}, (), num_heads=2).shape)
    sys.exit()
status = subprocess.run([sys.executable, __file__, "once"], check=False).returncode
if status < 0:
    print("reproduced: the process ended by signal", -status)
    sys.exit(1)
print("not reproduced")
