"""ort-quantise-dynamic-gemm-shared: Rejection of ort-dynamic-s8

exit status: 1 reproduced, 0 not reproduced, 77 not available here
"""

import importlib.util
import sys

for module in ['onnx', 'onnxruntime', 'onnxruntime.quantization']:
    if importlib.util.find_spec(module) is None:
        print(f"not available: {module}")
        sys.exit(77)

# ---- the program that ran ----

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

TARGET = 'ort-dynamic-s8'
# name: (dtype, shape), in the order that the model takes them
INPUTS = {'w5': ('float32', (2, 2)), 'w7w': ('float32', (2, 3)), 'w8w': ('float32', (2,))}
PARAMETERS = {'w6w': ('float32', (2, 3))}
OUTPUTS = []


class Builder:
    """Collects ONNX nodes; values are known by name."""

    def __init__(self):
        self.nodes = []
        self.initializers = []
        self.opset = 20

    def op(self, kind, *operands, outputs=1, pick=0, **attributes):
        """Add a node and return the name of its output number `pick`. An operand that is None is left out."""
        names = [f"t{len(self.nodes)}_{i}" for i in range(outputs)]
        if kind == "Attention":
            self.opset = 23
        operands = ["" if o is None else o for o in operands]
        self.nodes.append(helper.make_node(kind, operands, names, **attributes))
        return names[pick]

    def const(self, value, dtype):
        """Add an initializer from nested sequences and a numpy dtype name, and return its name."""
        name = f"c{len(self.initializers)}"
        array = np.asarray(value, dtype=dtype)
        self.initializers.append(numpy_helper.from_array(array, name))
        return name

    def model(self, inputs, parameters, outputs, results):
        """The finished ModelProto. inputs: {name: (element type, shape)}; parameters: {name: array};
        outputs: types of the graph's outputs in order; results: the names that hold them."""
        for name, array in parameters.items():
            self.initializers.append(numpy_helper.from_array(array, name))
        final = []
        for i, name in enumerate(results):
            # a graph output needs a name of its own, and may not be an input or an initializer
            self.nodes.append(helper.make_node("Identity", [name], [f"out{i}"]))
            final.append(helper.make_tensor_value_info(f"out{i}", *outputs[i]))
        given = [helper.make_tensor_value_info(name, *type_) for name, type_ in inputs.items()]
        graph = helper.make_graph(self.nodes, "dissent", given, final, self.initializers)
        version = 10 if self.opset < 23 else 11
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=version)
        onnx.checker.check_model(model, full_check=True)
        return model


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


def onnx_values(proto, feeds):
    """Every value of the model by name, from its own kernels: all are made outputs, and nothing is optimised."""
    constants = onnx_constants(proto)
    shown = onnx.ModelProto()
    shown.CopyFrom(proto)
    there = {item.name for item in shown.graph.output}
    for node in proto.graph.node:
        for name in node.output:
            if name and name not in there and name not in constants:
                there.add(name)
                shown.graph.output.append(onnx.ValueInfoProto(name=name))
    names = [item.name for item in shown.graph.output]
    results = onnx_session(shown, "ORT_DISABLE_ALL").run(names, feeds)
    return {**constants, **feeds, **dict(zip(names, results))}


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


def recorded(header, groups):
    """A header (JSON) as an array of bytes, then all arrays of the groups, {group: {name: array}}, in the order in
    which the header lists them."""
    import json

    header["arrays"] = [[group, name] for group, arrays in groups.items() for name in arrays]
    text = np.frombuffer(json.dumps(header).encode(), np.uint8)
    return [text] + [np.asarray(a) for arrays in groups.values() for a in arrays.values()]


def calibration(inputs, share):
    """Samples to calibrate on: the inputs times `share`, and half of that backwards with the other sign. What is no
    real number stays as it is."""

    def scaled(x, by, backwards):
        if x.dtype != np.float32:
            return x
        x = x.reshape(-1)[::-1].reshape(x.shape) if backwards else x
        return np.array(x * np.float32(by), np.float32, order="C")

    return [
        {name: scaled(x, share, False) for name, x in inputs.items()},
        {name: scaled(x, -share / 2, True) for name, x in inputs.items()},
    ]


def model(g, w5, w7w, w8w, w6w):
    v4 = g.op("Gemm", w5, w6w, w7w, alpha=2.0, beta=1.0)
    v5 = g.op("Gemm", v4, w6w, w8w, transB=1)
    return (v5,)


RESULTS = [('float32', (2, 2))]
SHARE = 1.0


