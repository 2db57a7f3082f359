"""openvino-dft-axis: ValueMismatch of openvino

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
INPUTS = {'x0': ('float32', (2, 5, 2, 2))}
PARAMETERS = {}
OUTPUTS = [('float32', (2, 5, 2, 2))]


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


def normed(g, y, n, norm, inverse, dtype):
    """ONNX divides by n in inverse transforms only."""
    power = {"backward": 0, "ortho": 0.5, "forward": 1}[norm]
    return g.op("Mul", y, g.const(float(n) ** (power if inverse else -power), dtype)) if power else y


def transformed(g, x, inverse, shape, axes, norm, dtype):
    for axis in range(-axes - 1, -1):
        x = g.op("DFT", x, None, g.const(axis, "int64"), inverse=int(inverse))
    return normed(g, x, int(np.prod(shape[-axes - 1 : -1])), norm, inverse, dtype)


def model(g, x0):
    v0 = transformed(g, x0, False, (2, 5, 2, 2), 1, 'backward', 'float32')
    return (v0,)


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

    def run(*inputs):
        request = compiled.create_infer_request()
        request.infer(dict(zip(INPUTS, inputs)), share_inputs=False)
        return [np.array(request.get_output_tensor(i).data) for i in range(len(OUTPUTS))]

    return run


# ---- its inputs, and what a correct evaluation returns: value, and how far from it (inf: anything) ----

from pathlib import Path

from numpy import array, inf, nan

SYMPTOM = 'value'  # ValueMismatch
SECONDS = 120.0
ZERO_SIGNS = False  # are the signs of zeros compared?
ARRAYS = {
    'x0': array([[[[0.1257302165031433, -0.13210485875606537], [0.6404226422309875, 0.10490011423826218]], [[-0.5356693863868713, 0.3615950644016266], [1.3040000200271606, 0.9470809698104858]], [[-0.7037352323532104, -1.2654215097427368], [-0.6232744455337524, 0.04132597893476486]], [[-2.32503080368042, -0.218791663646698], [-1.2459110021591187, -0.7322673797607422]], [[-0.5442590117454529, -0.3163001537322998], [0.4116305410861969, 1.042513370513916]]], [[[-0.12853465974330902, 1.3664634227752686], [-0.6651946902275085, 0.35151007771492004]], [[0.9034701585769653, 0.0940122976899147], [-0.7434992790222168, -0.9217253923416138]], [[-0.4577258229255676, 0.22019512951374054], [-1.0096181631088257, -0.20917557179927826]], [[-0.15922501683235168, 0.5408455729484558], [0.21465912461280823, 0.35537269711494446]], [[-0.6538286209106445, -0.12961363792419434], [0.7839754819869995, 1.4934310913085938]]]], dtype='float32'),
}
EXPECTED = [
    array([[[[0.7661528587341309, -0.027204744517803192], [-0.5146924257278442, -0.23700497299432755]], [[0.7683306336402893, 1.3086760342121124], [-1.839669406414032, -0.5854859054088593]], [[-1.327009677886963, -1.224095530807972], [-0.08046078681945801, -1.3067474886775017]], [[-3.5709418058395386, -0.9510590434074402], [-1.0791198015213013, 0.5134757161140442]], [[-0.13262847065925598, 0.7262132167816162], [-0.9558895528316498, -1.3588135242462158]]], [[[-0.7937293499708176, 1.7179735004901886], [0.5366600304841995, 1.0149533450603485]], [[0.15997087955474854, -0.8277130946516991], [1.6469694375991821, 1.0157376900315285]], [[-1.4673439860343933, 0.01101955771446228], [0.5518923401832581, 0.4293707013130188]], [[0.05543410778045654, 0.8962182700634003], [-0.3738841414451599, 0.18547287583351135]], [[0.13014686107635498, 1.3638174533843994], [-1.437804102897644, -1.623044729232788]]]], dtype='float64'),
]
ALLOWED = [
    array([[[[8.250234783415425e-06, 8.206190043396038e-06], [8.235246573575185e-06, 8.218695111534762e-06]], [[2.1179858492085843e-05, 2.1212065587862926e-05], [2.1243715259309012e-05, 2.116896009696996e-05]], [[1.9272283371625926e-05, 1.926614921042407e-05], [1.91979832675019e-05, 1.9271075651031225e-05]], [[3.363863819335566e-05, 3.3482481011365994e-05], [3.349011402739147e-05, 3.345639901248587e-05]], [[1.565414093409707e-05, 1.5689521342165586e-05], [1.570321111864016e-05, 1.5727227258917282e-05]]], [[[1.9097457694608786e-05, 1.9152546939091452e-05], [1.9082135169081055e-05, 1.911064367230101e-05]], [[1.817471483861974e-05, 1.8214515376300395e-05], [1.8263346859783677e-05, 1.8225722515558798e-05]], [[1.407686114251224e-05, 1.3990057441961139e-05], [1.4022295972148966e-05, 1.4014993113359601e-05]], [[8.52520131562372e-06, 8.57531595713606e-06], [8.544182416829724e-06, 8.532952230229425e-06]], [[2.208182424956736e-05, 2.2155356747265657e-05], [2.2159766695244444e-05, 2.2170807897016253e-05]]]], dtype='float64'),
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
