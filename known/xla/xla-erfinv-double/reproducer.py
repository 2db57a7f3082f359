"""xla-erfinv-double: ValueMismatch of tf-xla

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
INPUTS = {'x0': ('float64', (1, 37))}
PARAMETERS = {}
OUTPUTS = [('float64', (1, 37))]


def model(x0):
    v0 = tf.math.erfinv(x0)
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
    'x0': array([[0.1257302210933933, -0.1321048632913019, 0.6404226504432821, 0.10490011715303971, -0.535669373161111, 0.36159505490948474, 1.3040000451301372, 0.9470809631292422, -0.7037352358069926, -1.2654214710460525, -0.6232744625373522, 0.0413259793472436, -2.3250307746388343, -0.21879166393254573, -1.2459109472530652, -0.7322673547034516, -0.5442589828573099, -0.31630015636915454, 0.4116305363741328, 1.0425133694426776, -0.12853466294403426, 1.3664634705496859, -0.6651946734866135, 0.3515100700930197, 0.9034701816518086, 0.09401229776087457, -0.7434992493538084, -0.9217253762584194, -0.45772582566733916, 0.2201951234700494, -1.009618183538736, -0.20917557487171307, -0.15922500991447772, 0.5408455846858077, 0.2146591225063409, 0.3553727090399214, -0.6538286094183394]], dtype='float64'),
}
EXPECTED = [
    array([[0.11189069832273911, -0.11761497729900346, 0.647830543077115, 0.09323475981377473, -0.5174144359474937, 0.33229077365091764, nan, 1.3686624644920558, -0.7385567554253176, nan, -0.6250439833562454, 0.03664058607606131, nan, -0.1963951684871844, nan, -0.7836858398954021, -0.5274155075606934, -0.28808915258034573, 0.38268647097170094, nan, -0.1144080957438389, nan, -0.6819903543538283, 0.3223424102051035, 1.1751513673475857, 0.08350995449019114, -0.8023545482625234, -1.2450637481462958, -0.4308950412846685, 0.19768819240998947, nan, -0.1875531471020211, -0.14205935983665371, 0.5234286830178146, 0.19259160217873197, 0.3261450797619987, -0.6661239364712533]], dtype='float64'),
]
ALLOWED = [
    array([[2.236025331347262e-16, 2.3504194050861374e-16, 1.2946254929633382e-15, 1.8632047867316815e-16, 1.0340017561122224e-15, 6.640503619999591e-16, 0.0, 2.735137045834724e-15, 1.4759328867581487e-15, 0.0, 1.2490887991059482e-15, 7.322260013532573e-17, 0.0, 3.924763883632964e-16, 0.0, 1.566118914344243e-15, 1.0539879120688413e-15, 5.757177786110094e-16, 7.647611963135922e-16, 0.0, 2.286333037769928e-16, 0.0, 1.362890509156601e-15, 6.441695381211713e-16, 2.348424189808245e-15, 1.6688641366873652e-16, 1.6034264881087858e-15, 2.4881371925726063e-15, 8.611012728558835e-16, 3.950603692381772e-16, 0.0, 3.74806480056431e-16, 2.838916298774937e-16, 1.0460206361440809e-15, 3.8487533595889806e-16, 6.517687984559624e-16, 1.3311830367437949e-15]], dtype='float64'),
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
