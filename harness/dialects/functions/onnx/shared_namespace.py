"""The names that `functions/shared` calls, for onnx. Read as text; a program carries the source of what it uses."""

import numpy as np
from onnx import helper


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


def max_unpool_native(g, x, kernel):
    """Of what MaxPool makes of x."""
    names = [g.op("MaxPool", x, outputs=2, pick=i, kernel_shape=kernel, strides=kernel) for i in (0, 1)]
    return g.op("MaxUnpool", *names, kernel_shape=kernel, strides=kernel)
