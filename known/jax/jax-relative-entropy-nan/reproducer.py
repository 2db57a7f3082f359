"""jax-relative-entropy-nan: SpecialMismatch of jax-eager

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
INPUTS = {'x0': ('float32', (37, 1)), 'x1': ('float32', (37, 1))}
PARAMETERS = {}
OUTPUTS = [('float32', (37, 1))]


def model(x0, x1):
    v0 = jax.scipy.special.rel_entr(x0, x1)
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
    'x0': array([[-1.7955634593963623], [-0.47049736976623535], [0.021880941465497017], [1.0401631593704224], [-1.0178974866867065], [0.0], [-0.20406827330589294], [-0.0], [-0.6482526659965515], [inf], [0.21369469165802002], [nan], [0.13373224437236786], [-0.17003190517425537], [-2.170384168624878], [0.006757832132279873], [1.2905927896499634], [0.0], [1.5861676931381226], [-1.17778742313385], [-0.0], [0.0], [0.1340024620294571], [-0.44186368584632874], [-1.2204017639160156], [-0.6777920126914978], [1.2371333837509155], [0.4070836901664734], [0.2781360149383545], [-1.3167059421539307], [0.29091256856918335], [-1.5612660646438599], [nan], [0.15918602049350739], [0.75102698802948], [1.094490647315979], [-2.222311496734619]], dtype='float32'),
    'x1': array([[2.729407548904419], [0.2152840793132782], [0.8814395070075989], [0.737487256526947], [0.7036235928535461], [3.248378038406372], [3.6933798789978027], [1.1062976121902466], [3.2790181636810303], [3.559570789337158], [2.051881790161133], [0.9798583984375], [3.296966314315796], [0.8550518751144409], [2.9658682346343994], [2.519760847091675], [3.7096290588378906], [0.927632749080658], [3.196500539779663], [2.072660207748413], [0.9262225031852722], [0.6636160016059875], [1.9911558628082275], [2.3308985233306885], [0.7373519539833069], [0.05957966670393944], [1.8845329284667969], [2.912973403930664], [3.6744019985198975], [2.502135992050171], [3.668490171432495], [3.458760976791382], [0.8725714683532715], [3.4645097255706787], [2.9230077266693115], [1.1114611625671387], [3.188174247741699]], dtype='float32'),
}
EXPECTED = [
    array([[inf], [inf], [-0.08087065487854518], [0.35769552516961145], [inf], [0.0], [inf], [0.0], [inf], [inf], [-0.48336975842429986], [nan], [-0.42860093084157747], [inf], [inf], [-0.040014591355766356], [-1.3626469048998286], [0.0], [-1.1114844542166393], [inf], [0.0], [0.0], [-0.3616207072102248], [inf], [inf], [inf], [-0.5206885223793818], [-0.8011044048496445], [-0.7178789062743243], [inf], [-0.7373215963109626], [inf], [nan], [-0.49033320917403567], [-1.020590717529856], [-0.016840292318504133], [inf]], dtype='float64'),
]
ALLOWED = [
    array([[0.0], [0.0], [4.086638800669429e-08], [1.705625344823927e-07], [0.0], [0.0], [0.0], [0.0], [0.0], [0.0], [2.3048868461493045e-07], [0.0], [2.0437286994627117e-07], [0.0], [0.0], [1.908044590348311e-08], [9.244936430852015e-07], [0.0], [1.1406021638335046e-06], [0.0], [0.0], [0.0], [1.7243420731596907e-07], [0.0], [0.0], [0.0], [4.679634191303858e-07], [3.819963853653837e-07], [3.4231137123545753e-07], [0.0], [3.5158236921126986e-07], [0.0], [0.0], [2.3380911700796936e-07], [4.866556252515422e-07], [9.04923947340687e-08], [0.0]], dtype='float64'),
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
