"""xla-sums-of-chosen-rows-gradient: ValueMismatch of tf-xla

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

TARGET = 'tf-xla'
# name: (dtype, shape), in the order that the model takes them
INPUTS = {'x0': ('float32', (37,)), 'x1': ('bool', (37,)), 'weight_v0': ('float32', (37,))}
PARAMETERS = {}
OUTPUTS = [('float32', (37,))]


def kept(x, mask, make):
    """What is made of the rows that the mask keeps, at their places."""
    return tf.scatter_nd(tf.where(mask), make(tf.boolean_mask(x, mask)), tf.constant([*x.shape], tf.int64))


def rows(F, x, first, last, count):
    """The blocks of rows from `first` to `last` of so many."""
    size = x.shape[0] // count
    return F.take(x, list(range(first * size, (last + 1) * size)), 0)


def model(x0, x1):
    v0 = kept(x0, x1, lambda rows: tf.math.cumsum(rows, exclusive=False, reverse=False))
    return (v0,)


LEAVES = ('x0',)
WEIGHTS = {0: 'weight_v0'}  # number of an output -> its weights


def load(parameters):
    @tf.function(autograph=False, jit_compile=True)
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
    'x0': array([1.5, 0.5, 0.0, -1.0, -0.75, -2.0, -1.75, -2.0, -1.5, 1.25, 0.75, 1.75, 0.0, 0.5, 2.0, 1.0, 0.5, 0.25, 0.25, 1.75, -1.0, 1.25, 0.75, -2.0, -0.5, 1.5, 0.25, -2.0, 1.25, 1.0, 1.5, -1.5, -1.75, 1.5, -2.0, 0.25, -1.75], dtype='float32'),
    'x1': array([True, True, True, False, False, False, True, False, False, False, False, False, True, True, False, False, True, True, False, False, True, False, True, False, True, True, False, True, False, True, False, False, True, False, True, True, True], dtype='bool'),
    'weight_v0': array([-0.609375, 0.640625, -0.515625, 0.5625, -0.859375, -0.75, 0.78125, 1.421875, -1.359375, -1.03125, -0.96875, -0.9375, -1.453125, 0.734375, -0.640625, 0.765625, -1.375, -1.28125, 0.8125, 1.3125, 1.359375, -0.609375, 0.6875, -1.078125, 1.1875, 0.625, -1.03125, -1.390625, -0.625, -1.25, 0.953125, -1.375, -1.40625, -0.796875, 1.234375, 0.5, 1.0], dtype='float32'),
}
EXPECTED = [
    array([-0.53125, 0.078125, -0.5625, 0.0, 0.0, 0.0, -0.046875, 0.0, 0.0, 0.0, 0.0, 0.0, -0.828125, 0.625, 0.0, 0.0, -0.109375, 1.265625, 0.0, 0.0, 2.546875, 0.0, 1.1875, 0.0, 0.5, -0.6875, 0.0, -1.3125, 0.0, 0.078125, 0.0, 0.0, 1.328125, 0.0, 2.734375, 1.5, 1.0], dtype='float64'),
]
ALLOWED = [
    array([1.827069741089106e-05, 1.6614804486640493e-05, 1.5003615166174018e-05, 1.3068301996099764e-12, 1.3068301996099764e-12, 1.3068301996099764e-12, 1.3573102602211585e-05, 1.3068301996099764e-12, 1.3068301996099764e-12, 1.3068301996099764e-12, 1.3068301996099764e-12, 1.3068301996099764e-12, 1.1998235064094433e-05, 1.0035937277873539e-05, 1.3068301996099764e-12, 1.3068301996099764e-12, 8.71811506189672e-06, 7.10599489404878e-06, 1.3068301996099764e-12, 1.3068301996099764e-12, 5.708079078702955e-06, 1.3068301996099764e-12, 4.425647376828897e-06, 1.3068301996099764e-12, 3.5855940807058734e-06, 2.6486832666045916e-06, 1.3068301996099764e-12, 2.020971659033501e-06, 1.3068301996099764e-12, 1.2852266537156473e-06, 1.3068301996099764e-12, 1.3068301996099764e-12, 7.404028434388013e-07, 1.3068301996099764e-12, 3.2596423799970376e-07, 8.940827965542332e-08, 1.3069412219124389e-12], dtype='float64'),
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
