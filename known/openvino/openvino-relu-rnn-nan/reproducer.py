"""openvino-relu-rnn-nan: SpecialMismatch of openvino

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
INPUTS = {'x0': ('float32', (2, 1)), 'x1': ('float32', (2, 2)), 'x2': ('float32', (2, 1)), 'x3': ('float32', (2, 2)), 'x4': ('float32', (2,)), 'x5': ('float32', (2,))}
PARAMETERS = {}
OUTPUTS = [('float32', (2, 2))]


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


def part(g, x, rank, row=None, column=None):
    """A row or a column of each matrix, or an element."""
    places = [(axis, place) for axis, place in ((rank - 2, row), (rank - 1, column)) if place is not None]
    starts = [place for _, place in places]
    numbers = (starts, [place + 1 for place in starts], [axis for axis, _ in places])
    return g.op("Slice", x, *[g.const(n, "int64") for n in numbers])


def recurrent(g, kind, x, states, weights, shape, direction="forward", output="all", activation=None, reset="after"):
    """RNN, GRU or LSTM over the first axis of x, with a state of that shape. ONNX orders the gates of a GRU as z, r,
    h and those of an LSTM as i, o, f, c."""
    size = shape[1]
    order = {"rnn": [0], "gru": [1, 0, 2], "lstm": [0, 3, 1, 2]}[kind]
    places = g.const([gate * size + row for gate in order for row in range(size)], "int64")
    front = g.const([0], "int64")
    w, r, bw, br = (g.op("Gather", weight, places, axis=0) for weight in weights)
    w, r, b = (g.op("Unsqueeze", o, front) for o in (w, r, g.op("Concat", bw, br, axis=0)))
    states = [g.op("Unsqueeze", state, front) for state in states]
    attributes = {
        "rnn": {"activations": [str(activation).title()]},
        "gru": {"linear_before_reset": int(reset == "after")},
    }
    results = {"outputs": 3 if kind == "lstm" else 2, "pick": ["all", "last", "cell"].index(output)}
    y = g.op(
        *(kind.upper(), x, w, r, b, None, *states),
        hidden_size=size,
        direction=direction,
        **attributes.get(kind, {}),
        **results,
    )
    return g.op("Squeeze", y, g.const([1 if output == "all" else 0], "int64"))


def recurrent_cell(g, kind, x, states, weights, shape, output="last", **attributes):
    """One step of the same."""
    x = g.op("Unsqueeze", x, g.const([0], "int64"))
    return recurrent(g, kind, x, states, weights, shape, output=output, **attributes)


def gates(F, x, weight, bias):
    """x by the transposed weight, and the bias."""
    return F.matmul(x, F.transpose(weight, [1, 0])) + bias


def columns(F, x, number, count):
    """One of so many blocks of columns."""
    size = x.shape[1] // count
    return F.take(x, list(range(number * size, (number + 1) * size)), 1)


def rows(F, x, first, last, count):
    """The blocks of rows from `first` to `last` of so many."""
    size = x.shape[0] // count
    return F.take(x, list(range(first * size, (last + 1) * size)), 0)


def rnn_cell(F, x, h, w, r, bw, br, activation):
    total = gates(F, x, w, bw) + gates(F, h, r, br)
    return F.maximum(total, 0) if activation == "relu" else F.tanh(total)


def gru_cell(F, x, h, w, r, bw, br, reset):
    """Gates r, z, n; the reset gate scales the state's part of n after its product, or the state before it."""
    inner = gates(F, x, w, bw)
    outer = gates(F, h, rows(F, r, 0, 1, 3), rows(F, br, 0, 1, 3))
    scale = F.sigmoid(columns(F, inner, 0, 3) + columns(F, outer, 0, 2))
    update = F.sigmoid(columns(F, inner, 1, 3) + columns(F, outer, 1, 2))
    weight, bias = rows(F, r, 2, 2, 3), rows(F, br, 2, 2, 3)
    rest = scale * gates(F, h, weight, bias) if reset == "after" else gates(F, scale * h, weight, bias)
    new = F.tanh(columns(F, inner, 2, 3) + rest)
    return (1 - update) * new + update * h


def lstm_step(F, x, h, c, w, r, bw, br):
    """Gates i, f, g, o."""
    total = gates(F, x, w, bw) + gates(F, h, r, br)
    i, f, g, o = (columns(F, total, number, 4) for number in range(4))
    c = F.sigmoid(f) * c + F.sigmoid(i) * F.tanh(g)
    return F.sigmoid(o) * F.tanh(c), c


def over_time(F, step, x, state, direction, output):
    """The step from state to state, over the first axis of x."""
    order = list(range(x.shape[0]))
    if direction == "reverse":
        order.reverse()
    results = []
    for t in order:
        state = step(F.reshape(F.take(x, [t], 0), x.shape[1:]), *state)
        results.append(state[0])
    if output != "all":
        return state[1 if output == "cell" else 0]
    if direction == "reverse":
        results.reverse()
    return F.stack(results, 0)


def rnn(F, x, h, w, r, bw, br, activation, direction, output):
    def step(x, h):
        return (rnn_cell(F, x, h, w, r, bw, br, activation),)

    return over_time(F, step, x, [h], direction, output)


def gru(F, x, h, w, r, bw, br, reset, direction, output):
    def step(x, h):
        return (gru_cell(F, x, h, w, r, bw, br, reset),)

    return over_time(F, step, x, [h], direction, output)


def lstm(F, x, h, c, w, r, bw, br, direction, output):
    def step(x, h, c):
        return lstm_step(F, x, h, c, w, r, bw, br)

    return over_time(F, step, x, [h, c], direction, output)


def model(g, x0, x1, x2, x3, x4, x5):
    v0 = recurrent_cell(g, "rnn", x0, [x1], [x2, x3, x4, x5], (2, 2), activation='relu')
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
    taken = {name for port in compiled.inputs for name in port.names}  # what no node reads it leaves out

    def outputs_of(inputs):
        request = compiled.create_infer_request()
        request.infer({name: array for name, array in inputs.items() if name in taken}, share_inputs=False)
        return [np.array(request.get_output_tensor(i).data) for i in range(len(OUTPUTS))]

    def run(*inputs):
        return outputs_of(dict(zip(INPUTS, inputs)))

    return run


# ---- its inputs, and what a correct evaluation returns: value, and how far from it (inf: anything) ----

from pathlib import Path

from numpy import array, inf, nan

SYMPTOM = 'special'  # SpecialMismatch
SECONDS = 120.0
ZERO_SIGNS = False  # are the signs of zeros compared?
ARRAYS = {
    'x0': array([[0.0], [0.0]], dtype='float32'),
    'x1': array([[0.0, 0.0], [0.0, 0.0]], dtype='float32'),
    'x2': array([[1.0], [inf]], dtype='float32'),
    'x3': array([[0.0, 0.0], [0.0, 0.0]], dtype='float32'),
    'x4': array([0.0, 0.0], dtype='float32'),
    'x5': array([0.0, 0.0], dtype='float32'),
}
EXPECTED = [
    array([[0.0, nan], [0.0, nan]], dtype='float64'),
]
ALLOWED = [
    array([[0.0, 0.0], [0.0, 0.0]], dtype='float64'),
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
