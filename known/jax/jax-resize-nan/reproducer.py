"""jax-resize-nan: SpecialMismatch of jax-eager

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
INPUTS = {'x0': ('float32', (1, 1, 5, 2))}
PARAMETERS = {}
OUTPUTS = [('float32', (1, 1, 10, 4))]


def model(x0):
    v0 = jax.image.resize(x0, (1, 1, 10, 4), "linear", antialias=False)
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

SYMPTOM = 'special'  # SpecialMismatch
SECONDS = 120.0
ZERO_SIGNS = False  # are the signs of zeros compared?
ARRAYS = {
    'x0': array([[[[0.0, 0.21760061383247375], [0.0, -2.3189361095428467], [0.43149417638778687, -2.126279830932617], [nan, 0.6059655547142029], [nan, 0.8276983499526978]]]], dtype='float32'),
}
EXPECTED = [
    array([[[[0.0, 0.05440015345811844, 0.16320046037435532, 0.21760061383247375], [0.0, -0.10413339175283909, -0.31240017525851727, -0.41653356701135635], [0.0, -0.42120048217475414, -1.2636014465242624, -1.6848019286990166], [0.10787354409694672, -0.4867878518998623, -1.6761106438934803, -2.2707720398902893], [0.32362063229084015, -0.30089550092816353, -1.5499277673661709, -2.1744439005851746], [0.32362063229084015, -0.11808914691209793, -1.001508705317974, -1.4432184845209122], [0.10787354409694672, 0.0616312101483345, -0.030853457748889923, -0.07709579169750214], [0.0, 0.16534968838095665, 0.49604906514286995, 0.6613987535238266], [0.0, 0.1930662877857685, 0.5791988633573055, 0.772265151143074], [0.0, 0.20692458748817444, 0.6207737624645233, 0.8276983499526978]]]], dtype='float64'),
]
ALLOWED = [
    array([[[[3.1129076099753575e-07, 2.1612319362743874e-06, 5.861114286828091e-06, 7.711055462104942e-06], [5.958670151249401e-07, 2.512462150440648e-06, 6.345652421072063e-06, 8.262247556387771e-06], [2.4101405224365356e-06, 4.511923619457322e-06, 8.715489813498896e-06, 1.0817272910519682e-05], [4.707944993910843e-06, 7.933311271001665e-06, 1.4384043825183315e-05, 1.7609410102274138e-05], [5.020230168536479e-06, 8.194443303789147e-06, 1.4542869574294485e-05, 1.7717082709547158e-05], [inf, inf, inf, inf], [inf, inf, inf, inf], [inf, inf, inf, inf], [inf, inf, inf, inf], [inf, inf, inf, inf]]]], dtype='float64'),
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
