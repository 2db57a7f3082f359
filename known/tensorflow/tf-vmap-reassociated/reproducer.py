"""tf-vmap-reassociated: ValueMismatch of tf-eager

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
INPUTS = {'x2': ('float32', (3, 1, 1))}
PARAMETERS = {}
OUTPUTS = [('float32', (3, 1))]


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


def pairwise_distance(F, x, y, p, eps):
    d = x - y + eps
    return F.sum(F.abs(d), [1]) if p == 1 else F.sqrt(F.sum(d * d, [1]))


def model(x2):
    v1 = pairwise_distance(Space, x2, x2, p=1.0, eps=9.5367431640625e-07)
    return (v1,)


def load(parameters):
    bound = [tf.constant(parameters[name]) for name in PARAMETERS]

    def mapped(*inputs):
        return tf.vectorized_map(lambda lane: model(*lane, *bound), inputs)

    def run(*inputs):
        return [output.numpy() for output in mapped(*[tf.constant(x) for x in inputs])]

    return run


# ---- its inputs, and what a correct evaluation returns: value, and how far from it (inf: anything) ----

from pathlib import Path

from numpy import array, inf, nan

SYMPTOM = 'value'  # ValueMismatch
SECONDS = 120.0
ZERO_SIGNS = False  # are the signs of zeros compared?
ARRAYS = {
    'x2': array([[[-61.0]], [[30.5]], [[61.0]]], dtype='float32'),
}
EXPECTED = [
    array([[9.5367431640625e-07], [9.5367431640625e-07], [9.5367431640625e-07]], dtype='float64'),
]
ALLOWED = [
    array([[5.684341907256625e-14], [5.684341907256625e-14], [5.684341907256625e-14]], dtype='float64'),
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
