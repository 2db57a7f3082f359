"""tfmot-onednn-conv-crash: ProcessCrash of tfmot-int8

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
INPUTS = {'w0': ('float32', (3, 2, 9, 1))}
PARAMETERS = {'w0w': ('float32', (3, 2, 9, 1)), 'x1w': ('float32', (3,))}
OUTPUTS = []


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


def model(w0, w0w, x1w):
    v0 = weighted(tf_keras.layers.Conv2D(3, (9, 1), (5, 2), dilation_rate=(1, 1)), w0, np.transpose(constants(w0w)[0], (2, 3, 1, 0)), x1w, padding=((0, 0), (1, 1)))
    return (v0,)


RESULTS = [('float32', (3, 3, 1, 2))]
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

SYMPTOM = 'crash'  # ProcessCrash
SECONDS = 120.0
ZERO_SIGNS = True  # are the signs of zeros compared?
ARRAYS = {
    'w0': array([[[[0.37609708309173584], [0.07301440834999084], [0.2712981104850769], [0.31825652718544006], [0.2759743332862854], [0.07480507344007492], [0.135562002658844], [0.814532995223999], [0.49907588958740234]], [[0.3683032691478729], [0.056330401450395584], [0.9043644070625305], [0.5797536969184875], [0.5226197242736816], [0.8779484629631042], [0.7658652663230896], [0.9520685076713562], [0.05758652091026306]]], [[[0.4411032199859619], [0.514706015586853], [0.8299059271812439], [0.8923953175544739], [0.23330873250961304], [0.9426442384719849], [0.645941436290741], [0.7526432871818542], [0.6573125123977661]], [[0.2306319773197174], [0.8891702890396118], [0.8763188123703003], [0.9426971077919006], [0.09038901329040527], [0.28346678614616394], [0.2041037231683731], [0.8060147762298584], [0.9654244780540466]]], [[[0.17098712921142578], [0.00906434003263712], [0.6822891235351562], [0.42785006761550903], [0.3715587854385376], [0.4310479462146759], [0.5499164462089539], [0.1343967467546463], [0.24977818131446838]], [[0.46746915578842163], [0.47219544649124146], [0.5033087730407715], [0.6818085312843323], [0.28521186113357544], [0.04369286820292473], [0.48187944293022156], [0.8105133175849915], [0.935528039932251]]]], dtype='float32'),
    'w0w': array([[[[0.37609708309173584], [0.07301440834999084], [0.2712981104850769], [0.31825652718544006], [0.2759743332862854], [0.07480507344007492], [0.135562002658844], [0.814532995223999], [0.49907588958740234]], [[0.3683032691478729], [0.056330401450395584], [0.9043644070625305], [0.5797536969184875], [0.5226197242736816], [0.8779484629631042], [0.7658652663230896], [0.9520685076713562], [0.05758652091026306]]], [[[0.4411032199859619], [0.514706015586853], [0.8299059271812439], [0.8923953175544739], [0.23330873250961304], [0.9426442384719849], [0.645941436290741], [0.7526432871818542], [0.6573125123977661]], [[0.2306319773197174], [0.8891702890396118], [0.8763188123703003], [0.9426971077919006], [0.09038901329040527], [0.28346678614616394], [0.2041037231683731], [0.8060147762298584], [0.9654244780540466]]], [[[0.17098712921142578], [0.00906434003263712], [0.6822891235351562], [0.42785006761550903], [0.3715587854385376], [0.4310479462146759], [0.5499164462089539], [0.1343967467546463], [0.24977818131446838]], [[0.46746915578842163], [0.47219544649124146], [0.5033087730407715], [0.6818085312843323], [0.28521186113357544], [0.04369286820292473], [0.48187944293022156], [0.8105133175849915], [0.935528039932251]]]], dtype='float32'),
    'x1w': array([-1.948399305343628, -1.7514663934707642, -0.5124366283416748], dtype='float32'),
}
EXPECTED = [
]
ALLOWED = [
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
