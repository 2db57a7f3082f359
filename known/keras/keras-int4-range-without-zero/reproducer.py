"""keras-int4-range-without-zero: ValueMismatch of keras-int4-blocks

ran with python 3.11.7, numpy 2.4.6, keras 3.15.1, tensorflow-cpu 2.21.0
exit status: 1 reproduced, 0 not reproduced, 77 not available here
"""

import importlib.util
import sys

for module in ['tensorflow', 'keras']:
    if importlib.util.find_spec(module) is None:
        print(f"not available: {module}")
        sys.exit(77)

# ---- the program that ran ----

import numpy as np
import keras

TARGET = 'keras-int4-blocks'
# name: (dtype, shape), in the order that the model takes them
INPUTS = {'x': ('float32', (1, 4))}
PARAMETERS = {'w': ('float32', (4, 1))}
OUTPUTS = [('uint8', (719,)), ('float32', (4, 1)), ('float32', (1, 1)), ('int8', (4, 1)), ('float32', (1, 1)), ('int8', (1, 1)), ('float32', (1, 1)), ('float32', (1, 4)), ('float32', (1, 1)), ('int8', (4, 1)), ('float32', (1, 1)), ('int8', (1, 1)), ('float32', (1, 1)), ('float32', (1, 4)), ('float32', (1, 1))]


def keras_dense(x, weight, bias=None, turned=False):
    """A product with a constant matrix as a Dense layer, which Keras can quantise, and any other as an operation.
    turned: the weight is out x in"""
    constant = isinstance(weight, np.ndarray) and weight.ndim == 2
    if not constant or not isinstance(x, keras.KerasTensor) or len(x.shape) < 2:
        y = keras.ops.matmul(x, keras.ops.transpose(weight) if turned else weight)
        return y if bias is None else keras.ops.add(y, bias)
    kernel, own = (weight.T if turned else weight), isinstance(bias, np.ndarray)
    layer = keras.layers.Dense(kernel.shape[1], use_bias=own)
    y = layer(x)
    layer.set_weights([kernel, bias] if own else [kernel])
    return y if own or bias is None else keras.ops.add(y, bias)


def keras_layer(layer):
    """A quantised Dense layer as a node, and its arrays by name: input, kernel, scales, zero points, bias."""
    name, mode = layer.name, layer.quantization_mode
    arrays = {f"{name}.kernel": np.array(layer._kernel)}
    if mode == "float8":
        arrays[f"{name}.scale"] = np.array([layer.inputs_scale, layer.kernel_scale], np.float32)
    else:
        arrays[f"{name}.scale"] = np.array(layer.kernel_scale)
    if mode == "int4":
        packed = layer._kernel
        arrays[f"{name}.kernel"] = np.array(keras.quantizers.unpack_int4(packed, layer._orig_output_dim, axis=-1))
    zero = getattr(layer, "kernel_zero", None)
    if zero is not None:
        arrays[f"{name}.zero"] = np.array(zero)
    if layer.bias is not None:
        arrays[f"{name}.bias"] = np.array(layer.bias)
    parts = [f"{name}.{part}" if f"{name}.{part}" in arrays else "" for part in ("kernel", "scale", "zero", "bias")]
    attrs = {
        "limits": [-8, 7] if mode == "int4" else [-127, 127],
        "activation": getattr(layer, "inputs_quantizer", None) is not None,
        "block": getattr(layer, "_int4_block_size", None),
    }
    return [mode, "keras", [f"{name}.input", *parts], [f"{name}.output"], attrs], arrays


def recorded(header, groups):
    """A header (JSON) as an array of bytes, then all arrays of the groups, {group: {name: array}}, in the order in
    which the header lists them."""
    import json

    header["arrays"] = [[group, name] for group, arrays in groups.items() for name in arrays]
    text = np.frombuffer(json.dumps(header).encode(), np.uint8)
    return [text] + [np.asarray(a) for arrays in groups.values() for a in arrays.values()]


def model(x, w):
    v0 = keras_dense(x, w)
    return (v0,)


RESULTS = [('float32', (1, 1))]
SHARE = 1.0


def load(parameters):
    import tensorflow as tf

    keras.utils.clear_session()  # so that layers have the same names each time
    given = [keras.Input(batch_shape=shape, dtype=dtype, name=name) for name, (dtype, shape) in INPUTS.items()]
    outputs = list(model(*given, *[parameters[name] for name in PARAMETERS]))
    whole = keras.Model(given, outputs)

    def run(*inputs):
        exact = keras.tree.flatten(whole(list(inputs)))
        dense = [layer for layer in whole.layers if isinstance(layer, keras.layers.Dense)]
        weights = {f"{layer.name}.output": np.array(layer.kernel) for layer in dense}
        whole.quantize(config=keras.quantizers.Int4QuantizationConfig(block_size=4))
        ends = {f"{layer.name}.{side}": getattr(layer, side) for layer in dense for side in ("input", "output")}
        shown = keras.Model(given, [*outputs, *ends.values()])
        layers = [keras_layer(layer) for layer in dense]
        names = [*(f"output {i}" for i in range(len(outputs))), *ends]
        constants = {name: array for _, arrays in layers for name, array in arrays.items()}
        groups = {"weights": weights, "float": {f"output {i}": np.array(value) for i, value in enumerate(exact)}}
        for group, call in {"eager": shown, "graph": tf.function(lambda given: shown(given))}.items():
            values = keras.tree.flatten(call([tf.constant(x) for x in inputs]))
            groups[group] = {**constants, **{name: np.array(value) for name, value in zip(names, values)}}
        nodes = [node for node, _ in layers]
        return recorded({"nodes": {"eager": nodes, "graph": nodes}}, groups)

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
