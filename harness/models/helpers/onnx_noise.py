"""An ONNX model in float64, exactly and with noise: Monte Carlo arithmetic (D. S. Parker, Monte Carlo Arithmetic,
1997).

Every floating result of a node is off by a random part, uniform in [-1, 1], of what rounding in the model's own dtype
may do to it. That is u |y| by the number of roundings of the operator (ulps of OpenCL C 3.0, section 7.4, for
functions), and for a sum of n terms t, products among them, u sqrt(n) sqrt(sum(t^2) + y^2): error analysis of
recursive summation gives sum(delta_i s_i) with s_i the partial sums (Higham, Accuracy and Stability of Numerical
Algorithms, section 4.2); with independent delta of mean 0 (N. J. Higham, T. Mary, A New Approach to Probabilistic
Rounding Error Analysis, SISC 41(5), 2019) and terms in random order, s_i has the mean i y / n and a variance of at
most sum(t^2), hence the square root. What only moves, selects or compares elements has no rounding."""

import numpy as np
import onnx
from onnx import TensorProto, helper, inliner, numpy_helper, shape_inference
from onnx.reference import ReferenceEvaluator

try:
    import torch  # convolutions and pools in float64, which onnx's own evaluator loops over in Python
except ImportError:
    torch = None

UNITS = {
    TensorProto.FLOAT: 2.0**-24,
    TensorProto.FLOAT16: 2.0**-11,
    TensorProto.BFLOAT16: 2.0**-8,
    TensorProto.DOUBLE: 2.0**-53,
}
NARROW = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16)
EXACT = {
    *("Abs", "ArgMax", "ArgMin", "CastLike", "Ceil", "Clip", "Compress", "Concat", "ConstantOfShape", "Constant"),
    *("DepthToSpace", "Dropout", "Expand", "Flatten", "Floor", "Gather", "GatherElements", "GatherND", "GlobalMaxPool"),
    *("Identity", "If", "Loop", "Max", "MaxPool", "Min", "Neg", "NonZero", "OneHot", "Pad", "ReduceMax", "ReduceMin"),
    *("Relu", "Reshape", "Round", "ScatterElements", "ScatterND", "Sequence", "Shape", "Sign", "Size", "Slice"),
    *("SpaceToDepth", "Split", "Squeeze", "Tile", "TopK", "Transpose", "Trilu", "Unsqueeze", "Upsample", "Where"),
}
ROUNDINGS = {"Exp": 6, "Log": 6, "Tanh": 10, "Sigmoid": 10, "Erf": 32, "Gelu": 36, "Pow": 32, "Sqrt": 6, "Div": 5}
ROUNDINGS |= {"Reciprocal": 5, "Sin": 8, "Cos": 8, "Softplus": 14, "Elu": 8, "Selu": 10, "Mish": 26, "HardSwish": 4}
ROUNDINGS |= {"HardSigmoid": 3, "LRN": 40, "Resize": 8, "Swish": 12}
"""Units of roundoff, two to an ulp; 1 for all others."""


def widened(model):
    """The same model, every floating tensor of it float64. Sizes beyond 2 GB are not asked for."""
    model = inliner.inline_local_functions(model)
    _widen(model.graph)
    return model


def _widen(graph):
    for tensor in graph.initializer:
        if tensor.data_type in NARROW:
            tensor.CopyFrom(_double(tensor))
    for value in [*graph.input, *graph.output]:
        if value.type.tensor_type.elem_type in NARROW:
            value.type.tensor_type.elem_type = TensorProto.DOUBLE
    del graph.value_info[:]
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.TENSOR and attribute.t.data_type in NARROW:
                attribute.t.CopyFrom(_double(attribute.t))
            elif attribute.name in ("to", "dtype") and attribute.i in NARROW:
                attribute.i = TensorProto.DOUBLE
            elif attribute.type == onnx.AttributeProto.GRAPH:
                _widen(attribute.g)
            elif node.op_type == "Constant" and attribute.name in ("value_float", "value_floats"):
                floats = attribute.f if attribute.name == "value_float" else list(attribute.floats)
                tensor = numpy_helper.from_array(np.asarray(floats, np.float64))
                attribute.CopyFrom(helper.make_attribute("value", tensor))
        if node.op_type == "ConstantOfShape" and not node.attribute:
            node.attribute.append(helper.make_attribute("value", numpy_helper.from_array(np.zeros(1))))


