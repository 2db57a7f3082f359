"""openvino-onnx-gelu-infinity: SpecialMismatch of onnx/ort-optimised/openvino-onnx/openvino

ran with python 3.11.7, numpy 2.4.6, openvino 2026.4.1, onnxruntime 1.31.1, onnx 1.23.2
exit status: 1 reproduced, 0 not reproduced, 77 not available here
"""

import importlib.util
import sys

for module in ['onnx', 'openvino', 'onnxruntime', 'ml_dtypes']:
    if importlib.util.find_spec(module) is None:
        print(f"not available: {module}")
        sys.exit(77)

# ---- the program that ran ----

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

TARGET = 'onnx/ort-optimised/openvino-onnx/openvino'
# name: (dtype, shape), in the order that the model takes them
INPUTS = {'x0': ('float32', (2, 3, 8))}
PARAMETERS = {'w1': ('float32', ()), 'w2': ('float32', ()), 'w3': ('float32', ())}
OUTPUTS = [('float32', (2, 3, 8))]


class Builder:
    """Collects ONNX nodes; values are known by name. since: operators that are newer than the opset that models have
    otherwise, or meant something else before this one."""

    def __init__(self):
        self.since = {"GroupNormalization": 21, "Attention": 23, "RMSNormalization": 23, "RotaryEmbedding": 23}
        self.since |= {"Swish": 24, "TensorScatter": 24, "BitCast": 26, "CumProd": 26}
        self.nodes = []
        self.initializers = []
        self.opset = 20

    def op(self, kind, *operands, outputs=1, pick=0, **attributes):
        """Add a node and return the name of its output number `pick`. An operand that is None is left out."""
        names = [f"t{len(self.nodes)}_{i}" for i in range(outputs)]
        self.opset = max(self.opset, self.since.get(kind, 0))
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
        version = 10 if self.opset < 23 else 11 if self.opset < 25 else 13
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=version)
        onnx.checker.check_model(model, full_check=True)
        return model


def model(g, x0, w1, w2, w3):
    x0n = g.op("Transpose", x0, perm=(0, 1, 2))
    v0 = g.op("Div", x0n, w1)
    v1 = g.op("Erf", v0)
    v2 = g.op("Add", v1, w2)
    v3 = g.op("Mul", x0n, v2)
    v4 = g.op("Mul", v3, w3)
    return (v4,)


TRUST = False


def write(parameters, path):
    def element(dtype):
        return helper.np_dtype_to_tensor_dtype(np.dtype(dtype))

    g = Builder()
    results = model(g, *INPUTS, *PARAMETERS)
    proto = g.model(
        {name: (element(dtype), shape) for name, (dtype, shape) in INPUTS.items()},
        parameters,
        [(element(dtype), shape) for dtype, shape in OUTPUTS],
        results,
    )
    onnx.save(proto, path)


def convert_1(source, target):
    import os

    import onnx
    import onnxruntime
    from onnx.external_data_helper import load_external_data_for_model, uses_external_data

    model = onnx.load(source, load_external_data=False)
    outside = any(uses_external_data(tensor) for tensor in model.graph.initializer)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = target
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    given = source
    if outside:  # what is written would look for the arrays beside itself
        load_external_data_for_model(model, os.path.dirname(os.path.abspath(source)))
        given = model.SerializeToString()
    onnxruntime.InferenceSession(given, options, providers=["CPUExecutionProvider"])


def convert_2(source, target):
    import openvino

    openvino.save_model(openvino.convert_model(source), target, compress_to_fp16=False)


