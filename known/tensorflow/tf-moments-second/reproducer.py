"""tf-moments-second: ValueMismatch of tf-eager

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

TARGET = 'tf-eager'
# name: (dtype, shape), in the order that the model takes them
INPUTS = {'x0': ('float32', (1, 4)), 'x1': ('float32', (4,)), 'x2': ('float32', (4,)), 'tangent_x0': ('float32', (1, 4)), 'tangent_x1': ('float32', (4,)), 'tangent_x2': ('float32', (4,)), 'weight_v0': ('float32', (1, 4))}
PARAMETERS = {}
OUTPUTS = [('float32', (1, 4)), ('float32', (4,)), ('float32', (4,))]


def normalize(x, axes, epsilon):
    """Zero mean, unit variance."""
    mean, variance = tf.nn.moments(x, axes, keepdims=True)
    return tf.nn.batch_normalization(x, mean, variance, None, None, epsilon)


def model(x0, x1, x2):
    v0 = normalize(x0, list(range(-1, 0)), 1e-05) * x1 + x2
    return (v0,)


LEAVES = {'x0': 'tangent_x0', 'x1': 'tangent_x1', 'x2': 'tangent_x2'}  # leaf -> its tangent
WEIGHTS = {0: 'weight_v0'}  # number of an output -> its weights


def load(parameters):
    def bent(given):
        leaves = [given[name] for name in LEAVES]
        with tf.GradientTape() as outer:
            outer.watch(leaves)
            with tf.GradientTape() as inner:
                inner.watch(leaves)
                values = given
                outputs = model(*[values[name] for name in [*INPUTS, *PARAMETERS] if name not in {*WEIGHTS.values(), *LEAVES.values()}])
            found = inner.gradient(
                [outputs[i] for i in WEIGHTS],
                leaves,
                output_gradients=[given[weight] for weight in WEIGHTS.values()],
                unconnected_gradients=tf.UnconnectedGradients.ZERO,
            )
            gradients = [tf.convert_to_tensor(gradient) for gradient in found]  # from IndexedSlices, too
        found = outer.gradient(
            gradients,
            leaves,
            output_gradients=[given[name] for name in LEAVES.values()],
            unconnected_gradients=tf.UnconnectedGradients.ZERO,
        )
        return [tf.convert_to_tensor(bent) for bent in found]

    def run(*inputs):
        given = {**dict(zip(INPUTS, inputs)), **parameters}
        found = bent({name: tf.constant(array) for name, array in given.items()})
        return [bent.numpy() for bent in found]

    return run


# ---- its inputs, and what a correct evaluation returns: value, and how far from it (inf: anything) ----

from pathlib import Path

from numpy import array, inf, nan

SYMPTOM = 'value'  # ValueMismatch
SECONDS = 120.0
ZERO_SIGNS = False  # are the signs of zeros compared?
ARRAYS = {
    'x0': array([[1.0, 2.0, 4.0, -1.0]], dtype='float32'),
    'x1': array([1.0, 1.0, 1.0, 1.0], dtype='float32'),
    'x2': array([0.0, 0.0, 0.0, 0.0], dtype='float32'),
    'tangent_x0': array([[1.140625, -0.921875, 1.484375, -1.015625]], dtype='float32'),
    'tangent_x1': array([0.703125, -0.8125, 0.5625, -0.59375], dtype='float32'),
    'tangent_x2': array([-1.265625, -0.671875, 1.1875, 0.734375], dtype='float32'),
    'weight_v0': array([[1.140625, -0.921875, 1.484375, -1.015625]], dtype='float32'),
}
EXPECTED = [
    array([[-0.41097396283876153, 0.49799454213965016, -0.4863704142105556, 0.3993498325157564]], dtype='float64'),
    array([0.7399286134905296, 0.6619449279878761, 0.25434044179650706, 0.10360159208570015], dtype='float64'),
    array([0.0, 0.0, 0.0, 0.0], dtype='float64'),
]
ALLOWED = [
    array([[2.7996254091322047e-05, 2.374453175732526e-05, 3.6479942698695595e-05, 3.734761328499019e-05]], dtype='float64'),
    array([1.0592611650441185e-05, 9.005013654233556e-06, 1.9284486214560506e-05, 1.0897889449144451e-05], dtype='float64'),
    array([1.4389508537100165e-06, 1.2849063728169612e-06, 4.454599967808667e-06, 2.644932564373501e-06], dtype='float64'),
]


def wrong(output, expected, allowed, dtype, shape):
    """What is wrong with one output, or None."""
    if str(output.dtype) != dtype or output.shape != tuple(shape):
        return f"{output.dtype}{output.shape} instead of {dtype}{tuple(shape)}"
    if not shape and output.ndim == 0:
        output, expected, allowed = output.reshape(1), expected.reshape(1), allowed.reshape(1)
    if "float" in dtype:
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
