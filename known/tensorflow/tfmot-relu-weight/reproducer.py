"""tfmot-relu-weight: ValueMismatch of tfmot-int8

ran with python 3.11.7, numpy 2.1.3, tensorflow-model-optimization 0.8.1, tf-keras 2.19.0, tensorflow-cpu 2.19.1 (environment tfmot)
exit status: 1 reproduced, 0 not reproduced, 77 not available here
"""

import importlib.util
import sys

for module in ['tensorflow', 'tf_keras', 'tensorflow_model_optimization']:
    if importlib.util.find_spec(module) is None:
        print(f"not available: {module}")
        sys.exit(77)

# ---- the program that ran ----

import numpy as np
import tensorflow as tf
import tensorflow_model_optimization as tfmot
import tf_keras

TARGET = 'tfmot-int8'
# name: (dtype, shape), in the order that the model takes them
INPUTS = {'x': ('float32', (2, 3))}
PARAMETERS = {'w': ('float32', (2, 3)), 'b': ('float32', (2,))}
OUTPUTS = [('uint8', (1824,)), ('float32', (2, 1)), ('float32', (2, 1)), ('float32', (2, 1)), ('float32', (3, 2)), ('float32', (2, 2)), ('float32', (2, 3)), ('float32', (2, 3)), ('float32', (2, 3)), ('int8', (2, 3)), ('int32', (2,)), ('int8', (2, 3)), ('int8', (2, 2)), ('float32', (2, 2)), ('float32', (2, 3)), ('int8', (2, 3)), ('int32', (2,)), ('int8', (2, 3)), ('int8', (2, 2)), ('float32', (2, 2))]


def channels_last(x):
    """The value that `channels_first` made this one of, or its permutation."""
    made = x._keras_history.layer
    if isinstance(made, tf_keras.layers.Permute) and tuple(made.dims) == (3, 1, 2):
        return made.input
    return tf_keras.layers.Permute((2, 3, 1))(x)


def channels_first(x):
    return tf_keras.layers.Permute((3, 1, 2))(x)


def spatial(layer, x, padding=((0, 0), (0, 0))):
    """A layer of images, on padded ones."""
    x = channels_last(x)
    if any(map(any, padding)):
        x = tf_keras.layers.ZeroPadding2D(padding)(x)
    return channels_first(layer(x))


def pointwise(layer, *xs):
    """A layer that asks for no order of axes: where images come with their channels last, they stay so."""
    made = [x._keras_history.layer for x in xs]
    if all(isinstance(m, tf_keras.layers.Permute) and tuple(m.dims) == (3, 1, 2) for m in made):
        xs = [m.input for m in made]
        return channels_first(layer(xs if len(xs) > 1 else xs[0]))
    return layer(list(xs) if len(xs) > 1 else xs[0])


def constants(*weights):
    """Layers hold their weights; one that is computed cannot be held."""
    if not all(isinstance(weight, np.ndarray) for weight in weights):
        raise NotImplementedError("a layer with a weight that is computed")
    return list(weights)


def weighted(layer, x, *weights, **how):
    """A layer applied to a value, with these weights."""
    weights = constants(*weights)
    y = spatial(layer, x, **how) if x.shape.rank == 4 and not isinstance(layer, tf_keras.layers.Dense) else layer(x)
    layer.set_weights(weights)
    return y


def tfmot_model(inputs, outputs):
    """The model with fake quantisation where tfmot's default 8-bit scheme puts it: of the same shapes, or refused."""
    whole = tfmot.quantization.keras.quantize_model(tf_keras.Model(inputs, outputs))
    made, given = ([tuple(x.shape) for x in xs] for xs in (whole.outputs, outputs))
    if made != given:
        raise ValueError(f"quantize_model changes the shapes of outputs: {given} become {made}")
    return whole


def tfmot_trained(whole, samples, targets, rounds):
    """A step of gradient descent on each sample towards what the float model returns, then so many rounds in which only
    ranges move, by the samples in turn: those of activations are averages with a weight of 1/1000 for each step, that
    begin with -6 to 6. Statistics of batch normalisation stay as they are."""
    for layer in whole.layers:
        inner = getattr(layer, "layer", layer)
        inner.trainable = not isinstance(inner, tf_keras.layers.BatchNormalization)
    optimiser = tf_keras.optimizers.legacy.SGD(1e-3)
    for sample, wanted in zip(samples, targets):
        with tf.GradientTape() as tape:
            found = tf.nest.flatten(whole(sample, training=True))
            loss = sum(tf.reduce_mean((a - b) ** 2) for a, b in zip(found, wanted))
        slopes = tape.gradient(loss, whole.trainable_variables)
        pairs = zip(slopes, whole.trainable_variables)
        optimiser.apply_gradients([(slope, variable) for slope, variable in pairs if slope is not None])

    watched = tf.function(lambda: [whole(sample, training=True) for sample in samples], autograph=False)
    for _ in range(rounds):
        watched()


