"""What programs that quantise ONNX models call: samples to calibrate on, and a record of what a model holds and
computes. Read as text; a program carries the source of what it uses."""

import numpy as np
import onnx
from onnx import helper, numpy_helper


class Samples:
    """Calibration data, as ONNX Runtime's quantiser asks for it."""

    def __init__(self, samples):
        self.left = iter(samples)

    def get_next(self):
        return next(self.left, None)


def onnx_session(proto, level, path=""):
    """A session at a level of optimisation; path: where the optimised model is written."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    if path:
        options.optimized_model_filepath = path
    return onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])


def onnx_constants(proto):
    """Initializers and results of Constant nodes by name."""
    found = {item.name: numpy_helper.to_array(item) for item in proto.graph.initializer}
    for node in proto.graph.node:
        if node.op_type == "Constant":
            found[node.output[0]] = numpy_helper.to_array(node.attribute[0].t)
    return found


def onnx_shown(proto):
    """The model with every value that a node makes among its outputs."""
    constants = onnx_constants(proto)
    shown = onnx.ModelProto()
    shown.CopyFrom(proto)
    there = {item.name for item in shown.graph.output}
    for node in proto.graph.node:
        for name in node.output:
            if name and name not in there and name not in constants:
                there.add(name)
                shown.graph.output.append(onnx.ValueInfoProto(name=name))
    return shown


def onnx_values(proto, feeds):
    """Every value of the model by name, from its own kernels: nothing is optimised."""
    shown = onnx_shown(proto)
    names = [item.name for item in shown.graph.output]
    results = onnx_session(shown, "ORT_DISABLE_ALL").run(names, feeds)
    return {**onnx_constants(proto), **feeds, **dict(zip(names, results))}


def onnx_nodes(proto):
    """Operator, domain, operands, results and attributes of each node, as JSON can hold them."""

    def plain(value):
        if isinstance(value, bytes):
            return value.decode()
        return [plain(v) for v in value] if isinstance(value, (list, tuple)) else value

    listed = []
    for node in proto.graph.node:
        if node.op_type != "Constant":
            attrs = {a.name: plain(helper.get_attribute_value(a)) for a in node.attribute}
            listed.append([node.op_type, node.domain, list(node.input), list(node.output), attrs])
    return listed


def onnx_levels(proto, feeds):
    """(level, nodes, values) of the model as it is, and as each level of optimisation writes it. Beside its values
    stands what a session of that level returns."""
    import tempfile
    from pathlib import Path

    shown = [("source", onnx_nodes(proto), onnx_values(proto, feeds))]
    ends = [item.name for item in proto.graph.output]
    with tempfile.TemporaryDirectory() as folder:
        for level in ("ORT_DISABLE_ALL", "ORT_ENABLE_BASIC", "ORT_ENABLE_EXTENDED", "ORT_ENABLE_ALL"):
            path = str(Path(folder, level))
            results = onnx_session(proto, level, path).run(ends, feeds)
            written = onnx.load(path)
            nodes, values = onnx_nodes(written), onnx_values(written, feeds)
            values.update({f"session {name}": result for name, result in zip(ends, results)})
            shown.append((level, nodes, values))
    return shown
