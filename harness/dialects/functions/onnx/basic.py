"""What onnx spellings may call. Read as text; a program carries the source of what it uses."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


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


def squared_difference(g, x, y):
    """(x - y) squared."""
    difference = g.op("Sub", x, y)
    return g.op("Mul", difference, difference)


def where_bool(g, condition, x, y):
    """(condition and x) or (not condition and y)."""
    chosen = g.op("And", condition, x)
    return g.op("Or", chosen, g.op("And", g.op("Not", condition), y))


def variance(g, x, axes, keepdims):
    """The population variance in two passes."""
    axes = g.const(axes, "int64")
    deviation = g.op("Sub", x, g.op("ReduceMean", x, axes, keepdims=1))
    return g.op("ReduceMean", g.op("Mul", deviation, deviation), axes, keepdims=int(keepdims))


def stack(g, operands, axis):
    """Join along a new axis."""
    place = g.const([axis], "int64")
    return g.op("Concat", *[g.op("Unsqueeze", o, place) for o in operands], axis=axis)


def slice_(g, x, starts, stops, axes, steps):
    """The Slice operator, whose numbers are operands."""
    return g.op("Slice", x, *[g.const(numbers, "int64") for numbers in (starts, stops, axes, steps)])


def flip(g, x, axes):
    """Slice backwards, from the last element to beyond the first."""
    backwards, beyond = [-1] * len(axes), [np.iinfo(np.int64).min] * len(axes)
    return slice_(g, x, backwards, beyond, axes, backwards)


def roll(g, x, place, axis):
    """The elements from `place` on come first."""
    place, axes = g.const([place], "int64"), g.const([axis], "int64")
    rest = g.op("Slice", x, place, g.const([np.iinfo(np.int64).max], "int64"), axes)
    return g.op("Concat", rest, g.op("Slice", x, g.const([0], "int64"), place, axes), axis=axis)


def slice_update(g, x, update, shape, axis, places):
    """Every element of the update, of that shape, with its place on the axis."""
    column = [1] * len(shape)
    column[axis] = len(places)
    indices = np.broadcast_to(np.asarray(places, "int64").reshape(column), shape)
    return g.op("ScatterElements", x, g.const(indices, "int64"), update, axis=axis)


def index_add(g, x, axis, indices, update, shape):
    """Rows added along an axis: every element of a row of the update, of that shape, goes by the row's index."""
    column = [1] * len(shape)
    column[axis] = shape[axis]
    places = g.op("Reshape", indices, g.const(column, "int64"), allowzero=1)
    places = g.op("Expand", places, g.const(shape, "int64"))
    return g.op("ScatterElements", x, places, update, axis=axis, reduction="add")


def segment_sum(g, x, indices, shape, dtype):
    """Rows added to zeros of that shape."""
    rows = g.op("Cast", g.op("Unsqueeze", indices, g.const([1], "int64")), to=TensorProto.INT64)
    return g.op("ScatterND", g.const(np.zeros(shape), dtype), rows, x, reduction="add")


def leaky(g, x, below, dtype):
    """x above zero, `below` under it."""
    return g.op("Where", g.op("Greater", x, g.const(0, dtype)), x, below)


def scaled_exponential(g, x, factor, dtype):
    """factor * (exp(x) - 1)."""
    return g.op("Mul", g.const(factor, dtype), g.op("Sub", g.op("Exp", x), g.const(1, dtype)))


def hard_gate(g, x, dtype):
    """clip(x + 3, 0, 6) / 6."""
    shifted = g.op("Add", x, g.const(3, dtype))
    return g.op("Div", g.op("Clip", shifted, g.const(0, dtype), g.const(6, dtype)), g.const(6, dtype))


def log_one_plus_exp(g, x, dtype):
    """Without overflow: max(x, 0) + log(1 + exp(-|x|))."""
    rest = g.op("Add", g.const(1, dtype), g.op("Exp", g.op("Neg", g.op("Abs", x))))
    return g.op("Add", g.op("Max", x, g.const(0, dtype)), g.op("Log", rest))


def softplus_scaled(g, x, beta, threshold, dtype):
    """softplus(beta x) / beta up to the threshold of beta x, beyond it x."""
    scaled = g.op("Mul", x, g.const(beta, dtype))
    soft = log_one_plus_exp(g, scaled, dtype) if dtype == "float64" else g.op("Softplus", scaled)
    beyond = g.op("Greater", scaled, g.const(threshold, dtype))
    return g.op("Where", beyond, x, g.op("Div", soft, g.const(beta, dtype)))


def unsigned_shift(g, x, places, dtype, direction):
    """BitShift of the bits of signed integers: casts between integers of one width keep them."""
    if dtype.startswith("uint"):
        return g.op("BitShift", x, places, direction=direction)
    element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    unsigned = helper.np_dtype_to_tensor_dtype(np.dtype("u" + dtype))
    operands = [g.op("Cast", o, to=unsigned) for o in (x, places)]
    return g.op("Cast", g.op("BitShift", *operands, direction=direction), to=element)


def left_shift(g, x, places, dtype):
    return unsigned_shift(g, x, places, dtype, "LEFT")


