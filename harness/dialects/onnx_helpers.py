"""What onnx spellings may call. Read as text; a program carries the source of what it uses."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class Builder:
    """Collects ONNX nodes; values are known by name."""

    def __init__(self):
        self.nodes = []
        self.initializers = []

    def op(self, kind, *operands, outputs=1, pick=0, **attributes):
        """Add a node and return the name of its output number `pick`. An operand that is None is left out."""
        names = [f"t{len(self.nodes)}_{i}" for i in range(outputs)]
        operands = ["" if o is None else o for o in operands]
        self.nodes.append(helper.make_node(kind, operands, names, **attributes))
        return names[pick]

    def const(self, value, dtype):
        """Add an initializer from nested sequences and a numpy dtype name, and return its name."""
        name = f"c{len(self.initializers)}"
        array = np.asarray(value, dtype=dtype)
        self.initializers.append(numpy_helper.from_array(array, name))
        return name

    def model(self, inputs, parameters, outputs, results, opset=20):
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
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
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


def rms_norm(g, x, weight, rank, epsilon, dtype):
    """Over the last `rank` axes."""
    axes = g.const(list(range(-rank, 0)), "int64")
    square = g.op("ReduceMean", g.op("Mul", x, x), axes, keepdims=1)
    root = g.op("Sqrt", g.op("Add", square, g.const(epsilon, dtype)))
    return g.op("Mul", g.op("Div", x, root), weight)


def group_norm(g, x, scale, bias, groups, epsilon, shape, dtype):
    """Standardises (N, groups, rest), then scale and bias a channel."""
    size = int(np.prod(shape[1:])) // groups
    y = g.op("Reshape", x, g.const([shape[0], groups, size], "int64"), allowzero=1)
    if dtype == "float32":
        ones, zeros = g.const([1] * groups, dtype), g.const([0] * groups, dtype)
        y = g.op("InstanceNormalization", y, ones, zeros, epsilon=epsilon)
    else:  # ONNX Runtime normalises instances of float only
        last = g.const([2], "int64")
        difference = g.op("Sub", y, g.op("ReduceMean", y, last))
        variance = g.op("ReduceMean", g.op("Mul", difference, difference), last)
        y = g.op("Div", difference, g.op("Sqrt", g.op("Add", variance, g.const(epsilon, dtype))))
    y = g.op("Reshape", y, g.const(shape, "int64"), allowzero=1)
    each = g.const([-1] + [1] * (len(shape) - 2), "int64")
    return g.op("Add", g.op("Mul", y, g.op("Reshape", scale, each)), g.op("Reshape", bias, each))


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
