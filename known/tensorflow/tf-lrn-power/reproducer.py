"""tf-lrn-power: ValueMismatch of tf-eager

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
INPUTS = {'x0': ('float32', (2, 2, 2, 2))}
PARAMETERS = {}
OUTPUTS = [('float32', (2, 2, 2, 2))]


def local_response_norm_native(x, size, alpha, beta, k):
    """NCHW; TensorFlow normalises NHWC, and takes alpha for the sum instead of the mean."""
    y = tf.nn.local_response_normalization(tf.transpose(x, [0, 2, 3, 1]), size // 2, k, alpha / size, beta)
    return tf.transpose(y, [0, 3, 1, 2])


def model(x0):
    v0 = local_response_norm_native(x0, 3, 1.0, 0.75, 1.0)
    return (v0,)


def load(parameters):
    bound = [tf.constant(parameters[name]) for name in PARAMETERS]

    def run(*inputs):
        return [output.numpy() for output in model(*[tf.constant(x) for x in inputs], *bound)]

    return run


# ---- its inputs, and what a correct evaluation returns: value, and how far from it (inf: anything) ----

from pathlib import Path

from numpy import array, inf, nan

SYMPTOM = 'value'  # ValueMismatch
SECONDS = 120.0
ZERO_SIGNS = False  # are the signs of zeros compared?
ARRAYS = {
    'x0': array([[[[-3.89936438671573e+17, -2.3048205135040353e-37], [-1.1583985135427395e+37, -2.982851694695547e+17]], [[4803.56005859375, -1.2193639854086807e-20], [-284591488.0, 3.47297329783558e-11]]], [[[-12768275.0, -1.0682160799673046e-18], [2.568100908294917e-36, 28126092.0]], [[1.4950017754384004e+29, -8.399239581121336e-34], [1.2044795639970548e+27, -1.8021547152241022e+37]]]], dtype='float32'),
}
EXPECTED = [
    array([[[[-3.6504300477451724e-09, -2.3048205135040353e-37], [-6.697488017088403e-19, -4.1737372992526966e-09]], [[4.496902119170306e-23, -1.2193639854086807e-20], [-1.64541654565498e-47, 4.859537005564906e-37]]], [[[-5.0351290531868076e-37, -1.0682160799673046e-18], [1.4004057061420644e-76, 8.380351317403683e-49]], [[5.8954924405025346e-15, -8.399239581121336e-34], [6.568122182834712e-14, -5.3696367209115165e-19]]]], dtype='float64'),
]
ALLOWED = [
    array([[[[9.628032693741443e-15, 1.1755551406060814e-38], [inf, 1.1008258930236125e-14]], [[1.1860608219286813e-28, 3.2160800637194294e-26], [inf, 1.1756225214228854e-38]]], [[[inf, 2.8174265269731573e-24], [inf, inf]], [[inf, 1.3970248149862268e-38], [inf, inf]]]], dtype='float64'),
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