def right_shift(g, x, places, dtype):
    """Arithmetic: negative numbers are inverted before the shift and after it."""
    if dtype.startswith("uint"):
        return unsigned_shift(g, x, places, dtype, "RIGHT")
    negative = g.op("Where", g.op("Less", x, g.const(0, dtype)), g.const(-1, dtype), g.const(0, dtype))
    shifted = unsigned_shift(g, g.op("BitwiseXor", x, negative), places, dtype, "RIGHT")
    return g.op("BitwiseXor", shifted, negative)


def apart(g, rest, divisor, dtype):
    """Where a remainder that division towards zero left has another sign than the divisor."""
    zero = g.const(0, dtype)
    other = g.op("Xor", g.op("Less", rest, zero), g.op("Less", divisor, zero))
    return g.op("And", other, g.op("Not", g.op("Equal", rest, zero)))


def floor_divide(g, x, y, dtype):
    """Of integers, whose Div rounds towards zero."""
    quotient = g.op("Div", x, y)
    rest = g.op("Sub", x, g.op("Mul", quotient, y))
    step = g.op("Where", apart(g, rest, y, dtype), g.const(1, dtype), g.const(0, dtype))
    return g.op("Sub", quotient, step)


def remainder(g, x, y, dtype):
    """Of floating numbers, whose Mod rounds towards zero."""
    rest = g.op("Mod", x, y, fmod=1)
    return g.op("Where", apart(g, rest, y, dtype), g.op("Add", rest, y), rest)


def sinc(g, x, dtype):
    zero, angle = g.op("Equal", x, g.const(0, dtype)), g.op("Mul", x, g.const(np.pi, dtype))
    return g.op("Where", zero, g.const(1, dtype), g.op("Div", g.op("Sin", angle), angle))


def frac(g, x, dtype):
    whole = g.op("Where", g.op("Less", x, g.const(0, dtype)), g.op("Ceil", x), g.op("Floor", x))
    return g.op("Sub", x, whole)


def signbit(g, x, dtype):
    """Negative, or a zero whose reciprocal is."""
    zero = g.const(0, dtype)
    below = g.op("Less", g.op("Reciprocal", x), zero)
    return g.op("Or", g.op("Less", x, zero), g.op("And", g.op("Equal", x, zero), below))


def nan_to_num(g, x, nan, posinf, neginf, dtype):
    y = g.op("Where", g.op("IsNaN", x), g.const(nan, dtype), x)
    y = g.op("Where", g.op("IsInf", x, detect_negative=0), g.const(posinf, dtype), y)
    return g.op("Where", g.op("IsInf", x, detect_positive=0), g.const(neginf, dtype), y)


def logit(g, x, eps, dtype):
    if eps is not None:
        x = g.op("Clip", x, g.const(eps, dtype), g.const(1 - eps, dtype))
    return g.op("Log", g.op("Div", x, g.op("Sub", g.const(1, dtype), x)))


def celu(g, x, alpha, dtype):
    below = scaled_exponential(g, g.op("Div", x, g.const(alpha, dtype)), alpha, dtype)
    return leaky(g, x, below, dtype)


def glu(g, x, axis):
    first, second = (g.op("Split", x, outputs=2, pick=i, axis=axis, num_outputs=2) for i in (0, 1))
    return g.op("Mul", first, g.op("Sigmoid", second))


def relu_squared(g, x):
    y = g.op("Relu", x)
    return g.op("Mul", y, y)


def hypot(g, x, y):
    return g.op("Sqrt", g.op("Add", g.op("Mul", x, x), g.op("Mul", y, y)))


def logaddexp(g, x, y, dtype):
    """The greater one and log(1 + exp(-|x - y|)); equal infinities as they are."""
    rest = g.op("Exp", g.op("Neg", g.op("Abs", g.op("Sub", x, y))))
    total = g.op("Add", g.op("Max", x, y), g.op("Log", g.op("Add", g.const(1, dtype), rest)))
    return g.op("Where", g.op("And", g.op("IsInf", x), g.op("Equal", x, y)), g.op("Max", x, y), total)


def copysign(g, x, y, dtype):
    sign = g.op("Where", signbit(g, y, dtype), g.const(-1, dtype), g.const(1, dtype))
    return g.op("Mul", g.op("Abs", x), sign)


def xlogy(g, x, y, dtype):
    zero = g.const(0, dtype)
    return g.op("Where", g.op("Equal", x, zero), zero, g.op("Mul", x, g.op("Log", y)))


def heaviside(g, x, y, dtype):
    zero = g.const(0, dtype)
    step = g.op("Where", g.op("Greater", x, zero), g.const(1, dtype), zero)
    return g.op("Where", g.op("Equal", x, zero), y, step)


def ignoring_nan(g, kind, x, y):
    """Max or Min of the operands that are numbers."""
    return g.op("Where", g.op("IsNaN", x), y, g.op("Where", g.op("IsNaN", y), x, g.op(kind, x, y)))


