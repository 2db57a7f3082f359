"""openvino-quantised-products-saturate: ValueMismatch of openvino

ran with python 3.11.7, numpy 2.4.6, openvino 2026.4.1, onnx 1.23.2
exit status: 1 reproduced, 0 not reproduced, 77 not available here
"""

import importlib.util
import sys

for module in ['onnx', 'openvino']:
    if importlib.util.find_spec(module) is None:
        print(f"not available: {module}")
        sys.exit(77)

# ---- the program that ran ----

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

TARGET = 'openvino'
# name: (dtype, shape), in the order that the model takes them
INPUTS = {'x0': ('float32', (3, 4))}
PARAMETERS = {'w1': ('float32', (5, 4)), 'w2': ('float32', (5,))}
OUTPUTS = [('float32', (3, 5))]


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


def model(g, x0, w1, w2):
    v0 = quantize_dequantize(g, x0, 0.0625, 128, 1, 'uint8')
    v1 = quantize_dequantize(g, w1, 0.0078125, 0, 1, 'int8')
    v2 = g.op("Gemm", v0, v1, w2, transB=1)
    v3 = quantize_dequantize(g, v2, 0.1, 128, 1, 'uint8')
    return (v3,)


def load(parameters):
    import openvino

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

    core = openvino.Core()
    options = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1}
    compiled = core.compile_model(core.read_model(proto.SerializeToString()), "CPU", options)
    taken = {name for port in compiled.inputs for name in port.names}  # what no node reads it leaves out

    def outputs_of(inputs):
        request = compiled.create_infer_request()
        if all(port.names & inputs.keys() for port in compiled.inputs):  # else it says what it lost
            inputs = {name: array for name, array in inputs.items() if name in taken}
        request.infer(inputs, share_inputs=False)
        return [np.array(request.get_output_tensor(i).data) for i in range(len(OUTPUTS))]

    def run(*inputs):
        return outputs_of(dict(zip(INPUTS, inputs)))

    return run


# ---- its inputs, and what a correct evaluation returns: value, and how far from it (inf: anything) ----

from pathlib import Path

from numpy import array, inf, nan

SYMPTOM = 'value'  # ValueMismatch
SECONDS = 120.0
ZERO_SIGNS = False  # are the signs of zeros compared?
ARRAYS = {
    'x0': array([[0.1257302165031433, -0.13210485875606537, 0.6404226422309875, 0.10490011423826218], [-0.5356693863868713, 0.3615950644016266, 1.3040000200271606, 0.9470809698104858], [-0.7037352323532104, -1.2654215097427368, -0.6232744455337524, 0.04132597893476486]], dtype='float32'),
    'w1': array([[0.1257302165031433, -0.13210485875606537, 0.6404226422309875, 0.10490011423826218], [-0.5356693863868713, 0.3615950644016266, 1.3040000200271606, 0.9470809698104858], [-0.7037352323532104, -1.2654215097427368, -0.6232744455337524, 0.04132597893476486], [-2.32503080368042, -0.218791663646698, -1.2459110021591187, -0.7322673797607422], [-0.5442590117454529, -0.3163001537322998, 0.4116305410861969, 1.042513370513916]], dtype='float32'),
    'w2': array([0.1257302165031433, -0.13210485875606537, 0.6404226422309875, 0.10490011423826218, -0.5356693863868713], dtype='float32'),
}
EXPECTED = [
    array([[0.6000000089406967, 0.5000000074505806, 0.30000000447034836, -0.7000000104308128, -0.20000000298023224], [0.9000000134110451, 2.500000037252903, -0.10000000149011612, -1.4000000208616257, 1.1000000163912773], [-0.20000000298023224, -0.800000011920929, 2.8000000417232513, 1.600000023841858, 0.0]], dtype='float64'),
]
ALLOWED = [
    array([[3.576278746475481e-08, 2.9802322887295674e-08, 1.7881393732377405e-08, 4.172325204221394e-08, 1.192092915491827e-08], [5.3644181197132216e-08, 1.4901161443647837e-07, 5.960464577459135e-09, 8.344650408442788e-08, 6.556511035205048e-08], [1.192092915491827e-08, 4.768371661967308e-08, 1.6689300816885577e-07, 9.536743323934616e-08, 0.0]], dtype='float64'),
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
