"""jax-log-beta: ValueMismatch of jax-eager

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
INPUTS = {'x0': ('float64', (1, 37)), 'x1': ('float64', (1, 37))}
PARAMETERS = {}
OUTPUTS = [('float64', (1, 37))]


def model(x0, x1):
    v0 = jax.scipy.special.betaln(x0, x1)
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
    'x0': array([[19.10885061964363, 8.09360141291611, 1.2292057180858407, 0.49582906585587283, 24.39810717600817, 27.382667318331652, 18.199073273015397, 21.884896829519953, 16.308749743962686, 28.05217271363305, 24.475606623645966, 0.08215500510444285, 25.72212829762708, 1.0075672591639306, 21.88966339289832, 5.2696686180767704, 25.895367670496597, 16.24383660747275, 8.991356716121544, 12.680616635929754, 0.849590134363889, 3.7284982949869185, 20.11873244080891, 19.4156853472275, 18.461553344437615, 11.510326627856504, 29.91629807367633, 29.4250601632869, 20.56625953442084, 19.513778288034487, 20.653401917128203, 11.667642719373113, 4.052895150672336, 21.64465020582245, 15.760629674271776, 9.30725626676867, 14.575060764953673]], dtype='float64'),
    'x1': array([[15.3546487410077, 28.51391088977806, 4.324788381589012, 28.459483414117315, 9.354943560314563, 12.69979346917727, 24.831077814613252, 12.275974091074838, 16.487810630191785, 0.826773397292051, 22.6053932602442, 16.144299396578347, 9.891951494972766, 23.65286110285213, 9.09584487874935, 13.604936684419545, 4.0212509174149424, 12.093389593413876, 6.1036572202844885, 7.869400213255485, 22.510940178901578, 8.412262739581198, 14.555729232949052, 29.42211599403716, 28.849715809913604, 21.74369822320601, 16.236805666423027, 8.306736121361125, 4.8195602632538055, 29.097762396483976, 15.482057566436362, 3.4759683741231093, 18.704692666125013, 23.30049343026894, 18.390099031591213, 27.51893114372708, 1.1877862999260858]], dtype='float64'),
}
EXPECTED = [
    array([[-23.82792033591661, -19.329955135776657, -1.924109789487678, -1.0752847896622626, -19.949602358072426, -25.183942588951552, -29.563954054533014, -22.412767285768425, -22.857793869225446, -2.6269409856278116, -32.90464568385357, 2.230902704265329, -21.096398386395563, -3.1919040275812094, -18.75650625667648, -10.90820230427697, -11.491497611870443, -19.376903540819477, -9.89421549429102, -13.533777779820262, -2.535855530156546, -7.018289081112609, -23.726735336294908, -33.12467986096411, -31.929802078202897, -21.531208119609005, -30.18466817978232, -19.893063440216253, -12.081833864788827, -33.0485742534255, -24.83997763639867, -7.706119034304557, -10.32298145572257, -31.4074754582159, -23.71310737464694, -20.859643072487444, -3.271731596559462]], dtype='float64'),
]
ALLOWED = [
    array([[1.170777328062539e-12, 1.282606139510232e-12, 1.4840554960257826e-13, 1.0124927348290126e-12, 1.154956566652212e-12, 1.4150279567152928e-12, 1.5313308447313246e-12, 1.163152611324625e-12, 1.1021873620727136e-12, 1.0031812418939576e-12, 1.7049507994334491e-12, 5.212093794536387e-13, 1.231948161547738e-12, 8.262367059633783e-13, 1.0402652715140374e-12, 5.773250063785469e-13, 1.0209260019152768e-12, 9.260344713793325e-13, 4.4051253782430535e-13, 6.329101957362291e-13, 7.761772300752619e-13, 3.4512745979420004e-13, 1.1804001103514385e-12, 1.7864020902879506e-12, 1.719768302631017e-12, 1.1271758166848891e-12, 1.6729810534628822e-12, 1.3303907141407967e-12, 8.30466989934325e-13, 1.7760761294944433e-12, 1.2401689204174252e-12, 4.487025661975584e-13, 7.303555731362788e-13, 1.6118963890219499e-12, 1.1575834709212798e-12, 1.2864042862008251e-12, 4.820088345727028e-13]], dtype='float64'),
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