def isclose(g, x, y, rtol, atol, dtype):
    """|x - y| <= atol + rtol |y|, or equal; nothing else is close to an infinity."""
    limit = g.op("Add", g.const(atol, dtype), g.op("Mul", g.const(rtol, dtype), g.op("Abs", y)))
    near = g.op("LessOrEqual", g.op("Abs", g.op("Sub", x, y)), limit)
    return g.op("Or", g.op("Equal", x, y), g.op("And", near, g.op("Not", g.op("IsInf", y))))


def shifted_pair(g, x, axis, size, shift):
    """The elements before the last `shift` ones, and those from number `shift` on."""
    return slice_(g, x, [0], [size - shift], [axis], [1]), slice_(g, x, [shift], [size], [axis], [1])


def running(g, kind, x, axis, shape):
    """Of every element and all before it, in log2(size) steps: step 2^k joins neighbours 2^k apart."""
    shift = 1
    while shift < shape[axis]:
        earlier, later = shifted_pair(g, x, axis, shape[axis], shift)
        joined = g.op(kind, later, earlier) if isinstance(kind, str) else kind(later, earlier)
        x = g.op("Concat", slice_(g, x, [0], [shift], [axis], [1]), joined, axis=axis)
        shift *= 2
    return g.op("Identity", x)


def running_logaddexp(g, x, axis, shape, dtype):
    return running(g, lambda later, earlier: logaddexp(g, later, earlier, dtype), x, axis, shape)


def huber(g, x, y, delta, dtype):
    """d^2 / 2 below delta, delta (d - delta / 2) above, d = |x - y|."""
    half, limit = g.const(0.5, dtype), g.const(delta, dtype)
    d = g.op("Abs", g.op("Sub", x, y))
    square = g.op("Mul", half, g.op("Mul", d, d))
    line = g.op("Mul", limit, g.op("Sub", d, g.op("Mul", half, limit)))
    return g.op("Where", g.op("Less", d, limit), square, line)


def bce_with_logits(g, x, z, dtype):
    """max(x, 0) - x z + log(1 + exp(-|x|))."""
    return g.op("Sub", log_one_plus_exp(g, x, dtype), g.op("Mul", x, z))


def kron(g, x, y, shape):
    """Every element of x by all of y, as blocks."""
    left = g.op("Unsqueeze", x, g.const([1, 3], "int64"))
    blocks = g.op("Mul", left, g.op("Unsqueeze", y, g.const([0, 2], "int64")))
    return g.op("Reshape", blocks, g.const(shape, "int64"), allowzero=1)


def cross(g, x, y):
    """x[1] y[2] - x[2] y[1], and so on round."""

    def turned(operand, places):
        return g.op("Gather", operand, g.const(places, "int64"), axis=-1)

    first = g.op("Mul", turned(x, [1, 2, 0]), turned(y, [2, 0, 1]))
    return g.op("Sub", first, g.op("Mul", turned(x, [2, 0, 1]), turned(y, [1, 2, 0])))


def scaled_sum(g, x, beta, y, alpha, dtype):
    """beta x + alpha y."""
    return g.op("Add", g.op("Mul", g.const(beta, dtype), x), g.op("Mul", g.const(alpha, dtype), y))


def bucketize(g, x, rank, boundaries, right, dtype):
    """How many boundaries are below each element, or equal to it if `right`."""
    apart = g.op("Unsqueeze", x, g.const([rank], "int64"))
    below = g.op("GreaterOrEqual" if right else "Greater", apart, g.const(boundaries, dtype))
    counted = g.op("Cast", below, to=TensorProto.INT64)
    return g.op("ReduceSum", counted, g.const([rank], "int64"), keepdims=0)


def slice_backwards(g, x, starts, steps):
    """From each start to the first element."""
    beyond = [np.iinfo(np.int64).min] * len(starts)
    return slice_(g, x, starts, beyond, range(len(starts)), [-step for step in steps])


def diag_embed(g, x, offset, shape, dtype):
    """Places of the operand, or of a zero behind it."""
    *batch, n = shape
    table = np.where(np.eye(n + abs(offset), k=offset, dtype=bool), 1, 0)
    table = np.where(table, np.minimum(np.arange(len(table))[:, None], np.arange(len(table))), n)
    wide = g.op("Concat", x, g.const(np.zeros([*batch, 1]), dtype), axis=-1)
    return g.op("Gather", wide, g.const(table, "int64"), axis=-1)


def block_diag(g, x, y, first, second, dtype):
    """Two matrices of these shapes with zeros beside them."""
    above = g.op("Concat", x, g.const(np.zeros((first[0], second[1])), dtype), axis=1)
    below = g.op("Concat", g.const(np.zeros((second[0], first[1])), dtype), y, axis=1)
    return g.op("Concat", above, below, axis=0)


def adaptive_pool(g, kind, x, rows, columns):
    """Every cell reduced by itself."""
    lines = []
    for top, bottom in rows:
        parts = []
        for left, right in columns:
            cell = slice_(g, x, [top, left], [bottom, right], [2, 3], [1, 1])
            parts.append(g.op(kind, cell, g.const([2, 3], "int64"), keepdims=1))
        lines.append(g.op("Concat", *parts, axis=3))
    return g.op("Concat", *lines, axis=2)
