"""tf-max-pool-nan: SpecialMismatch of tf-eager

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
INPUTS = {}
PARAMETERS = {'w0': ('float64', (1, 3, 5))}
OUTPUTS = [('float64', (1, 3, 5))]


def max_pool(x, kernel, stride, padding, dilation):
    """Over the spatial dimensions of (N, C, spatial...). Padding counts as minus infinity."""
    n = len(kernel)
    x = tf.transpose(x, [0, *range(2, n + 2), 1])
    x = tf.pad(x, [[0, 0], *[[p, p] for p in padding], [0, 0]], constant_values=float("-inf"))
    if all(d == 1 for d in dilation):
        pool = (tf.nn.max_pool1d, tf.nn.max_pool2d, tf.nn.max_pool3d)[n - 1]
        y = pool(x, list(kernel), list(stride), "VALID")
    else:  # tf.nn.pool takes no strides together with dilations
        y = tf.nn.pool(x, kernel, "MAX", padding="VALID", dilations=dilation)
        y = y[(slice(None), *(slice(None, None, s) for s in stride))]
    return tf.transpose(y, [0, n + 1, *range(1, n + 1)])


def model(w0):
    v0 = max_pool(w0, (5,), (1,), (2,), (1,))
    return (v0,)


def load(parameters):
    bound = [tf.constant(parameters[name]) for name in PARAMETERS]

    def run(*inputs):
        return [output.numpy() for output in model(*[tf.constant(x) for x in inputs], *bound)]

    return run


# ---- its inputs, and what a correct evaluation returns: value, and how far from it (inf: anything) ----

from pathlib import Path

from numpy import array, inf, nan

SYMPTOM = 'special'  # SpecialMismatch
SECONDS = 120.0
ZERO_SIGNS = False  # are the signs of zeros compared?
ARRAYS = {
    'w0': array([[[inf, nan, -0.34281213475458994, -0.0, 1.4062073276291593], [0.4736273900080626, -0.7831059488685478, -1.495390460291345, 0.6545095914509349, 1.6976365529111088], [-0.21230029558593544, 0.33564290462252006, -0.08913625472488183, 0.7186039365280723, 0.8876072743435984]]], dtype='float64'),
}
EXPECTED = [
    array([[[nan, nan, nan, nan, 1.4062073276291593], [0.4736273900080626, 0.6545095914509349, 1.6976365529111088, 1.6976365529111088, 1.6976365529111088], [0.33564290462252006, 0.7186039365280723, 0.8876072743435984, 0.8876072743435984, 0.8876072743435984]]], dtype='float64'),
]
ALLOWED = [
    array([[[0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0]]], dtype='float64'),
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
