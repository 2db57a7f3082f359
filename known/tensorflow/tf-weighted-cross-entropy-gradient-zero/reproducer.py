"""tf-weighted-cross-entropy-gradient-zero: ValueMismatch of tf-eager

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

TARGET = 'tf-eager'
# name: (dtype, shape), in the order that the model takes them
INPUTS = {'x0': ('float32', (3,)), 't0': ('float32', (3,)), 'w0': ('float32', (3,)), 'weight_v0': ('float32', (3,))}
PARAMETERS = {}
OUTPUTS = [('float32', (3,)), ('float32', (3,)), ('float32', (3,))]


class Space:
    """One set of names for all dialects; see `shared_helpers.py`."""

    exp, log, sqrt, tanh, sigmoid = tf.exp, tf.math.log, tf.sqrt, tf.tanh, tf.sigmoid
    abs, equal, concat, stack, matmul = tf.abs, tf.equal, tf.concat, tf.stack, tf.matmul
    reshape, transpose, maximum, minimum = tf.reshape, tf.transpose, tf.maximum, tf.minimum

    @staticmethod
    def where(condition, x, y):
        """A number takes the dtype of the other operand, which a traced function does not see to."""
        dtype = (x if tf.is_tensor(x) else y).dtype
        return tf.where(condition, tf.cast(x, dtype), tf.cast(y, dtype))

    @staticmethod
    def sum(x, axes, keepdims=False):
        return tf.reduce_sum(x, axis=axes, keepdims=keepdims)

    @staticmethod
    def mean(x, axes, keepdims=False):
        return tf.reduce_mean(x, axis=axes, keepdims=keepdims)

    @staticmethod
    def max(x, axes, keepdims=False):
        return tf.reduce_max(x, axis=axes, keepdims=keepdims)

    @staticmethod
    def take(x, places, axis):
        return tf.gather(x, places, axis=axis)

    @staticmethod
    def softmax(x, axis):
        return tf.nn.softmax(x, axis=axis)

    @staticmethod
    def log_softmax(x, axis):
        return tf.nn.log_softmax(x, axis=axis)

    @staticmethod
    def constant(values, like):
        return tf.constant(values, like.dtype)

    @staticmethod
    def cast(x, like):
        return tf.cast(x, like.dtype)


def reduced(F, x, reduction):
    """No reduction, or the mean or the sum of all elements."""
    if reduction == "none":
        return x
    axes = list(range(len(x.shape)))
    return F.mean(x, axes) if reduction == "mean" else F.sum(x, axes)


def model(x0, t0, w0):
    v0 = reduced(Space, tf.nn.weighted_cross_entropy_with_logits(t0, x0, w0), 'none')
    return (v0,)


LEAVES = ('x0', 't0', 'w0')
WEIGHTS = {0: 'weight_v0'}  # number of an output -> its weights


def load(parameters):
    def gradients(given):
        weights = {i: given[weight] for i, weight in WEIGHTS.items()}
        with tf.GradientTape() as tape:
            for name in LEAVES:
                tape.watch(given[name])
            outputs = model(*[given[name] for name in [*INPUTS, *PARAMETERS] if name not in WEIGHTS.values()])
        found = tape.gradient(
            [outputs[i] for i in weights],
            [given[name] for name in LEAVES],
            output_gradients=list(weights.values()),
            unconnected_gradients=tf.UnconnectedGradients.ZERO,
        )
        return [tf.convert_to_tensor(gradient) for gradient in found]  # from IndexedSlices, too

    def run(*inputs):
        given = {**dict(zip(INPUTS, inputs)), **parameters}
        found = gradients({name: tf.constant(array) for name, array in given.items()})
        return [gradient.numpy() for gradient in found]

    return run


# ---- its inputs, and what a correct evaluation returns: value, and how far from it (inf: anything) ----

from pathlib import Path

from numpy import array, inf, nan

SYMPTOM = 'value'  # ValueMismatch
SECONDS = 120.0
ZERO_SIGNS = False  # are the signs of zeros compared?
ARRAYS = {
    'x0': array([0.0, 1.0, -1.0], dtype='float32'),
    't0': array([0.25, 0.25, 0.25], dtype='float32'),
    'w0': array([2.0, 2.0, 2.0], dtype='float32'),
    'weight_v0': array([-1.359375, 0.875, -0.71875], dtype='float32'),
}
EXPECTED = [
    array([-0.169921875, 0.3620953203767546, 0.11774794173795085], dtype='float64'),
    array([-0.942246948573302, -0.6008960234213968, -1.662656837903711], dtype='float64'),
    array([-0.23556173714340067, 0.0685259941446077, -0.23597670947592775], dtype='float64'),
]
ALLOWED = [
    array([6.243679090079354e-07, 1.1007652624066672e-06, 6.606010333686155e-07], dtype='float64'),
    array([2.9565912048467696e-06, 1.9421776875648662e-06, 7.992751359907655e-06], dtype='float64'),
    array([6.970332779389775e-07, 2.104500495261978e-07, 1.1206041848420376e-06], dtype='float64'),
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