def tfmot_ranges(whole):
    """All fake quantisation by name: of which layer it is, and, for a weight, which ranges of activations come behind
    its layer (the first one, and those that a fused activation has); their ranges, low ends before high ones; the
    weights, with the batch normalisation behind them. A weight that has no range has one of zeros, and is marked."""
    listed, ranges, arrays = {}, {}, {}

    def add(name, kind, layer, made, **further):
        listed[name] = {"kind": kind, "layer": type(getattr(layer, "layer", layer)).__name__, **further}
        ends = [made[end].numpy() for end in ("min_var", "max_var")] if made else [0, 0]
        ranges[name] = np.array([np.reshape(end, -1) for end in ends], np.float32)

    for layer in whole.layers:
        if getattr(layer, "quantizer", None):
            add(layer.name, "input", layer, layer.quantizer_vars, of=layer._inbound_nodes[0].inbound_layers.name)
        for activation in getattr(layer, "_quantize_activations", []):
            if hasattr(activation, "_post_activation_vars"):
                add(f"{layer.name}.post", "activation", layer, activation._post_activation_vars)
        if getattr(layer, "_output_quantizers", None):
            add(f"{layer.name}.output", "activation", layer, layer._output_quantizer_vars)
    for layer in whole.layers:
        inner = getattr(layer, "layer", layer)
        held = [(weight, made) for weight, _, made in getattr(layer, "_weight_vars", [])]
        if not held and isinstance(inner, tf_keras.layers.DepthwiseConv2D):
            held = [(inner.depthwise_kernel, None)]
        elif not held and isinstance(inner, (tf_keras.layers.Conv2D, tf_keras.layers.Dense)):
            held = [(inner.kernel, None)]
        for weight, made in held:
            name, behind, norm = f"{layer.name}.weight", layer, None
            while not {f"{behind.name}.post", f"{behind.name}.output"} & set(listed) and behind._outbound_nodes:
                behind = behind._outbound_nodes[0].outbound_layer
                inner = getattr(behind, "layer", None)
                norm = inner if isinstance(inner, tf_keras.layers.BatchNormalization) else norm
            near = [behind, *(node.outbound_layer for node in behind._outbound_nodes)]
            ends = [end for one in near for end in (f"{one.name}.post", f"{one.name}.output") if end in listed]
            epsilon = norm.epsilon if norm else 0.0
            add(name, "weight", layer, made, behind=ends, epsilon=epsilon, absent=made is None)
            arrays[name] = weight.numpy()
            if norm:
                arrays[f"{name}.gamma"], arrays[f"{name}.variance"] = norm.gamma.numpy(), norm.moving_variance.numpy()
    return listed, ranges, arrays


def tflite_model(content):
    """The operators of a model and how each of its tensors is quantised, as JSON can hold them; tensors go by their
    numbers."""
    from tensorflow.lite.python import schema_py_generated as schema

    parsed = schema.ModelT.InitFromPackedBuf(content, 0)
    graph, codes = parsed.subgraphs[0], {v: k for k, v in vars(schema.BuiltinOperator).items() if isinstance(v, int)}
    nodes = []
    for operator in graph.operators:
        code = parsed.operatorCodes[operator.opcodeIndex]
        options = vars(operator.builtinOptions) if operator.builtinOptions else {}
        plain = {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in options.items()}
        operands = ["" if i < 0 else str(i) for i in operator.inputs]
        name = codes[max(code.builtinCode, code.deprecatedBuiltinCode)]
        nodes.append([name, "", operands, [str(i) for i in operator.outputs], plain])
    tensors = {}
    for i, tensor in enumerate(graph.tensors):
        given = tensor.quantization
        if given is not None and given.scale is not None:
            scale, zero = (np.asarray(v).tolist() for v in (given.scale, given.zeroPoint))
            tensors[str(i)] = {"scale": scale, "zero": zero, "axis": int(given.quantizedDimension)}
    return nodes, tensors


def tflite_values(content, feeds, kernels):
    """All tensors by their numbers, and the numbers of inputs (in the order of `feeds`) and outputs. Inputs that the
    model takes as integers are quantised by its own scale and zero point, rounded to the nearest, half away from 0."""
    interpreter = tf.lite.Interpreter(
        model_content=content,
        experimental_preserve_all_tensors=True,
        experimental_op_resolver_type=tf.lite.experimental.OpResolverType[kernels],
        num_threads=1,
    )
    interpreter.allocate_tensors()
    given = {}
    for detail in interpreter.get_input_details():
        name = detail["name"].split(":")[0].removeprefix("serving_default_")
        array, (scale, zero) = feeds[name], detail["quantization"]
        if array.dtype == np.float32 and detail["dtype"] != np.float32:
            limits, level = np.iinfo(detail["dtype"]), array / np.float32(scale)
            level = np.copysign(np.floor(np.abs(level) + np.float32(0.5)), level) + zero
            array = np.clip(level, limits.min, limits.max).astype(detail["dtype"])
        interpreter.set_tensor(detail["index"], array)
        given[name] = str(detail["index"])
    interpreter.invoke()
    values = {}
    for detail in interpreter.get_tensor_details():
        try:
            values[str(detail["index"])] = interpreter.get_tensor(detail["index"])
        except ValueError:
            continue  # scratch memory of a kernel
    return values, given, [str(detail["index"]) for detail in interpreter.get_output_details()]


