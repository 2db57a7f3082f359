"""ort-gru-sigmoid: ValueMismatch of ort-disable

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
INPUTS = {'x0': ('float32', (5, 2, 3)), 'x1': ('float32', (2, 2)), 'x2': ('float32', (6, 3)), 'x3': ('float32', (6, 2)), 'x4': ('float32', (6,))}
PARAMETERS = {}
OUTPUTS = [('float32', (5, 2, 2))]


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


def model(g, x0, x1, x2, x3, x4):
    v0 = recurrent(g, "gru", x0, [x1], [x2, x3, x4, x4], (2, 2), reset='after', direction='forward', output='all')
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

SYMPTOM = 'value'  # ValueMismatch
SECONDS = 120.0
ZERO_SIGNS = False  # are the signs of zeros compared?
ARRAYS = {
    'x0': array([[[0.1257302165031433, -0.13210485875606537, 0.6404226422309875], [0.10490011423826218, -0.5356693863868713, 0.3615950644016266]], [[1.3040000200271606, 0.9470809698104858, -0.7037352323532104], [-1.2654215097427368, -0.6232744455337524, 0.04132597893476486]], [[-2.32503080368042, -0.218791663646698, -1.2459110021591187], [-0.7322673797607422, -0.5442590117454529, -0.3163001537322998]], [[0.4116305410861969, 1.042513370513916, -0.12853465974330902], [1.3664634227752686, -0.6651946902275085, 0.35151007771492004]], [[0.9034701585769653, 0.0940122976899147, -0.7434992790222168], [-0.9217253923416138, -0.4577258229255676, 0.22019512951374054]]], dtype='float32'),
    'x1': array([[3455.842041015625, 8216.181640625], [3304.370849609375, -13031.572265625]], dtype='float32'),
    'x2': array([[0.18905338644981384, -0.5227484703063965, -0.41306355595588684], [-2.44146728515625, 1.7997074127197266, 1.1441658735275269], [-0.32542282342910767, 0.7738065719604492, 0.28121066093444824], [-0.5538228154182434, 0.9775674343109131, -0.310556560754776], [-0.32882389426231384, -0.7921467423439026, 0.45495808124542236], [-0.09919805079698563, 0.5452887415885925, -0.6071857213973999]], dtype='float32'),
    'x3': array([[2.040919065475464, -2.5556650161743164], [0.4180988371372223, -0.5677695870399475], [-0.4526492953300476, -0.21559716761112213], [-2.019986152648926, -0.2319323718547821], [-0.8652130961418152, 3.3229994773864746], [0.22578661143779755, -0.3526307940483093]], dtype='float32'),
    'x4': array([-0.6517911553382874, -0.17471729218959808, 1.6637239456176758, 0.6591477394104004, -1.64139723777771, -0.00520326429978013], dtype='float32'),
}
EXPECTED = [
    array([[[-0.8582673013541834, -0.44509461967218256], [3304.370849609375, 1.0]], [[-0.8609793747031529, -0.41483933632544967], [-1.0, 1.0]], [[-0.8619991256412901, -0.4041940555892346], [-0.9929074121926753, 0.946981443069405]], [[-0.8635265745822497, -0.387420629580872], [-0.9861025862817515, 0.6817334950505489]], [[-0.8677607809580554, -0.34990761917107144], [-0.9787334797246999, 0.6317364727922034]]], dtype='float64'),
]
ALLOWED = [
    array([[[0.001473065729893837, 0.0014778801088366931], [0.003644905412405207, 0.001942839182048493]], [[0.0014817748658317875, 0.00153785422224051], [0.0004933736761361322, 1.132778037789497e-06]], [[0.0014961253985704452, 0.0015641004043064513], [0.0004919564432007056, 5.550837768869463e-05]], [[0.0015028602123212662, 0.0015995800043986461], [0.0004896556682427743, 0.00027017593992622474]], [[0.0015182164882519948, 0.0016462341835645437], [0.0004912184553714495, 0.0003159815961360723]]], dtype='float64'),
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
