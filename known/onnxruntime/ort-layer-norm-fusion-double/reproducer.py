"""ort-layer-norm-fusion-double: ValueMismatch of ort-basic

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

TARGET = 'ort-basic'
# name: (dtype, shape), in the order that the model takes them
INPUTS = {'x0': ('float64', (2, 3, 8))}
PARAMETERS = {'w1': ('float64', ()), 'w2': ('float64', ()), 'w3': ('float64', (8,)), 'w4': ('float64', (8,))}
OUTPUTS = [('float64', (2, 3, 8))]


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


def model(g, x0, w1, w2, w3, w4):
    v0 = g.op("ReduceMean", x0, g.const((-1,), "int64"), keepdims=int(True))
    v1 = g.op("Sub", x0, v0)
    v2 = g.op("Pow", v1, w1)
    v3 = g.op("ReduceMean", v2, g.const((-1,), "int64"), keepdims=int(True))
    v4 = g.op("Add", v3, w2)
    v5 = g.op("Sqrt", v4)
    v6 = g.op("Div", v1, v5)
    v7 = g.op("Mul", v6, w3)
    v8 = g.op("Add", v7, w4)
    return (v8,)


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
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
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
    'x0': array([[[0.345584192064786, 0.8216181435011584, 0.33043707618338714, -1.303157231604361, 0.9053558666731177, 0.4463745723640113, -0.5369532353602852, 0.5811181041963531], [0.36457239618607573, 0.294132496655526, 0.02842224131579679, 0.5467129866124469, -0.7364540870016669, -0.16290994799305278, -0.48211931267997826, 0.5988462126346276], [0.03972210748165899, -0.2924567509650886, -0.7819084623568421, -0.2571922406188707, 0.008142180518343508, -0.2756029052993704, 1.2940638143982073, 1.0067243153057943]], [[-2.7111624789659685, -1.8890132459676727, -0.17477209205516195, -0.42219041157635356, 0.2136429974986111, 0.21732193102256359, 2.1178387550510482, -1.1120207626922813], [-0.37760500712699807, 2.0427716074923303, 0.6467029962018469, 0.6630633723762617, -0.5140063716874629, -1.6480751708556527, 0.16746474422274113, 0.10901408782154753], [-1.2273520542445742, -0.6832266617805622, -0.07204367972722743, -0.9447516230607774, -0.09826996785221727, 0.09548302746945433, 0.03558623705548571, -0.5062916583143148]]], dtype='float64'),
    'w1': array(2.0, dtype='float64'),
    'w2': array(1e-05, dtype='float64'),
    'w3': array([0.5118216247002567, 0.9504636963259353, 0.14415961271963373, 0.9486494471372439, 0.31183145201048545, 0.42332644897257565, 0.8277025938204418, 0.4091991363691613], dtype='float64'),
    'w4': array([0.5118216247002567, 0.9504636963259353, 0.14415961271963373, 0.9486494471372439, 0.31183145201048545, 0.42332644897257565, 0.8277025938204418, 0.4091991363691613], dtype='float64'),
}
EXPECTED = [
    array([[[0.6190016204135216, 1.7949765089993002, 0.17123275152989625, -1.0840351782069844, 0.6261540787660227, 0.5728445832481409, -0.041082433040346866, 0.6323868384384436], [0.8587386301508793, 1.4474416819569385, 0.13528854144069866, 1.971689347427624, -0.23195344229557424, 0.21912998221622562, -0.15266658340336137, 0.8974070777510692], [0.4706021206262625, 0.3938448467791509, -0.047552987629863874, 0.44396096033207333, 0.2717443682865942, 0.1862629371974216, 2.3397096444039196, 0.9779197167956797]], [[-0.3210281948553928, -0.02878210500105316, 0.17506610187246252, 0.9816109760981993, 0.4666278420992167, 0.6346009068509719, 2.3829601162635634, 0.2184612061399697], [0.24960554960082393, 2.757501278834116, 0.2175503812677541, 1.4470774202166665, 0.10966016941605014, -0.3298554578410947, 0.8535351963636549, 0.39811988300138335], [-0.37847453376101403, 0.41852209063081824, 0.2545185034383236, -0.12021008280901657, 0.5328162617382033, 0.9011657350167249, 1.6544957987065319, 0.33716949429036736]]], dtype='float64'),
]
ALLOWED = [
    array([[[1.8767798703696588e-15, 8.578865080438364e-15, 5.040309232396946e-16, 1.7319484818006246e-14, 3.1085494711280495e-15, 2.032621191134105e-15, 7.97175851943607e-15, 2.585511239998187e-15], [3.6261475839979285e-15, 5.586357424380179e-15, 3.2313517860622827e-16, 9.682412924806853e-15, 4.591936820004687e-15, 2.2184235676610846e-15, 8.580476788854199e-15, 4.5421280038828395e-15], [1.1088378499504316e-15, 5.368774817548454e-15, 1.5856250183353702e-15, 5.007842232287196e-15, 7.78797984257582e-16, 2.316404666442516e-15, 1.2764649017972848e-14, 4.958939329998135e-15]], [[7.120755286617726e-15, 8.78446942365684e-15, 5.081914321431249e-16, 2.0108745586533985e-15, 1.7872986133170117e-15, 2.4351921479314533e-15, 1.3697259726653424e-14, 2.1213593031283415e-15], [2.6374838118936126e-15, 1.5170098384326916e-14, 7.8856722523496855e-16, 5.305831205188657e-15, 1.8982746747467768e-15, 6.0853632875663295e-15, 1.5468966766560923e-15, 7.446243100309319e-16], [8.608923454113863e-15, 6.664372688742367e-15, 1.3186585070314323e-15, 1.097932666557189e-14, 2.700559026232861e-15, 5.188870200203611e-15, 9.225059215543848e-15, 1.6296085933581124e-15]]], dtype='float64'),
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