def _double(tensor):
    return numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float64), tensor.name)


def units_of(model):
    """Unit roundoff by name of a value, from the dtypes that the model infers; float32's for those not inferred."""
    inferred = shape_inference.infer_shapes(inliner.inline_local_functions(model)).graph
    values = [*inferred.value_info, *inferred.input, *inferred.output]
    return {value.name: UNITS.get(value.type.tensor_type.elem_type, 2.0**-24) for value in values}


def attributes_of(node):
    return {attribute.name: helper.get_attribute_value(attribute) for attribute in node.onnx_node.attribute}


def evaluated(node, inputs, context):
    """The outputs of one node: by what onnx's evaluator does in float32 only, PyTorch's double precision where that is
    much faster, else onnx's evaluator."""
    if inputs and _floating(inputs[0]) and node.op_type in OWN:
        return [OWN[node.op_type](attributes_of(node), inputs)]
    if torch is not None and node.op_type in FAST and inputs[0].dtype == np.float64:
        found = FAST[node.op_type](attributes_of(node), inputs)
        if found is not None:
            return [found]
    return list(node.run(*inputs, context=context) if node.need_context() else node.run(*inputs))


def _padding(attributes, spatial, kernel, strides, dilations):
    """Zeros before and after each spatial dimension."""
    auto = attributes.get("auto_pad", b"NOTSET").decode()
    if auto in ("NOTSET", "VALID"):
        given = attributes.get("pads", [0] * 2 * len(spatial)) if auto == "NOTSET" else [0] * 2 * len(spatial)
        return list(zip(given[: len(spatial)], given[len(spatial) :]))
    pads = []
    for size, k, s, d in zip(spatial, kernel, strides, dilations):
        total = max(0, (-(-size // s) - 1) * s + (k - 1) * d + 1 - size)
        less, more = total // 2, total - total // 2
        pads.append((less, more) if auto == "SAME_UPPER" else (more, less))
    return pads


def _padded(x, pads, value=0.0):
    flat = [amount for pair in reversed(pads) for amount in pair]
    return torch.nn.functional.pad(_tensor(x), flat, value=value)


def _tensor(array):
    return torch.from_numpy(np.require(array, requirements=("C", "W")))


def _window(attributes, x, kernel):
    rank = x.ndim - 2
    strides, dilations = attributes.get("strides", [1] * rank), attributes.get("dilations", [1] * rank)
    return strides, dilations, _padding(attributes, x.shape[2:], kernel, strides, dilations)


def fast_conv(attributes, inputs):
    x, w = inputs[:2]
    if not 3 <= x.ndim <= 5:
        return None
    strides, dilations, pads = _window(attributes, x, w.shape[2:])
    convolve = getattr(torch.nn.functional, f"conv{x.ndim - 2}d")
    bias = _tensor(inputs[2]) if len(inputs) > 2 and inputs[2] is not None else None
    return convolve(_padded(x, pads), _tensor(w), bias, strides, 0, dilations, attributes.get("group", 1)).numpy()


def fast_max_pool(attributes, inputs):
    x, kernel = inputs[0], attributes["kernel_shape"]
    if not 3 <= x.ndim <= 5 or attributes.get("ceil_mode"):
        return None
    strides, dilations, pads = _window(attributes, x, kernel)
    pool = getattr(torch.nn.functional, f"max_pool{x.ndim - 2}d")
    return pool(_padded(x, pads, -np.inf), kernel, strides, 0, dilations).numpy()


def fast_average_pool(attributes, inputs):
    x, kernel = inputs[0], attributes["kernel_shape"]
    if not 3 <= x.ndim <= 5 or attributes.get("ceil_mode") or any(d != 1 for d in attributes.get("dilations", [])):
        return None
    strides, _, pads = _window(attributes, x, kernel)
    pool = getattr(torch.nn.functional, f"avg_pool{x.ndim - 2}d")
    sums = pool(_padded(x, pads), kernel, strides)
    if attributes.get("count_include_pad") or not any(map(any, pads)):
        return sums.numpy()
    return (sums / pool(_padded(np.ones_like(x[:1, :1]), pads), kernel, strides)).numpy()


def layer_norm(attributes, inputs):
    x = inputs[0]
    axes = tuple(range(attributes.get("axis", -1) % x.ndim, x.ndim))
    centred = x - x.mean(axis=axes, keepdims=True)
    variance = np.mean(centred * centred, axis=axes, keepdims=True)
    y = centred / np.sqrt(variance + attributes.get("epsilon", 1e-5)) * inputs[1]
    return y + inputs[2] if len(inputs) > 2 and inputs[2] is not None else y


def root_mean_square_norm(attributes, inputs):
    x = inputs[0]
    axes = tuple(range(attributes.get("axis", -1) % x.ndim, x.ndim))
    return x / np.sqrt(np.mean(x * x, axis=axes, keepdims=True) + attributes.get("epsilon", 1e-5)) * inputs[1]


def group_norm(attributes, inputs):
    x, groups = inputs[0], attributes["num_groups"]
    parts = x.reshape(x.shape[0], groups, -1)
    centred = parts - parts.mean(axis=2, keepdims=True)
    parts = centred / np.sqrt(np.mean(centred * centred, axis=2, keepdims=True) + attributes.get("epsilon", 1e-5))
    shape = [-1, *[1] * (x.ndim - 2)]
    repeats = x.shape[1] // len(inputs[1])  # a scale for each group until opset 21
    scale, bias = (np.repeat(a, repeats).reshape(shape) for a in inputs[1:3])
    return parts.reshape(x.shape) * scale + bias


OWN = {"LayerNormalization": layer_norm, "RMSNormalization": root_mean_square_norm, "GroupNormalization": group_norm}
FAST = {"Conv": fast_conv, "MaxPool": fast_max_pool, "AveragePool": fast_average_pool}


def amplitudes(node, inputs, outputs, context):
    """How far rounding may move each output, in units of the roundoff; 0: not at all."""
    kind, y = node.op_type, outputs[0]
    if kind in EXACT or not isinstance(y, np.ndarray) or y.dtype != np.float64:
        return [0.0] * len(outputs)
    with np.errstate(all="ignore"):
        return [_amplitude(node, kind, inputs, y, context), *(np.abs(other) for other in outputs[1:])]


def _amplitude(node, kind, inputs, y, context):
    x = inputs[0]
    if kind in ("Conv", "ConvTranspose", "MatMul", "Gemm", "Einsum") and len(inputs) > 1:
        squares = [None if a is None else a * a for a in inputs]
        terms = evaluated(node, squares, context)[0]
        return np.sqrt(_terms(node, kind, inputs) * (np.abs(terms) + y * y))
    if kind in ("ReduceSum", "ReduceMean", "GlobalAveragePool", "AveragePool", "CumSum"):
        whole = kind in ("ReduceSum", "ReduceMean", "GlobalAveragePool")
        n = x.size / max(1, y.size) if whole else max(x.shape) if kind == "CumSum" else _kernel(node)
        terms = evaluated(node, [x * x, *inputs[1:]], context)[0] / (n if "Sum" not in kind else 1)
        return np.sqrt(n * (terms + y * y))
    if kind.startswith("Reduce"):
        return np.sqrt(x.size / max(1, y.size)) * np.abs(y) + np.abs(y)
    if kind == "BatchNormalization":
        shape = [-1, *[1] * (x.ndim - 2)]
        scale, bias, mean, variance = (a.reshape(shape) for a in inputs[1:5])
        slope = np.abs(scale) / np.sqrt(variance + attributes_of(node).get("epsilon", 1e-5))
        return 3 * slope * (np.abs(x) + np.abs(mean)) + np.abs(bias)  # whether it is folded or not
    if kind in ("LayerNormalization", "GroupNormalization", "RMSNormalization", "InstanceNormalization"):
        size = np.abs(x).max(initial=0.0)
        slope = np.abs(inputs[1]).max(initial=0.0) / max(float(x.std()), 1e-12)
        return (np.abs(x) + size) * slope + np.sqrt(x.shape[-1]) * np.abs(y)
    if kind in ("Softmax", "LogSoftmax"):
        axis = attributes_of(node).get("axis", -1)
        below = np.abs(x - x.max(axis=axis, keepdims=True))
        parts = below + 6 + np.sqrt(x.shape[axis])
        return parts * np.abs(y) if kind == "Softmax" else parts + np.abs(y)
    if kind in ("Sigmoid", "HardSigmoid"):  # as (1 + tanh(x / 2)) / 2, what is far below 1 loses its digits
        return ROUNDINGS[kind] * np.abs(y) + 2
    if kind in ("Gelu", "Swish", "HardSwish", "Mish", "Softplus", "Elu", "Selu"):  # the same of x
        return ROUNDINGS[kind] * np.abs(y) + 2 * np.minimum(np.abs(x), 1 + np.abs(y))
    return ROUNDINGS.get(kind, 1) * np.abs(y)


def _kernel(node):
    return float(np.prod(attributes_of(node)["kernel_shape"]))


def _terms(node, kind, inputs):
    """How many products a sum has."""
    x, w = inputs[:2]
    if kind == "Conv":
        return np.prod(w.shape[1:])
    if kind == "ConvTranspose":
        return w.shape[0] * np.prod(w.shape[2:])
    if kind == "Gemm":
        return x.shape[0] if attributes_of(node).get("transA") else x.shape[1]
    if kind == "MatMul":
        return x.shape[-1]
    return float(node.run(np.ones_like(x), np.ones_like(w))[0].max(initial=1.0))


def monte_carlo(model, inputs, runs, seed):
    """What each output is exactly, and in so many runs with noise: [exact, noisy, exact, noisy, ...], noisy with an
    axis of runs in front. inputs: arrays in the order of the model's. The last array: how many nodes onnx's evaluator
    computed in less than float64 (their rounding is in all runs)."""
    units = units_of(model)
    evaluator = ReferenceEvaluator(widened(model))
    wide = [array.astype(np.float64) if _floating(array) else array for array in inputs]
    start = {"": None, **dict(zip(evaluator.input_names, wide)), **evaluator.rt_inits_}
    states = [dict(start) for _ in range(runs + 1)]
    draws = [np.random.default_rng([seed, k]) for k in range(runs)]
    last, narrow = last_uses(evaluator), 0
    for place, node in enumerate(evaluator.rt_nodes_):
        found = []
        for state in states:
            outputs = evaluated(node, [state[name] for name in node.input], state)
            narrow += not found and any(_floating(y) and y.dtype != np.float64 for y in outputs)
            found.append([y.astype(np.float64) if _floating(y) else y for y in outputs])
        sizes = amplitudes(node, [states[0][name] for name in node.input], found[0], states[0])
        for k, outputs in enumerate(found):
            for name, y, size in zip(node.output, outputs, sizes):
                if k and np.any(size):
                    y = y + units.get(name, 2.0**-24) * size * draws[k - 1].uniform(-1, 1, y.shape)
                states[k][name] = y
        for name in last.get(place, ()):
            for state in states:
                state.pop(name, None)
    results = []
    for name in evaluator.output_names:
        results += [np.asarray(states[0][name]), np.stack([state[name] for state in states[1:]])]
    return [*results, np.array(narrow)]


def last_uses(evaluator):
    """By place of a node, the values that nothing uses after it. Nothing is dropped where nodes have graphs inside."""
    if any(node.need_context() for node in evaluator.rt_nodes_):
        return {}
    places = {name: place for place, node in enumerate(evaluator.rt_nodes_) for name in node.input}
    kept = {"", *evaluator.output_names}
    dropped = {}
    for name, place in places.items():
        if name not in kept:
            dropped.setdefault(place, []).append(name)
    return dropped


def _floating(array):
    return isinstance(array, np.ndarray) and (array.dtype.kind == "f" or str(array.dtype) == "bfloat16")