def open_model(path):
    import openvino

    core = openvino.Core()
    options = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1}
    compiled = core.compile_model(core.read_model(path), "CPU", options)

    def named(value, place):
        # a tensor has the names of all that is folded into it, an input its own one among them
        own = value.get_node().get_friendly_name()
        return own if own in value.get_names() else value.get_any_name() if value.get_names() else place

    def element(value):
        # to_dtype says float16 of bfloat16, and so do the arrays of its tensors
        of = value.get_element_type()
        if of == openvino.Type.bf16:
            import ml_dtypes  # numpy knows bfloat16 by it

            return "bfloat16"
        return of.to_dtype().name

    def ports(values):
        return [
            (
                named(value, f"{kind}{i}"),
                element(value),
                [None if dim.is_dynamic else dim.get_length() for dim in value.get_partial_shape()],
            )
            for kind, ports in values.items()
            for i, value in enumerate(ports)
        ]

    def tensor(array):
        return openvino.Tensor(np.ascontiguousarray(array).view(np.uint16), array.shape, openvino.Type.bf16)

    inputs, outputs = ports({"in": compiled.inputs}), ports({"out": compiled.outputs})

    def call(*arrays):
        given = {i: array if array.dtype.name != "bfloat16" else tensor(array) for i, array in enumerate(arrays)}
        returned = compiled(given, share_inputs=False, share_outputs=False)
        found = [np.array(returned[i]) for i in range(len(outputs))]
        return [y.view("bfloat16") if out[1] == "bfloat16" else y for y, out in zip(found, outputs)]

    return inputs, outputs, call


FILES = ['0.onnx', '1.onnx', '2.xml']
STEPS = [('ort-optimised', convert_1), ('openvino-onnx', convert_2)]


def ordered(ports, names):
    """The names in the order in which the model has what they name: by name, as most tools leave it; where names are
    lost, by the numbers that TensorFlow gives in their place, where outputs that are inputs or constants may have
    none, and all may be sorted as text (10 before 2); else as they are, since other tools keep the order."""
    import re

    plain = [name for name, _, _ in ports]
    if len(set(plain)) == len(plain) and set(plain) <= set(names):
        return plain
    found = [re.sub(r"^serving_default_|:0$|(?<=^out)0+(?=[0-9])", "", name) for name, _, _ in ports]
    if len(set(found)) == len(found) and set(found) <= set(names):
        return found
    if len(found) != len(names):
        raise ValueError(f"the model has {', '.join(found) or 'nothing'} in place of {', '.join(names)}")
    numbered = r"(?:Stateful)?PartitionedCall(?:_[0-9]+)?:([0-9]+)|(?:in|out|output_)([0-9]+)|Identity(?:_([0-9]+))?"
    matches = [re.fullmatch(numbered, name) or re.fullmatch(numbered, port[0]) for name, port in zip(found, ports)]
    numbers = [int(next(filter(None, match.groups()), 0)) if match else -1 for match in matches]
    known = [number for number in numbers if number >= 0]
    left = [number for number in range(len(names)) if number not in known]
    if len(known) + len(left) > len(names):  # one twice, or one too many
        return names
    as_text = sorted(known) != known == sorted(known, key=str)
    rest = iter(sorted(left, key=str) if as_text else left)
    return [names[number if number >= 0 else next(rest)] for number in numbers]


def load(parameters):
    import os
    import shutil
    import tempfile

    folder = tempfile.mkdtemp(prefix="conversion-")
    step = "write"
    try:
        write(parameters, os.path.join(folder, FILES[0]))
        for (step, convert), source, target in zip(STEPS, FILES, FILES[1:]):
            convert(os.path.join(folder, source), os.path.join(folder, target))
        step = "open"
        inputs, outputs, call = open_model(os.path.join(folder, FILES[-1]))
        taken, wanted = ordered(inputs, list(INPUTS)), [f"out{i}" for i in range(len(OUTPUTS))]
        given = ordered(outputs, wanted) if len(outputs) == len(wanted) else None
    except Exception as error:
        error.add_note(f"in step {step}")
        raise
    finally:
        shutil.rmtree(folder)

    def run(*arrays):
        arrays = dict(zip(INPUTS, arrays))
        try:
            results = call(*[arrays[name] for name in taken])
        except Exception as error:
            error.add_note("in step run")
            raise
        return [results[given.index(name)] for name in wanted] if given else results  # too few or too many

    return run


# ---- its inputs, and what a correct evaluation returns: value, and how far from it (inf: anything) ----

from pathlib import Path

from numpy import array, inf, nan

