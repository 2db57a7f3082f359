"""jax-exp2: ValueMismatch of jax-eager

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
INPUTS = {}
PARAMETERS = {'w0': ('float64', (3, 4, 1))}
OUTPUTS = [('float64', (3, 4, 1))]


def model(w0):
    v0 = jnp.exp2(w0)
    return (v0,)


def load(parameters):
    with jax.default_device(jax.devices("cpu")[0]):  # also where there is a GPU
        bound = [jnp.asarray(parameters[name]) for name in PARAMETERS]

    def apply(*inputs):
        return model(*inputs, *bound)

    compiled = apply

    def run(*inputs):
        with jax.default_device(jax.devices("cpu")[0]):
            return [np.asarray(output) for output in compiled(*[jnp.asarray(x) for x in inputs])]

    return run


# ---- its inputs, and what a correct evaluation returns: value, and how far from it (inf: anything) ----

from pathlib import Path

from numpy import array, inf, nan

SYMPTOM = 'value'  # ValueMismatch
SECONDS = 120.0
ZERO_SIGNS = False  # are the signs of zeros compared?
ARRAYS = {
    'w0': array([[[-15.06141369250554], [195.96104870538107], [86.2832506261583], [-64.48150347420422]], [[-112.81128135134449], [-49.62745064149268], [-66.59576447449084], [109.46598265511385]], [[9.283108471485395], [39.7879308747561], [48.123926941482054], [-41.27871733558538]]], dtype='float64'),
}
EXPECTED = [
    array([[[2.9245745840713028e-05], [9.775830032237669e+58], [9.415568816013686e+25], [3.882695109958847e-20]], [[1.097540269979619e-34], [1.1498700136549171e-15], [8.967622315051684e-21], [8.964875940942485e+32]], [[623.0086878297113], [949206402036.8861], [306722417495346.1], [3.7485896302168226e-13]]], dtype='float64'),
]
ALLOWED = [
    array([[[1.1039562137596303e-19], [3.690139539448197e+44], [355414963842.3546], [1.4656235529497774e-34]], [[4.142949225827924e-49], [4.340481359251489e-30], [3.385060661906328e-35], [3.384023972064437e+18]], [[2.351707205218177e-12], [0.003583024729054044], [1.1578029862448789], [1.415001975894858e-27]]], dtype='float64'),
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
