"""The names that `functions/shared` calls, for relax. Read as text; a program carries the source of what it uses."""

import numpy as np
from tvm import relax


class Value:
    """An expression with the operators of Python."""

    def __init__(self, space, expr):
        self.space, self.expr = space, space.bb.emit(expr)
        self.shape, self.dtype = tuple(int(n) for n in self.expr.ty.shape), str(self.expr.ty.dtype)

    def __add__(self, other):
        return self.space.call(relax.op.add, self, other)

    def __sub__(self, other):
        return self.space.call(relax.op.subtract, self, other)

    def __mul__(self, other):
        return self.space.call(relax.op.multiply, self, other)

    def __truediv__(self, other):
        return self.space.call(relax.op.divide, self, other)

    def __gt__(self, other):
        return self.space.call(relax.op.greater, self, other)

    def __and__(self, other):
        return self.space.call(relax.op.logical_and, self, other)

    def __radd__(self, other):
        return self.space.constant(other, self) + self

    def __rsub__(self, other):
        return self.space.constant(other, self) - self

    def __rmul__(self, other):
        return self.space.constant(other, self) * self

    def __neg__(self):
        return self.space.call(relax.op.negative, self)


class Space:
    """One set of names for all dialects; see `shared_helpers.py`."""

    def __init__(self, bb):
        self.bb = bb

    def run(self, function, operands, **attrs):
        """The function of these expressions, as an expression."""
        return function(self, *[Value(self, o) for o in operands], **attrs).expr

    def call(self, op, *operands, **attrs):
        """Numbers take the dtype of the last operand that is a value."""
        like = [o for o in operands if isinstance(o, Value)][-1]
        values = [o if isinstance(o, Value) else self.constant(o, like) for o in operands]
        return Value(self, op(*[v.expr for v in values], **attrs))

    def constant(self, values, like):
        return Value(self, relax.const(np.asarray(values, like.dtype), like.dtype))

    def cast(self, x, like):
        return self.call(relax.op.astype, x, dtype=like.dtype)

    def exp(self, x):
        return self.call(relax.op.exp, x)

    def log(self, x):
        return self.call(relax.op.log, x)

    def sqrt(self, x):
        return self.call(relax.op.sqrt, x)

    def tanh(self, x):
        return self.call(relax.op.tanh, x)

    def sigmoid(self, x):
        return self.call(relax.op.sigmoid, x)

    def abs(self, x):
        return self.call(relax.op.abs, x)

    def equal(self, x, y):
        return self.call(relax.op.equal, x, y)

    def maximum(self, x, y):
        return self.call(relax.op.maximum, x, y)

    def minimum(self, x, y):
        return self.call(relax.op.minimum, x, y)

    def where(self, condition, x, y):
        like = x if isinstance(x, Value) else y
        x, y = (o if isinstance(o, Value) else self.constant(o, like) for o in (x, y))
        return self.call(relax.op.where, condition, x, y)

    def matmul(self, x, y):
        return self.call(relax.op.matmul, x, y)

    def reshape(self, x, shape):
        return self.call(relax.op.reshape, x, shape=tuple(shape))

    def transpose(self, x, order):
        return self.call(relax.op.permute_dims, x, axes=list(order))

    def concat(self, values, axis):
        return Value(self, relax.op.concat([v.expr for v in values], axis=axis))

    def stack(self, values, axis):
        return Value(self, relax.op.stack([v.expr for v in values], axis=axis))

    def take(self, x, places, axis):
        places = places.expr if isinstance(places, Value) else relax.const(np.asarray(places, "int64"), "int64")
        return Value(self, relax.op.take(x.expr, places, axis=axis))

    def sum(self, x, axes, keepdims=False):
        return self.call(relax.op.sum, x, axis=list(axes), keepdims=keepdims)

    def mean(self, x, axes, keepdims=False):
        return self.call(relax.op.mean, x, axis=list(axes), keepdims=keepdims)

    def max(self, x, axes, keepdims=False):
        return self.call(relax.op.max, x, axis=list(axes), keepdims=keepdims)

    def softmax(self, x, axis):
        return self.call(relax.op.nn.softmax, x, axis=axis)

    def log_softmax(self, x, axis):
        return self.call(relax.op.nn.log_softmax, x, axis=axis)
