"""ort-lrn-running-sum: SpecialMismatch of ort-disable

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

TARGET = 'ort-disable'
# name: (dtype, shape), in the order that the model takes them
INPUTS = {'x0': ('float32', (2, 4, 2, 2))}
PARAMETERS = {}
OUTPUTS = [('float32', (2, 4, 2, 2))]


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


def model(g, x0):
    v0 = g.op("LRN", x0, size=3, alpha=1.0, beta=0.75, bias=1.0)
    return (v0,)


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
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
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

SYMPTOM = 'special'  # SpecialMismatch
SECONDS = 120.0
ZERO_SIGNS = False  # are the signs of zeros compared?
ARRAYS = {
    'x0': array([[[[-inf, 0.21760061383247375], [-0.05798998847603798, -2.3189361095428467]], [[0.0, -2.126279830932617], [0.9099212288856506, inf]], [[0.8300566673278809, 0.8276983499526978], [0.2985144555568695, -0.5350013971328735]], [[inf, -0.0], [-0.0, -0.22812379896640778]]], [[[-0.7245144844055176, -0.517249345779419], [nan, 0.2565516531467438]], [[-0.29385605454444885, -0.3547084629535675], [-0.6168151497840881, 0.08958446979522705]], [[-1.3441660404205322, 0.052184898406267166], [1.310025691986084, inf]], [[-0.045391738414764404, nan], [-0.9926744103431702, -1.6211415529251099]]]], dtype='float32'),
}
EXPECTED = [
    array([[[[0.0, 0.1087044475159183], [-0.04827059893709016, -1.0734832446807034]], [[0.0, -0.9953658215567943], [0.7444652498074016, 0.0]], [[0.7108332193195716, 0.3891422835821211], [0.2443911720554833, -0.4938045177019522]], [[0.0, -0.0], [-0.0, -0.21055751093107253]]], [[[-0.6304386160953722, -0.4715936633347463], [nan, 0.25191520296006326]], [[-0.18862229708832973, -0.32320514584854354], [-0.41450880060425416, 0.0879654822478415]], [[-0.9310358845756855, 0.050568416928527656], [0.7710531160543385, 0.0]], [[-0.031863048498782034, nan], [-0.6132703011485899, -1.0113245001786781]]]], dtype='float64'),
]
ALLOWED = [
    array([[[[inf, 2.8670867841580495e-07], [1.2731401468707945e-07, inf]], [[inf, 2.625283746748685e-06], [1.963531877272235e-06, inf]], [[inf, 1.0263652719931293e-06], [6.445832857598264e-07, inf]], [[inf, 0.0], [0.0, 5.553467873134749e-07]]], [[[1.662785898585469e-06, 1.2438313155878324e-06], [0.0, 6.644279655894709e-07]], [[4.974925198900359e-07, 8.524556477770035e-07], [inf, inf]], [[2.455613124617514e-06, inf], [2.0336575454152085e-06, inf]], [[8.40389950378685e-08, 0.0], [1.6175043576595797e-06, inf]]]], dtype='float64'),
]


def wrong(output, expected, allowed, dtype, shape):
    """What is wrong with one output, or None."""
    if str(output.dtype) != dtype or output.shape != tuple(shape):
        return f"{output.dtype}{output.shape} instead of {dtype}{tuple(shape)}"
    if not shape and output.ndim == 0:
        output, expected, allowed = output.reshape(1), expected.reshape(1), allowed.reshape(1)
    if "float" in dtype:
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
