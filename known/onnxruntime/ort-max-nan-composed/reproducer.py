"""ort-max-nan-composed: SpecialMismatch of ort-disable

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
INPUTS = {'w3': ('float64', (2, 2)), 'x4': ('int64', (2, 3))}
PARAMETERS = {}
OUTPUTS = [('float64', (2, 2))]


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


def stack(g, operands, axis):
    """Join along a new axis."""
    place = g.const([axis], "int64")
    return g.op("Concat", *[g.op("Unsqueeze", o, place) for o in operands], axis=axis)


class Value:
    """A name in the graph with its type and the operators of Python. `zeros`: an array of its dtype and shape."""

    def __init__(self, space, name, zeros):
        self.space, self.name, self.zeros = space, name, zeros
        self.shape, self.dtype = zeros.shape, zeros.dtype

    def __add__(self, other):
        return self.space.binary("Add", self, other)

    def __sub__(self, other):
        return self.space.binary("Sub", self, other)

    def __mul__(self, other):
        return self.space.binary("Mul", self, other)

    def __truediv__(self, other):
        return self.space.binary("Div", self, other)

    def __gt__(self, other):
        return self.space.binary("Greater", self, other, bool)

    def __and__(self, other):
        return self.space.binary("And", self, other)

    def __radd__(self, other):
        return self.space.constant(other, self) + self

    def __rsub__(self, other):
        return self.space.constant(other, self) - self

    def __rmul__(self, other):
        return self.space.constant(other, self) * self

    def __neg__(self):
        return self.space.unary("Neg", self)


class Space:
    """One set of names for all dialects; see `shared_helpers.py`."""

    def __init__(self, g):
        self.g = g

    def run(self, function, operands, types, **attrs):
        """The function of these names, whose dtypes and shapes are given, as a name."""
        values = [Value(self, name, np.zeros(shape, dtype)) for name, (dtype, shape) in zip(operands, types)]
        return function(self, *values, **attrs).name

    def constant(self, values, like):
        array = np.asarray(values, like.dtype)
        return Value(self, self.g.const(array, array.dtype.name), np.zeros_like(array))

    def binary(self, kind, x, y, dtype=None):
        x, y = (o if isinstance(o, Value) else self.constant(o, x if isinstance(x, Value) else y) for o in (x, y))
        shape = np.broadcast_shapes(x.shape, y.shape)
        return Value(self, self.g.op(kind, x.name, y.name), np.zeros(shape, dtype or x.dtype))

    def unary(self, kind, x):
        return Value(self, self.g.op(kind, x.name), x.zeros)

    def reduced(self, kind, x, axes, keepdims):
        name = self.g.op(kind, x.name, self.g.const(list(axes), "int64"), keepdims=int(keepdims))
        return Value(self, name, x.zeros.any(axis=tuple(axes), keepdims=keepdims).astype(x.dtype))

    def cast(self, x, like):
        name = self.g.op("Cast", x.name, to=helper.np_dtype_to_tensor_dtype(like.dtype))
        return Value(self, name, x.zeros.astype(like.dtype))

    def exp(self, x):
        return self.unary("Exp", x)

    def log(self, x):
        return self.unary("Log", x)

    def sqrt(self, x):
        return self.unary("Sqrt", x)

    def tanh(self, x):
        return self.unary("Tanh", x)

    def sigmoid(self, x):
        return self.unary("Sigmoid", x)

    def abs(self, x):
        return self.unary("Abs", x)

    def equal(self, x, y):
        return self.binary("Equal", x, y, bool)

    def maximum(self, x, y):
        return self.binary("Max", x, y)

    def minimum(self, x, y):
        return self.binary("Min", x, y)

    def where(self, condition, x, y):
        x, y = (o if isinstance(o, Value) else self.constant(o, x if isinstance(x, Value) else y) for o in (x, y))
        name = self.g.op("Where", condition.name, x.name, y.name)
        return Value(self, name, np.where(condition.zeros, x.zeros, y.zeros))

    def matmul(self, x, y):
        return Value(self, self.g.op("MatMul", x.name, y.name), np.matmul(x.zeros, y.zeros))

    def reshape(self, x, shape):
        zeros = x.zeros.reshape(shape)
        return Value(self, self.g.op("Reshape", x.name, self.g.const(zeros.shape, "int64"), allowzero=1), zeros)

    def transpose(self, x, order):
        return Value(self, self.g.op("Transpose", x.name, perm=list(order)), x.zeros.transpose(order))

    def concat(self, values, axis):
        zeros = np.concatenate([v.zeros for v in values], axis)
        return Value(self, self.g.op("Concat", *[v.name for v in values], axis=axis), zeros)

    def stack(self, values, axis):
        return self.concat([self.reshape(v, np.expand_dims(v.zeros, axis).shape) for v in values], axis)

    def take(self, x, places, axis):
        if not isinstance(places, Value):
            places = self.constant(places, Value(self, "", np.zeros((), "int64")))
        zeros = np.take(x.zeros, places.zeros, axis)
        return Value(self, self.g.op("Gather", x.name, places.name, axis=axis), zeros)

    def sum(self, x, axes, keepdims=False):
        return self.reduced("ReduceSum", x, axes, keepdims)

    def mean(self, x, axes, keepdims=False):
        return self.reduced("ReduceMean", x, axes, keepdims)

    def max(self, x, axes, keepdims=False):
        return self.reduced("ReduceMax", x, axes, keepdims)

    def softmax(self, x, axis):
        return Value(self, self.g.op("Softmax", x.name, axis=axis), x.zeros)

    def log_softmax(self, x, axis):
        return Value(self, self.g.op("LogSoftmax", x.name, axis=axis), x.zeros)


def reduced(F, x, reduction):
    """No reduction, or the mean or the sum of all elements."""
    if reduction == "none":
        return x
    axes = list(range(len(x.shape)))
    return F.mean(x, axes) if reduction == "mean" else F.sum(x, axes)


def counted(F, indices, padding, like):
    """1 where an index counts, 0 where it is the padding, with a new last axis."""
    shape = [*indices.shape, 1]
    ones = F.constant(np.ones(indices.shape), like)
    if padding is None:
        return F.reshape(ones, shape)
    return F.reshape(F.where(F.equal(indices, F.constant(padding, indices)), 0, ones), shape)


def embedding_bag(F, table, indices, mode, padding):
    """Bags of (bag, index, feature)."""
    found, there = F.take(table, indices, 0), counted(F, indices, padding, table)
    total = F.sum(there, [1])
    if mode == "max":
        greatest = F.max(F.where(there > 0, found, -float("inf")), [1])
        return F.where(total > 0, greatest, 0)
    result = F.sum(F.where(there > 0, found, 0), [1])
    return result if mode == "sum" else F.where(total > 0, result / F.maximum(total, 1), 0)


def model(g, w3, x4):
    v1 = Space(g).run(embedding_bag, [w3, x4], [('float64', (2, 2)), ('int64', (2, 3))], mode='max', padding=1)
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
    'w3': array([[-0.0, nan], [-0.0, 0.0]], dtype='float64'),
    'x4': array([[0, 1, 0], [1, 1, 0]], dtype='int64'),
}
EXPECTED = [
    array([[-0.0, nan], [-0.0, nan]], dtype='float64'),
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
