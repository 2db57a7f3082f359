"""jax-gradient-outside-support: SpecialMismatch of jax-eager

ran with python 3.11.7, numpy 2.4.6, jax 0.10.2
exit status: 1 reproduced, 0 not reproduced, 77 not available here
"""

import importlib.util
import sys

for module in ['jax', 'jax.numpy']:
    if importlib.util.find_spec(module) is None:
        print(f"not available: {module}")
        sys.exit(77)

# ---- the program that ran ----

import numpy as np
import jax
import jax.numpy as jnp

jax.config.update("jax_enable_x64", True)

TARGET = 'jax-eager'
# name: (dtype, shape), in the order that the model takes them
INPUTS = {'x0': ('float32', (16,)), 'x1': ('float32', (16,)), 'weight_v0': ('float32', (16,))}
PARAMETERS = {}
OUTPUTS = [('float32', (16,)), ('float32', (16,))]


def model(x0, x1):
    v0 = jax.scipy.stats.gamma.sf(x0, x1)
    return (v0,)


LEAVES = ('x0', 'x1')
WEIGHTS = {0: 'weight_v0'}  # number of an output -> its weights


def load(parameters):
    def gradients(given):
        def outputs(*leaves):
            values = {**given, **dict(zip(LEAVES, leaves))}
            results = model(*[values[name] for name in [*INPUTS, *PARAMETERS] if name not in WEIGHTS.values()])
            return [results[i] for i in WEIGHTS]

        # JAX pulls back dL/dRe - i dL/dIm
        _, pull_back = jax.vjp(outputs, *[given[name] for name in LEAVES])
        return [jnp.conj(found) for found in pull_back([jnp.conj(given[weight]) for weight in WEIGHTS.values()])]

    compiled = gradients

    def run(*inputs):
        given = {**dict(zip(INPUTS, inputs)), **parameters}
        with jax.default_device(jax.devices("cpu")[0]):  # also where there is a GPU
            found = compiled({name: jnp.asarray(array) for name, array in given.items()})
            return [np.asarray(gradient) for gradient in found]

    return run


# ---- its inputs, and what a correct evaluation returns: value, and how far from it (inf: anything) ----

from pathlib import Path

from numpy import array, inf, nan

SYMPTOM = 'special'  # SpecialMismatch
SECONDS = 120.0
ZERO_SIGNS = False  # are the signs of zeros compared?
ARRAYS = {
    'x0': array([0.30000001192092896, 1.0, 2.5, 5.0, 20.0, 60.0, 100.0, 300.0, -0.30000001192092896, -1.0, -2.5, -5.0, -20.0, -60.0, -100.0, 0.699999988079071], dtype='float32'),
    'x1': array([2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0], dtype='float32'),
    'weight_v0': array([-0.609375, -0.78125, 1.3125, 0.9375, 1.1875, 0.671875, -1.265625, 0.734375, -1.421875, -0.859375, 0.609375, 1.25, 1.46875, 1.171875, 0.90625, 1.15625], dtype='float32'),
}
EXPECTED = [
    array([0.13543083473543438, 0.28740581341535537, -0.2693414017346416, -0.03158412655821263, -4.895239853292126e-08, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -0.4019237282027256], dtype='float64'),
    array([-0.04864284037327287, -0.21577816070544384, 0.32652777694034196, 0.05236865254924935, 1.3481398832157824e-07, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.24551639630172567], dtype='float64'),
]
ALLOWED = [
    array([7.922815897248945e+28, 7.922815897248945e+28, 7.922815897248945e+28, 7.922815897248945e+28, 7.922815897248945e+28, inf, inf, inf, 7.922815897248945e+28, 7.922815897248945e+28, 7.922815897248945e+28, 7.922815897248945e+28, 7.922815897248945e+28, 7.922815897248945e+28, 7.922815897248945e+28, 7.922815897248945e+28], dtype='float64'),
    array([7.922815897248945e+28, 7.922815897248945e+28, 7.922815897248945e+28, 7.922815897248945e+28, 7.922815897248945e+28, inf, inf, inf, 7.922815897248945e+28, 7.922815897248945e+28, 7.922815897248945e+28, 7.922815897248945e+28, 7.922815897248945e+28, 7.922815897248945e+28, 7.922815897248945e+28, 7.922815897248945e+28], dtype='float64'),
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
