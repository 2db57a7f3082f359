"""ort-matmul-nbits-rounds: ValueMismatch of ort-extended

ran with python 3.11.7, numpy 2.4.6, onnxruntime 1.31.1, onnx 1.23.2
exit status: 1 reproduced, 0 not reproduced, 77 not available here
"""

import importlib.util
import sys

for module in ['onnx', 'onnxruntime']:
    if importlib.util.find_spec(module) is None:
        print(f"not available: {module}")
        sys.exit(77)

# ---- the program that ran ----

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

TARGET = 'ort-extended'
# name: (dtype, shape), in the order that the model takes them
INPUTS = {'x1': ('float32', (4, 4))}
PARAMETERS = {'w0': ('float32', (4, 4))}
OUTPUTS = [('float32', (4, 4))]


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


def quantize_dequantize(g, x, scale, zero_point, axis, dtype, of="float32"):
    """The pair that quantisers write. scale: a number, or one for each place on the axis; of: its dtype."""
    parts = g.const(scale, of), g.const(np.full(np.shape(scale), zero_point), dtype)
    return g.op("DequantizeLinear", g.op("QuantizeLinear", x, *parts, axis=axis), *parts, axis=axis)


def model(g, x1, w0):
    v0 = quantize_dequantize(g, w0, 0.00390625, 1, 1, 'int8')
    v1 = g.op("MatMul", x1, v0)
    return (v1,)


def load(parameters):
    import onnxruntime

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
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )

    def run(*inputs):
        return session.run(None, dict(zip(INPUTS, inputs)))

    return run


# ---- its inputs, and what a correct evaluation returns: value, and how far from it (inf: anything) ----

from pathlib import Path

from numpy import array, inf, nan

SYMPTOM = 'value'  # ValueMismatch
SECONDS = 120.0
ZERO_SIGNS = False  # are the signs of zeros compared?
ARRAYS = {
    'w0': array([[0.8050029277801514, 0.8079407811164856, 0.5153255462646484, 0.28580138087272644], [0.053930703550577164, 0.3833688795566559, 0.4084731936454773, 0.04527519270777702], [0.04875770956277847, 0.9991761445999146, 0.6523690819740295, 0.23451019823551178], [0.43494755029678345, 0.9741861820220947, 0.8976776003837585, 0.8442310094833374]], dtype='float32'),
    'x1': array([[1.053115725517273, 1.7764912843704224, -2.5532917976379395, -0.13796506822109222], [1.0137194395065308, 1.3521418571472168, 0.6537883877754211, 1.4971178770065308], [0.28995758295059204, 0.551267147064209, 0.17873768508434296, -1.0738587379455566], [-0.8466289639472961, 0.37958425283432007, -0.5801951885223389, 1.2715513706207275]], dtype='float32'),
}
EXPECTED = [
    array([[0.43597591895377263, -0.12620952271390706, -0.07763358915690333, -0.2827568870270625], [1.2526725796051323, 2.0752060185186565, 2.1121786474250257, 1.2425444419495761], [-0.2843791882041842, -0.08682194061111659, -0.07174822955857962, -0.3781243381090462], [0.1281983982771635, 0.068886274471879, 0.07926553138531744, 0.26622991426847875]], dtype='float64'),
]
ALLOWED = [
    array([[2.369251077589825e-07, 7.519116641241434e-07, 7.66388422888669e-07, 3.128970218669746e-07], [3.733255836369801e-07, 6.184596922163498e-07, 6.294783961377007e-07, 3.7030716289162607e-07], [1.9277864553597039e-07, 2.891593928010883e-07, 2.936517095228588e-07, 2.0234449852516623e-07], [3.02789287281388e-07, 4.391123498101635e-07, 4.4220560993895873e-07, 3.0429353183380465e-07]], dtype='float64'),
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