def recorded(header, groups):
    """A header (JSON) as an array of bytes, then all arrays of the groups, {group: {name: array}}, in the order in
    which the header lists them."""
    import json

    header["arrays"] = [[group, name] for group, arrays in groups.items() for name in arrays]
    text = np.frombuffer(json.dumps(header).encode(), np.uint8)
    return [text] + [np.asarray(a) for arrays in groups.values() for a in arrays.values()]


def calibration(inputs, share):
    """Samples to calibrate on: the inputs times `share`, and half of that backwards with the other sign. What is no
    real number stays as it is."""

    def scaled(x, by, backwards):
        if x.dtype != np.float32:
            return x
        x = x.reshape(-1)[::-1].reshape(x.shape) if backwards else x
        return np.array(x * np.float32(by), np.float32, order="C")

    return [
        {name: scaled(x, share, False) for name, x in inputs.items()},
        {name: scaled(x, -share / 2, True) for name, x in inputs.items()},
    ]


def model(x, w, b):
    y0 = weighted(tf_keras.layers.Dense(2), x, np.transpose(constants(w)[0]), b)
    y1 = pointwise(tf_keras.layers.ReLU(), y0)
    return (y1,)


RESULTS = [('float32', (2, 2))]
SHARE = 1.0


def load(parameters):
    tf_keras.backend.clear_session()  # so that layers have the same names each time
    given = [tf_keras.Input(batch_shape=shape, dtype=dtype, name=name) for name, (dtype, shape) in INPUTS.items()]
    outputs = list(model(*given, *[parameters[name] for name in PARAMETERS]))
    exact = tf_keras.Model(given, outputs)
    trained = tfmot_model(given, outputs)

    def run(*inputs):
        feeds = dict(zip(INPUTS, inputs))
        samples = calibration(feeds, SHARE)
        fed = [[tf.constant(sample[name]) for name in INPUTS] for sample in samples]
        tfmot_trained(trained, fed, [tf.nest.flatten(exact(sample)) for sample in fed], 500)
        listed, ranges, weights = tfmot_ranges(trained)
        signature = [tf.TensorSpec(shape, dtype, name) for name, (dtype, shape) in INPUTS.items()]

        @tf.function(input_signature=signature)
        def compiled(*inputs):
            return tf.nest.flatten(trained(list(inputs), training=False))

        converter = tf.lite.TFLiteConverter.from_concrete_functions([compiled.get_concrete_function()])
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        content = converter.convert()
        nodes, tensors = tflite_model(content)
        header = {"nodes": {}, "tensors": tensors, "share": SHARE, "ranges": listed}
        groups = {"ranges": ranges, "weights": weights}
        found = tf.nest.flatten(exact([tf.constant(x) for x in inputs]))
        groups["float"] = dict(enumerate(value.numpy() for value in found))
        groups.update({f"sample {i}": sample for i, sample in enumerate(samples)})
        for kernels in ("BUILTIN_REF", "BUILTIN_WITHOUT_DEFAULT_DELEGATES"):
            values, given, outputs = tflite_values(content, feeds, kernels)
            header["nodes"][kernels], groups[kernels] = nodes, values
            header["inputs"], header["outputs"] = given, outputs
        return recorded(header, groups)

    return run


# ---- its inputs, and what a correct evaluation returns: value, and how far from it (inf: anything) ----

from pathlib import Path

from numpy import array, inf, nan

SYMPTOM = 'value'  # ValueMismatch
SECONDS = 120.0
ZERO_SIGNS = False  # are the signs of zeros compared?
DATA = np.load(Path(__file__).with_name("data.npz"))
TYPES = {**INPUTS, **PARAMETERS}
ARRAYS = {name: DATA["ARRAYS_" + name].view(dtype) for name, (dtype, _) in TYPES.items()}
EXPECTED = [DATA[f"EXPECTED_{i}"] for i in range(len(OUTPUTS))]
ALLOWED = [DATA[f"ALLOWED_{i}"] for i in range(len(OUTPUTS))]


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
        if SYMPTOM == "rejected":
            print("not reproduced")
            return 0
        print(f"not available: the model has {len(outputs)} values here, not {len(OUTPUTS)}")
        return 77
    failed = 0
    for i, (dtype, shape) in enumerate(OUTPUTS):
        problem = wrong(np.asarray(outputs[i]), EXPECTED[i], ALLOWED[i], dtype, shape)
        print(f"output {i}: {problem or 'correct'}")
        failed |= problem is not None
    print("reproduced" if failed else "not reproduced")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
