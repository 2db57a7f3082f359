"""torch-inductor-gelu-small: ValueMismatch of torch-inductor

exit status: 1 reproduced, 0 not reproduced, 77 not available here
"""

import importlib.util
import sys

for module in ['torch']:
    if importlib.util.find_spec(module) is None:
        print(f"not available: {module}")
        sys.exit(77)

# ---- the program that ran ----

import numpy as np
import torch

TARGET = 'torch-inductor'
# name: (dtype, shape), in the order that the model takes them
INPUTS = {'v6': ('float32', (2, 1, 4, 4))}
PARAMETERS = {}
OUTPUTS = [('float32', (2, 1, 4, 4))]


def model(v6):
    v9 = torch.nn.functional.gelu(v6)
    return (v9,)


def load(parameters):
    bound = [torch.from_numpy(parameters[name]) for name in PARAMETERS]
    compiled = torch.compile(model, backend="inductor", fullgraph=True, dynamic=False)

    def run(*inputs):
        with torch.no_grad():
            outputs = compiled(*[torch.from_numpy(x) for x in inputs], *bound)
        return [output.numpy() for output in outputs]

    return run


# ---- its inputs, and what a correct evaluation returns: value, and how far from it (inf: anything) ----

from pathlib import Path

from numpy import array, inf, nan

SYMPTOM = 'value'  # ValueMismatch
SECONDS = 120.0
ZERO_SIGNS = False  # are the signs of zeros compared?
ARRAYS = {
    'v6': array([[[[0.49446940422058105, 0.2246684730052948, 0.22236037254333496, 0.029104502871632576], [0.8104530572891235, 0.19454915821552277, 0.3023137152194977, 0.2817753553390503], [0.7667418718338013, 0.09744869917631149, 0.6428636908531189, 0.5022667050361633], [0.013317027129232883, 0.21186469495296478, 0.19162924587726593, 0.5072023272514343]]], [[[0.5980864763259888, 0.23210923373699188, 0.2627214193344116, 0.5505128502845764], [0.19875682890415192, 0.18847081065177917, 0.4435865879058838, 0.5877494215965271], [0.7938584089279175, 0.2715364098548889, 0.15179629623889923, 0.17352499067783356], [0.6895720362663269, 0.10607235133647919, 0.1842733770608902, 0.4774807095527649]]]], dtype='float32'),
}
EXPECTED = [
    array([[[[0.34094290703711944, 0.1323030857606047, 0.13074419033598392, 0.014890136603174347], [0.6411981079194127, 0.11227958095766821, 0.187069773431073, 0.17214843166783492], [0.5968184538789033, 0.05250681732027764, 0.4756186672908018, 0.3476991677055157], [0.006729261178742493, 0.1237064611998587, 0.11037531898784794, 0.3519951532268567]]], [[[0.4336778169625887, 0.13735607352736265, 0.15858320609612453, 0.3903225111334235], [0.11503518872373877, 0.10832288268584284, 0.2977926504137448, 0.42414922386164666], [0.6242593460113445, 0.16482551977220603, 0.08505544158329098, 0.0987150020165107], [0.5204671280996783, 0.05751640937631706, 0.10560716468715466, 0.32635332500462294]]]], dtype='float64'),
]
ALLOWED = [
    array([[[[2.705690338362457e-07, 6.876728346322412e-08, 6.757636000764273e-08, 3.4278323045264014e-09], [6.322142796511905e-07, 5.399578670083699e-08, 1.1440611145627434e-07, 1.0129468846197806e-07], [5.763529600829337e-07, 1.795187944959513e-08, 4.2709088446853334e-07, 2.7808531633400635e-07], [1.3635260098233882e-09, 6.228387048332365e-08, 5.2652867880190365e-08, 2.82886576166041e-07]]], [[[3.770198944433496e-07, 7.267267835488907e-08, 8.979329802164943e-08, 3.264256055376528e-07], [5.595879476097482e-08, 5.121809207343795e-08, 2.236499501717275e-07, 3.6579078789574803e-07], [6.10835678384631e-07, 9.503437045968042e-08, 3.5925087462603163e-08, 4.468104753701939e-08], [4.816387008288845e-07, 2.0426365008669383e-08, 4.934007940597407e-08, 2.5448835639049666e-07]]]], dtype='float64'),
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
