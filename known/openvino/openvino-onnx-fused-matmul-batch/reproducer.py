"""openvino-onnx-fused-matmul-batch: ValueMismatch of onnx/ort-optimised/openvino-onnx/openvino

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
INPUTS = {'x0': ('float32', (4, 4, 4)), 'x1': ('float32', (4, 4, 4))}
PARAMETERS = {}
OUTPUTS = [('float32', (4, 4, 4))]


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


def model(g, x0, x1):
    v0 = g.op("Transpose", x1, perm=(1, 0, 2))
    v1 = g.op("MatMul", x0, v0)
    return (v1,)


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

SYMPTOM = 'value'  # ValueMismatch
SECONDS = 120.0
ZERO_SIGNS = False  # are the signs of zeros compared?
ARRAYS = {
    'x0': array([[[0.358773410320282, 1.5106773376464844, -1.786331295967102, 1.6866135597229004], [-0.04731721058487892, -0.7999786138534546, -0.8029567003250122, -1.082816481590271], [-0.22364535927772522, 0.8338841795921326, 0.584063708782196, 0.6382859945297241], [-1.6948083639144897, -1.5709620714187622, 1.5538032054901123, 0.9688853621482849]], [[2.183213949203491, 1.2098158597946167, -1.0243912935256958, 1.285272479057312], [0.6283942461013794, 0.21482492983341217, -0.8198733329772949, 0.0027802218683063984], [-0.14699870347976685, 0.8925350904464722, 0.1244969442486763, 1.5847458839416504], [-0.7744857668876648, 0.4711025655269623, 0.49884238839149475, -0.8643385171890259]], [[-1.1812660694122314, 1.0135794878005981, 0.5174404978752136, -0.16250517964363098], [0.39436739683151245, -0.6753440499305725, 0.23834820091724396, -0.605126678943634], [0.18878847360610962, 0.9860894680023193, -0.33963024616241455, 0.8497738242149353], [-1.0341993570327759, -0.28849077224731445, -1.364742636680603, -0.10058608651161194]], [[0.07865408062934875, -0.19726265966892242, -0.2676757276058197, 1.3401947021484375], [1.423792839050293, -1.2156310081481934, 1.174114465713501, -1.723069667816162], [-0.7344792485237122, -0.17344559729099274, 0.11106060445308685, -1.0474166870117188], [-0.7224687933921814, 0.07665381580591202, -0.6934227347373962, -0.6412007808685303]]], dtype='float32'),
    'x1': array([[[-1.3976184129714966, -1.2040095329284668, -1.3022689819335938, -0.6226853728294373], [1.4472801685333252, -1.6013139486312866, 0.9439694881439209, 1.2624719142913818], [-0.35546061396598816, -0.7009360790252686, 0.472114622592926, 1.2145576477050781], [2.155531167984009, 0.8918114900588989, 1.593842625617981, -0.45029157400131226]], [[-0.8742169737815857, -1.719773292541504, -1.1537026166915894, -0.36343371868133545], [0.19299472868442535, -1.3131005764007568, 0.8160858750343323, -0.10304894298315048], [-0.6422010660171509, -0.765288770198822, 2.02068829536438, 0.16922834515571594], [-0.8979265689849854, -0.9539822936058044, 1.8378244638442993, -0.5783509016036987]], [[1.1887041330337524, 1.4232739210128784, -2.324401378631592, 1.3509749174118042], [-0.208432137966156, -1.0841286182403564, -0.5438424348831177, 0.5608957409858704], [0.37397655844688416, 0.4255141317844391, -0.7248960137367249, 1.2790838479995728], [1.5021305084228516, 1.8340637683868408, 1.0004626512527466, 1.8943145275115967]], [[2.0939269065856934, 0.704255998134613, 0.8811621069908142, 0.5822091102600098], [0.5514243841171265, 0.8632445335388184, -1.7089818716049194, -0.32379835844039917], [0.48785674571990967, -2.1073310375213623, -1.4418405294418335, 1.5844982862472534], [-1.0591626167297363, -0.46434730291366577, 0.375119149684906, -0.47598153352737427]]], dtype='float32'),
}
EXPECTED = [
    array([[[-0.41386197559351245, -4.3846201769880935, 3.4282390037813286, -2.203761032395594], [-2.4563302263629754, -0.4726551059887871, 1.8968139645708177, -1.3949970448157887], [1.6143783307618165, 0.11597878852279564, -1.4659730037718646, 0.996870407286556], [7.617844505352856, 7.6360949492196575, 1.261602169346265, 4.2895160073330985]], [[4.3154569885770595, -2.864544493299462, 1.4088010772716117, 1.6408302156935433], [1.1233436432361619, -0.397095055768655, 1.2096311466173273, 0.31042891296762276], [0.8074246180503395, 0.2964552538070091, -2.1863857186482614, -0.7208648421969799], [-1.61056969944168, -0.6653549981407778, 0.8592164141554708, -0.4666431860536788]], [[-0.11679689677535698, 0.6149414602862162, 1.3496512228764317, -0.8588287546934623], [0.08744609934115521, 1.617029640547806, -0.47875469189938347, -0.2892602699089295], [-0.4128204324019311, -2.822244072693028, 1.102667516116501, 1.308218379270258], [-0.006567135374357491, 0.5769372944482392, 0.063115027404546, -3.2099142992684158]], [[-1.4748992989847984, -0.8549204516412177, -0.0022387863910768857, -1.0663001817157678], [7.749261359124262, 5.382948825146968, 0.5634865537484188, 3.106230803256409], [-0.15123938109469393, 0.20050434003942552, -1.7712009659931773, 1.1399769518371823], [-1.9886090480480423, -1.691474014907436, -1.9448955399831354, -0.7273722224824359]]], dtype='float64'),
]
ALLOWED = [
    array([[[1.7826924636687443e-06, 1.6117660114464262e-06, 1.8712100864292542e-06, 9.936535885594995e-07], [9.506472118516111e-07, 7.958793793396559e-07, 9.072037323631263e-07, 4.852779452159216e-07], [7.325101380915937e-07, 7.114798357551054e-07, 7.565815865594783e-07, 3.821835293327499e-07], [1.816235936806113e-06, 1.8205871823572995e-06, 2.022964495523037e-06, 1.0227004658009335e-06]], [[1.028885278622748e-06, 1.7415757927593016e-06, 1.3832608905266973e-06, 9.230763807196308e-07], [2.678260356711913e-07, 5.196551548238243e-07, 2.90664202713302e-07, 3.0427728967510234e-07], [3.0632490089161985e-07, 6.938871804811322e-07, 8.685962745853753e-07, 2.05165048508086e-07], [4.273439868696009e-07, 7.50004099802963e-07, 6.828265262593036e-07, 3.7812789761709697e-07]], [[3.2034050399412593e-07, 5.16487070694214e-07, 7.665678943553711e-07, 6.021455432923581e-07], [2.2846237721497314e-07, 5.17340336224602e-07, 6.189633978171852e-07, 4.427335485736766e-07], [2.961054813242191e-07, 6.728755232088704e-07, 8.471357186837924e-07, 5.190491275901678e-07], [2.652024609977387e-07, 4.144602091399523e-07, 5.258408765858474e-07, 7.653033217339301e-07]], [[5.169479935307633e-07, 3.270101674307245e-07, 3.0003281192578314e-07, 3.0862675932959627e-07], [1.8475681610795151e-06, 1.2833952038992578e-06, 1.5078623716319967e-06, 1.0462940460347767e-06], [7.188670393643403e-07, 3.601404748028177e-07, 4.7526961334024823e-07, 2.7179172607192494e-07], [7.979586951336837e-07, 5.452523389803883e-07, 5.308743457310885e-07, 4.7407512777409274e-07]]], dtype='float64'),
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
