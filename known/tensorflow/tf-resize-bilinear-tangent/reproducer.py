"""tf-resize-bilinear-tangent: ValueMismatch of tf-eager

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
INPUTS = {'x0': ('float32', (1, 1, 3, 4)), 'tangent_x0': ('float32', (1, 1, 3, 4))}
PARAMETERS = {}
OUTPUTS = [('float32', (1, 1, 5, 7))]


def resized(x, f, size, **options):
    """NCHW; TensorFlow resizes NHWC."""
    return tf.transpose(f(tf.transpose(x, [0, 2, 3, 1]), list(size), **options), [0, 3, 1, 2])


def model(x0):
    v0 = resized(x0, tf.image.resize, (5, 7), method="bilinear")
    return (v0,)


LEAVES = {'x0': 'tangent_x0'}  # leaf -> its tangent
MOVED = (0,)  # numbers of outputs


def load(parameters):
    def pushed(given):
        leaves, along = [given[name] for name in LEAVES], [given[name] for name in LEAVES.values()]
        with tf.autodiff.ForwardAccumulator(leaves, along) as accumulator:
            values = given
            results = model(*[values[name] for name in [*INPUTS, *PARAMETERS] if name not in LEAVES.values()])
            found = [
                accumulator.jvp(results[i], unconnected_gradients=tf.UnconnectedGradients.ZERO) for i in MOVED
            ]
        return [tf.convert_to_tensor(tangent) for tangent in found]  # from IndexedSlices, too

    def run(*inputs):
        given = {**dict(zip(INPUTS, inputs)), **parameters}
        found = pushed({name: tf.constant(array) for name, array in given.items()})
        return [tangent.numpy() for tangent in found]

    return run


# ---- its inputs, and what a correct evaluation returns: value, and how far from it (inf: anything) ----

from pathlib import Path

from numpy import array, inf, nan

SYMPTOM = 'value'  # ValueMismatch
SECONDS = 120.0
ZERO_SIGNS = False  # are the signs of zeros compared?
ARRAYS = {
    'x0': array([[[[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0], [8.0, 9.0, 10.0, 11.0]]]], dtype='float32'),
    'tangent_x0': array([[[[-1.390625, -0.96875, 0.890625, 1.109375], [-0.953125, -1.09375, -0.84375, 0.515625], [-0.625, 0.984375, -0.78125, -0.71875]]]], dtype='float32'),
}
EXPECTED = [
    array([[[[-1.390625, -1.239955357142833, -0.99888392857149, -0.0390625, 0.9062499999997887, 1.03124999999965, 1.109375], [-1.2156249999998558, -1.1453124999998978, -1.0328125000007595, -0.41093750000049223, 0.24508928571420888, 0.6308035714287051, 0.8718749999998214], [-0.953125, -1.003348214285747, -1.0837053571426565, -0.96875, -0.7466517857141841, 0.030133928571413615, 0.515625], [-0.7562499999999974, -0.431473214285373, 0.0881696428571111, -0.3265625000001196, -0.7647321428572461, -0.4325892857142329, -0.2249999999998285], [-0.625, -0.05022321428582266, 0.8694196428573017, 0.1015625, -0.776785714285735, -0.7410714285714401, -0.71875]]]], dtype='float64'),
]
ALLOWED = [
    array([[[[8.288905337647949e-07, 5.54306182054387e-06, 4.465399251059047e-06, 4.156072978425618e-06, 4.051313945123811e-06, 4.6101139100292396e-06, 4.893206871418557e-06], [5.434318709740012e-06, 5.256583340468631e-06, 4.740274246271208e-06, 4.338694743492244e-06, 4.001653238708894e-06, 4.001663224684097e-06, 3.897655451030986e-06], [4.204036423121388e-06, 4.485418391706126e-06, 4.8446508872219995e-06, 4.330768262757665e-06, 3.6671770925944402e-06, 2.828991774841208e-06, 2.2743287123168085e-06], [3.3807989815000145e-06, 3.9167188504075555e-06, 4.629749147707256e-06, 4.209747740024995e-06, 3.6452339178499687e-06, 3.2026767712195357e-06, 2.849948769078917e-06], [2.756758174191494e-06, 3.3678412120815927e-06, 4.2858635903148576e-06, 3.946618332141388e-06, 3.4726315228673963e-06, 3.3129801449807712e-06, 3.1702867924710802e-06]]]], dtype='float64'),
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
