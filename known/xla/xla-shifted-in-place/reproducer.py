"""xla-shifted-in-place: ValueMismatch of jax-jit

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

TARGET = 'jax-jit'
# name: (dtype, shape), in the order that the model takes them
INPUTS = {'x0': ('float32', (8, 5))}
PARAMETERS = {'w1': ('float32', ())}
OUTPUTS = [('float32', (1, 8, 5))]


def model(x0, w1):
    v0 = jnp.add(x0, w1)
    v1 = v0[0:7, 0:5]
    v2 = v0.at[1:8:1].set(v1)
    v3 = jnp.expand_dims(v2, axis=0)
    return (v3,)


def load(parameters):
    with jax.default_device(jax.devices("cpu")[0]):  # also where there is a GPU
        bound = [jnp.asarray(parameters[name]) for name in PARAMETERS]

    def apply(*inputs):
        return model(*inputs, *bound)

    compiled = jax.jit(apply)

    def run(*inputs):
        with jax.default_device(jax.devices("cpu")[0]):
            return [np.asarray(output) for output in compiled(*[jnp.asarray(x) for x in inputs])]

    return run


# ---- its inputs, and what a correct evaluation returns: value, and how far from it (inf: anything) ----

from pathlib import Path

from numpy import array, inf, nan

SYMPTOM = 'value'  # ValueMismatch
SECONDS = 120.0
ZERO_SIGNS = True  # are the signs of zeros compared?
ARRAYS = {
    'x0': array([[0.0, 1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0, 9.0], [10.0, 11.0, 12.0, 13.0, 14.0], [15.0, 16.0, 17.0, 18.0, 19.0], [20.0, 21.0, 22.0, 23.0, 24.0], [25.0, 26.0, 27.0, 28.0, 29.0], [30.0, 31.0, 32.0, 33.0, 34.0], [35.0, 36.0, 37.0, 38.0, 39.0]], dtype='float32'),
    'w1': array(1.0, dtype='float32'),
}
EXPECTED = [
    array([[[1.0, 2.0, 3.0, 4.0, 5.0], [1.0, 2.0, 3.0, 4.0, 5.0], [6.0, 7.0, 8.0, 9.0, 10.0], [11.0, 12.0, 13.0, 14.0, 15.0], [16.0, 17.0, 18.0, 19.0, 20.0], [21.0, 22.0, 23.0, 24.0, 25.0], [26.0, 27.0, 28.0, 29.0, 30.0], [31.0, 32.0, 33.0, 34.0, 35.0]]], dtype='float64'),
]
ALLOWED = [
    array([[[5.960464499743523e-08, 1.1920928999487046e-07, 1.788139349923057e-07, 2.384185799897409e-07, 2.9802322498717615e-07], [5.960464499743523e-08, 1.1920928999487046e-07, 1.788139349923057e-07, 2.384185799897409e-07, 2.9802322498717615e-07], [3.576278699846114e-07, 4.172325149820466e-07, 4.768371599794818e-07, 5.364418049769171e-07, 5.960464499743523e-07], [6.556510949717875e-07, 7.152557399692228e-07, 7.74860384966658e-07, 8.344650299640932e-07, 8.940696749615284e-07], [9.536743199589637e-07, 1.013278964956399e-06, 1.0728836099538341e-06, 1.1324882549512694e-06, 1.1920928999487046e-06], [1.2516975449461398e-06, 1.311302189943575e-06, 1.3709068349410103e-06, 1.4305114799384455e-06, 1.4901161249358807e-06], [1.549720769933316e-06, 1.6093254149307512e-06, 1.6689300599281864e-06, 1.7285347049256217e-06, 1.788139349923057e-06], [1.8477439949204921e-06, 1.9073486399179274e-06, 1.9669532849153626e-06, 2.026557929912798e-06, 2.086162574910233e-06]]], dtype='float64'),
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