SYMPTOM = 'special'  # SpecialMismatch
SECONDS = 120.0
ZERO_SIGNS = True  # are the signs of zeros compared?
ARRAYS = {
    'x0': array([[[-1.1033384799957275, -0.7250246405601501, -0.7818052768707275, 0.26697584986686707, -0.2485807240009308, 0.12648305296897888, 0.8430425524711609, 0.8579365611076355], [0.4751836359500885, -0.4507685899734497, -0.7549322843551636, -0.8148140907287598, -0.3438548445701599, -0.05138009414076805, -0.9722736477851868, -1.134487509727478], [0.3057052195072174, -1.8516850471496582, -0.1770535111427307, 0.42582565546035767, inf, -1.1129541397094727, -0.7606260180473328, 0.6480246186256409]], [[-0.12983135879039764, -inf, inf, 1.0138968229293823, 0.9837153553962708, 0.6300419569015503, -0.23805880546569824, -1.8449398279190063], [0.1695777326822281, -0.17597776651382446, -inf, 1.5423041582107544, inf, 0.2763338088989258, 0.6050974726676941, -0.25656890869140625], [-0.6643563508987427, -0.7373730540275574, 0.7669664621353149, 0.5045527219772339, -0.4895464777946472, 1.1526952981948853, 0.184331476688385, -1.340218424797058]]], dtype='float32'),
    'w1': array(1.4142135381698608, dtype='float32'),
    'w2': array(1.0, dtype='float32'),
    'w3': array(0.5, dtype='float32'),
}
EXPECTED = [
    array([[[-0.14888460135996956, -0.16981414984409457, -0.16978035656038537, 0.16158876810364722, -0.09989031416033521, 0.06960681386514872, 0.6747693041240982, 0.6902410695163791], [0.3243945431723927, -0.14698579602852965, -0.16996908035541491, -0.16914673807881844, -0.1256712859421264, -0.024637336909424424, -0.16086968600979912, -0.14554913287965945], [0.18956335938790372, -0.0593197099195149, -0.07608576795555622, 0.2831240507061182, inf, -0.14787160446709977, -0.16995445511112808, 0.48052029251225]], [[-0.05820988000245492, nan, inf, 0.856422434497702, 0.8237359506518708, 0.4635007214155377, -0.09663229249388272, -0.0600032433030251], [0.09620634571901276, -0.07569783997566207, nan, 1.4474526895668207, inf, 0.1682469881179994, 0.4401738522688063, -0.10230833730774895], [-0.16823570790984954, -0.16992596476370336, 0.5970444870860151, 0.3496870710761254, -0.15284983669080593, 1.009164294039235, 0.10564466239891432, -0.12073648222786489]]], dtype='float64'),
]
ALLOWED = [
    array([[[8.736203681945206e-07, 4.459608365598373e-07, 5.056509456421705e-07, 9.067007300014294e-08, 7.152443345190717e-08, 2.6474406292423255e-08, 6.629188012183095e-07, 6.82330543989423e-07], [2.475495303865609e-07, 1.9764097894317806e-07, 4.771210403670196e-07, 5.413295370078444e-07, 1.2394900903605414e-07, 6.726841820898934e-09, 7.192229216206925e-07, 9.107492048090005e-07], [1.1452086685453982e-07, 1.7367784910636794e-06, 4.100363098739224e-08, 2.0423402613367378e-07, 0.0, 8.850708781454236e-07, 4.831251413539077e-07, 4.2491121346835037e-07]], [[2.5186322296749653e-08, inf, 0.0, 8.928103391918036e-07, 8.512229666982792e-07, 4.0478235369371677e-07, 6.654803713453629e-08, 1.7295446354689947e-06], [4.235034334683994e-08, 4.060450575145894e-08, inf, 1.6348599615334289e-06, 0.0, 9.619684189919607e-08, 3.7745808359705756e-07, 7.541279807571631e-08], [3.8486278958806234e-07, 4.5874795506585654e-07, 5.662127588291549e-07, 2.7497496332391766e-07, 2.2793769101599431e-07, 1.087280301035546e-06, 4.857150034857591e-08, 1.1564261457551544e-06]]], dtype='float64'),
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
        print(f"reproduced: {len(outputs)} outputs instead of {len(OUTPUTS)}")
        return 1
    failed = 0
    for i, (dtype, shape) in enumerate(OUTPUTS):
        problem = wrong(np.asarray(outputs[i]), EXPECTED[i], ALLOWED[i], dtype, shape)
        print(f"output {i}: {problem or 'correct'}")
        failed |= problem is not None
    print("reproduced" if failed else "not reproduced")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
