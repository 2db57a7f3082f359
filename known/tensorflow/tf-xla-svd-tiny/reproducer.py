"""tf-xla-svd-tiny: ValueMismatch of tf-xla

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

TARGET = 'tf-xla'
# name: (dtype, shape), in the order that the model takes them
INPUTS = {'x0': ('float32', (2, 2))}
PARAMETERS = {}
OUTPUTS = [('float32', (2,))]


def formed(x, form):
    """Elements beyond 4 as zeros; then a dominant diagonal, or x x^T + n I."""
    x = tf.where(tf.abs(x) <= 4, x, tf.zeros_like(x))
    rows, columns = x.shape[-2:]
    if form == "gram":
        return tf.matmul(x, x, transpose_b=True) + rows * tf.eye(rows, dtype=x.dtype)
    diagonal = (4 * columns + 1) * tf.eye(rows, columns, dtype=x.dtype)
    return x + {"tamed": 0 * diagonal, "shifted": diagonal, "turned": tf.reverse(diagonal, [-1])}[form]


def model(x0):
    v0 = tf.linalg.svd(formed(x0, 'tamed'), compute_uv=False)
    return (v0,)


def load(parameters):
    bound = [tf.constant(parameters[name]) for name in PARAMETERS]

    @tf.function(autograph=False, jit_compile=True)
    def compiled(*inputs):
        return model(*inputs, *bound)

    def run(*inputs):
        return [output.numpy() for output in compiled(*[tf.constant(x) for x in inputs])]

    return run


# ---- its inputs, and what a correct evaluation returns: value, and how far from it (inf: anything) ----

from pathlib import Path

from numpy import array, inf, nan

SYMPTOM = 'value'  # ValueMismatch
SECONDS = 120.0
ZERO_SIGNS = False  # are the signs of zeros compared?
ARRAYS = {
    'x0': array([[1.480743259071709e-38, 3.596018666016771e-36], [-3.299814393863783e-36, -1.0720109569062826e-35]], dtype='float32'),
}
EXPECTED = [
    array([1.173652594206107e-35, 9.975231949140154e-37], dtype='float64'),
]
ALLOWED = [
    array([7.641394715000891e-37, 7.641388314056428e-37], dtype='float64'),
]


def wrong(output, expected, allowed, dtype, shape):
    """What is wrong with one output, or None."""
    if str(output.dtype) != dtype or output.shape != tuple(shape):
        return f"{output.dtype}{output.shape} instead of {dtype}{tuple(shape)}"
    if not shape and output.ndim == 0:
        output, expected, allowed = output.reshape(1), expected.reshape(1), allowed.reshape(1)
    if dtype.startswith("float"):
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
        print(f"{'reproduced' if SYMPTOM == 'rejected' else 'not available'}: {type(error).__name__}: {error}")
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