def load(parameters):
    import tempfile
    from pathlib import Path

    from onnxruntime import quantization
    from onnxruntime.quantization import QuantFormat, QuantType

    def element(dtype):
        return helper.np_dtype_to_tensor_dtype(np.dtype(dtype))

    def types(listed):
        return [(element(dtype), shape) for dtype, shape in listed]

    g = Builder()
    results = model(g, *INPUTS, *PARAMETERS)
    proto = g.model(dict(zip(INPUTS, types(INPUTS.values()))), parameters, types(RESULTS), results)

    def run(*inputs):
        feeds = dict(zip(INPUTS, inputs))
        samples = calibration(feeds, SHARE)
        with tempfile.TemporaryDirectory() as folder:
            given, path = str(Path(folder, "model.onnx")), str(Path(folder, "quantised.onnx"))
            onnx.save(proto, given)  # given the proto itself, it moves weights of 1 KiB into a file that it deletes
            quantization.quantize_dynamic(given, path, per_channel=False, weight_type=QuantType.QInt8)
            quantised = onnx.load(path)
        header = {"outputs": [item.name for item in proto.graph.output], "nodes": {"float": onnx_nodes(proto)}}
        header.update(inputs=list(INPUTS), symmetric=False, dynamic=True, share=SHARE)
        groups = {f"sample {i}": onnx_values(proto, sample) for i, sample in enumerate(samples)}
        groups["float"] = onnx_values(proto, feeds)
        for level, nodes, values in onnx_levels(quantised, feeds):
            header["nodes"][level], groups[level] = nodes, values
        return recorded(header, groups)

    return run


# ---- its inputs, and what a correct evaluation returns: value, and how far from it (inf: anything) ----

from pathlib import Path

from numpy import array, inf, nan

SYMPTOM = 'rejected'  # Rejection
SECONDS = 120.0
ZERO_SIGNS = True  # are the signs of zeros compared?
ARRAYS = {
    'w5': array([[-216.8970489501953, -96.33448791503906], [-17.830860137939453, 51.45951461791992]], dtype='float32'),
    'w6w': array([[0.5, -4.5, 3.0], [-1.5, 3.5, -2.0]], dtype='float32'),
    'w7w': array([[-2.0, 3.0, 0.0], [-1.0, -4.0, -2.0]], dtype='float32'),
    'w8w': array([0.48522964119911194, -1.1315373182296753], dtype='float32'),
}
EXPECTED = [
]
ALLOWED = [
]


def wrong(output, expected, allowed, dtype, shape):
    """What is wrong with one output, or None."""
    if str(output.dtype) != dtype or output.shape != tuple(shape):
        return f"{output.dtype}{output.shape} instead of {dtype}{tuple(shape)}"
    if not shape and output.ndim == 0:
        output, expected, allowed = output.reshape(1), expected.reshape(1), allowed.reshape(1)
    if "complex" in dtype:  # the parts side by side: NaN and infinities in place, then the modulus of the difference
        got, bad, distance = output, np.zeros(output.shape, bool), np.zeros(output.shape)
        for a, b in ((output.real, expected.real), (output.imag, expected.imag)):
            bad |= (np.isnan(a) != np.isnan(b)) | ((np.isinf(a) | np.isinf(b)) & ~np.isnan(b) & (a != b))
            with np.errstate(all="ignore"):
                distance = np.hypot(distance, np.where(np.isfinite(a) & np.isfinite(b), a.astype("float64") - b, 0.0))
            if ZERO_SIGNS:
                bad |= (a == 0) & (b == 0) & (allowed == 0) & (np.signbit(a) != np.signbit(b))
        bad = ~np.isinf(allowed) & (bad | (distance > allowed))
    elif "float" in dtype:
        got = output.astype("float64")
        with np.errstate(all="ignore"):
            same = (got == expected) | (np.isnan(got) & np.isnan(expected))
            near = np.isfinite(got) & np.isfinite(expected) & (np.abs(got - expected) <= allowed)
        bad = ~np.isinf(allowed) & ~same & ~near
        if ZERO_SIGNS:
            bad |= (allowed == 0) & (got == 0) & (expected == 0) & (np.signbit(got) != np.signbit(expected))
    else:
        got, bad = output, ~np.isinf(allowed) & (output != expected)
    if not bad.any():
        return None
    at = tuple(int(i[0]) for i in np.nonzero(bad))
    detail = f"expected {expected[at]}, got {got[at]}, allowed {allowed[at]:.3g}"
    return f"{bad.sum()} of {bad.size} wrong, at {at}: {detail}"


def main():
    if SYMPTOM in ("crash", "timeout") and "--child" not in sys.argv:
        import subprocess

        try:
            code = subprocess.run([sys.executable, __file__, "--child"], timeout=SECONDS).returncode
        except subprocess.TimeoutExpired:
            print("reproduced: no result within", SECONDS, "s")
            return 1
        print("the process ended with status", code)
        return 0 if code == 0 else 77 if code == 77 else 1
    try:
        outputs = load({n: ARRAYS[n] for n in PARAMETERS})(*[ARRAYS[n] for n in INPUTS])
    except Exception as error:
        # another failure than the one looked for says nothing about it: like a framework that is not there
        why = (str(error).splitlines() or [""])[0]
        print(f"{'reproduced' if SYMPTOM == 'rejected' else 'not available'}: {type(error).__name__}: {why}")
        return 1 if SYMPTOM == "rejected" else 77
    if len(outputs) != len(OUTPUTS):
        if SYMPTOM == "rejected":
            print("not reproduced")
            return 0
        print(f"not available: the model has {len(outputs)} values here, not {len(OUTPUTS)}")
        return 77
    failed = 0
    for i, (dtype, shape) in enumerate(OUTPUTS):
        problem = wrong(np.asarray(outputs[i]), EXPECTED[i], ALLOWED[i], dtype, shape)
        print(f"output {i}: {problem or 'correct'}")
        failed |= problem is not None
    print("reproduced" if failed else "not reproduced")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
