"""tf-grappler-bias-of-more-dimensions: TypeMismatch of tf-graph

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

TARGET = 'tf-graph'
# name: (dtype, shape), in the order that the model takes them
INPUTS = {'x0': ('float32', (4, 3))}
PARAMETERS = {'w1': ('float32', (3, 5)), 'w2': ('float32', (1, 1, 5))}
OUTPUTS = [('float32', (1, 4, 5))]


def model(x0, w1, w2):
    v0 = tf.matmul(x0, w1)
    v1 = tf.add(v0, w2)
    return (v1,)


def load(parameters):
    bound = [tf.constant(parameters[name]) for name in PARAMETERS]

    @tf.function(autograph=False)
    def compiled(*inputs):
        return model(*inputs, *bound)

    def run(*inputs):
        return [output.numpy() for output in compiled(*[tf.constant(x) for x in inputs])]

    return run


# ---- its inputs, and what a correct evaluation returns: value, and how far from it (inf: anything) ----

from pathlib import Path

from numpy import array, inf, nan

SYMPTOM = 'type'  # TypeMismatch
SECONDS = 120.0
ZERO_SIGNS = False  # are the signs of zeros compared?
ARRAYS = {
    'x0': array([[2.040919065475464, -2.5556650161743164, 0.4180988371372223], [-0.5677695870399475, -0.4526492953300476, -0.21559716761112213], [-2.019986152648926, -0.2319323718547821, -0.8652130961418152], [3.3229994773864746, 0.22578661143779755, -0.3526307940483093]], dtype='float32'),
    'w1': array([[3.0, -4.0, -3.0, -2.5, -3.0], [3.0, 3.5, 1.0, -4.5, -4.0], [-1.5, -0.5, 1.0, 0.0, -2.0]], dtype='float32'),
    'w2': array([[[3.0, -4.0, -3.0, -2.5, -3.0]]], dtype='float32'),
}
EXPECTED = [
    array([[[0.828613892197609, -21.317553237080574, -11.260323375463486, 3.898194909095764, 0.26370519399642944], [0.26213910430669785, -3.2053956016898155, -1.9649377018213272, 0.956345796585083, 0.9451002776622772], [-2.457935929298401, 3.7007878571748734, 1.96281298995018, 3.593661054968834, 5.718114137649536], [14.17530445754528, -16.325429372489452, -13.095842614769936, -11.823538444936275, -13.166883289813995]]], dtype='float64'),
]
ALLOWED = [
    array([[[2.62733240196941e-06, 4.367245579622164e-06, 2.297752588821096e-06, 3.2011613030579064e-06, 3.0880307742429006e-06], [6.208478293088497e-07, 8.997229432247579e-07, 5.411866108642772e-07, 6.75045553645218e-07, 7.617713959534041e-07], [1.5865961287560588e-06, 1.8879018011982862e-06, 1.3967829140696492e-06, 1.3038305959825894e-06, 1.899746733747567e-06], [2.8432145083151016e-06, 3.5227022470045883e-06, 2.666598313659788e-06, 2.371916704024486e-06, 2.855009377729025e-06]]], dtype='float64'),
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
