"""tflite-quantise-maximum-scale: ValueMismatch of tflite-int8

ran with python 3.11.7, numpy 2.4.6, tensorflow-cpu 2.21.0
exit status: 1 reproduced, 0 not reproduced, 77 not available here
"""

import importlib.util
import sys

for module in ['tensorflow']:
    if importlib.util.find_spec(module) is None:
        print(f"not available: {module}")
        sys.exit(77)

# ---- the program that ran ----

import numpy as np
import tensorflow as tf

TARGET = 'tflite-int8'
# name: (dtype, shape), in the order that the model takes them
INPUTS = {'x0': ('float32', (1, 1, 1)), 'x1': ('float32', (1, 1, 1, 2))}
PARAMETERS = {}
OUTPUTS = [('uint8', (1221,)), ('float32', (1, 1, 1, 2)), ('float32', (1, 1, 1, 2)), ('float32', (1, 1, 1)), ('float32', (1, 1, 1, 2)), ('float32', (1, 1, 1)), ('float32', (1, 1, 1, 2)), ('float32', (1, 1, 1)), ('float32', (1, 1, 1, 2)), ('int8', (1, 1, 1, 2)), ('float32', (1, 1, 1)), ('float32', (1, 1, 1, 2)), ('int8', (1, 1, 1, 2)), ('float32', (1, 1, 1, 2)), ('float32', (1, 1, 1)), ('float32', (1, 1, 1, 2)), ('int8', (1, 1, 1, 2)), ('float32', (1, 1, 1)), ('float32', (1, 1, 1, 2)), ('int8', (1, 1, 1, 2)), ('float32', (1, 1, 1, 2))]


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


def model(x0, x1):
    v0 = tf.negative(x0)
    v1 = tf.maximum(v0, x1)
    v2 = tf.math.tanh(x1)
    return (v1, v2,)


RESULTS = [('float32', (1, 1, 1, 2)), ('float32', (1, 1, 1, 2))]
SHARE = 0.5


def load(parameters):
    bound = [tf.constant(parameters[name]) for name in PARAMETERS]
    signature = [tf.TensorSpec(shape, dtype, name) for name, (dtype, shape) in INPUTS.items()]

    @tf.function(input_signature=signature)
    def compiled(*inputs):
        return model(*inputs, *bound)

    def run(*inputs):
        feeds = dict(zip(INPUTS, inputs))
        samples = calibration(feeds, SHARE)
        converter = tf.lite.TFLiteConverter.from_concrete_functions([compiled.get_concrete_function()])
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        converter.representative_dataset = lambda: ([sample[name] for name in INPUTS] for sample in samples)
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
        content = converter.convert()
        nodes, tensors = tflite_model(content)
        header = {"nodes": {"float": []}, "tensors": tensors, "share": SHARE, "outputs": {}}
        groups = {"float": dict(enumerate(output.numpy() for output in model(*map(tf.constant, inputs), *bound)))}
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
